/* stoker-pack.json: what a pack holds. While a pack is being written the same lies in stoker-pack.part. */
#ifndef STK_DATA_SOURCE_MANIFEST_H
#define STK_DATA_SOURCE_MANIFEST_H

#include "base/file.h"

#define STK_PACK_MANIFEST "stoker-pack.json"
#define STK_PACK_PART     "stoker-pack.part"

enum { STK_PACK_FORMAT = 1 };

typedef struct stk_pack_shard {
    char *file;    /* its name in the folder */
    char *entries; /* the name of its file of entry points (source/entries.h); NULL: none */
    int64_t n_records, n_bytes;
    uint32_t crc32;
} stk_pack_shard;

typedef struct stk_pack_manifest {
    int64_t n_records;    /* of all shards, once the pack is whole */
    uint64_t fingerprint; /* of the packed data set, to tell another one from it */
    bool has_labels;
    bool is_tfrecord;  /* else tar */
    char **class_name; /* [n_classes]; NULL: none */
    int64_t n_classes;
    stk_pack_shard *shard; /* [n_shards] */
    int64_t n_shards;
} stk_pack_manifest;

/* Free with stk_pack_manifest_free, after an error too. Errors name the file. */
stk_status stk_pack_manifest_read(const char *folder, const char *name, stk_pack_manifest *out);
/* From a file's bytes. Fuzzed. */
stk_status stk_pack_manifest_parse(stk_span bytes, stk_pack_manifest *out);
/* Replaces the file whole, and durably. */
stk_status stk_pack_manifest_write(const stk_pack_manifest *manifest, const char *folder, const char *name);
void stk_pack_manifest_free(stk_pack_manifest *manifest);
/* Takes the texts of shard. */
stk_status stk_pack_manifest_add(stk_pack_manifest *manifest, stk_pack_shard shard);

#endif
