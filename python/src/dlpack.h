/* DLPack's structures, github.com/dmlc/dlpack, version 1.0: what arrays are handed on by, without copies. */
#ifndef STOKER_PY_DLPACK_H
#define STOKER_PY_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };
#define DL_FLAG_READ_ONLY UINT64_C(1)
#define DL_FLAG_IS_COPIED UINT64_C(2)

typedef struct dl_device {
    int32_t type, id;
} dl_device;

typedef struct dl_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} dl_dtype;

typedef struct dl_tensor {
    void *data;
    dl_device device;
    int32_t ndim;
    dl_dtype dtype;
    int64_t *shape, *strides; /* strides in elements; NULL: row-major */
    uint64_t byte_offset;
} dl_tensor;

/* In capsules named "dltensor". */
typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

/* In capsules named "dltensor_versioned". */
typedef struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

#endif
