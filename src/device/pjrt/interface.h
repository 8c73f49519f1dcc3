/* The part of PJRT's C interface that we use: facts of openxla/xla, xla/pjrt/c/pjrt_c_api.h, version 0.90.
 *
 * A plug-in is a shared library with one symbol, GetPjrtApi, which gives a table of functions. Every function takes the
 * address of one struct that begins with its own size; a field is there for a plug-in whose struct is long enough, so
 * that both sides may be older or newer than the other. Tables only grow at the end.
 */
#ifndef STK_DEVICE_PJRT_INTERFACE_H
#define STK_DEVICE_PJRT_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pjrt_error pjrt_error;
typedef struct pjrt_event pjrt_event;
typedef struct pjrt_client pjrt_client;
typedef struct pjrt_chip pjrt_chip;             /* PJRT_Device */
typedef struct pjrt_chip_about pjrt_chip_about; /* PJRT_DeviceDescription */
typedef struct pjrt_buffer pjrt_buffer;
typedef struct pjrt_executable pjrt_executable; /* PJRT_LoadedExecutable */
typedef struct pjrt_unloaded pjrt_unloaded;     /* PJRT_Executable */
typedef struct pjrt_topology pjrt_topology;

/* What every struct begins with. */
typedef struct pjrt_head {
    size_t size;
    void *extension;
} pjrt_head;

/* The place of a function in the table. */
enum pjrt_slot {
    PJRT_ERROR_DESTROY = 0,
    PJRT_ERROR_MESSAGE = 1,
    PJRT_ERROR_GET_CODE = 2,
    PJRT_PLUGIN_INITIALIZE = 3,
    PJRT_EVENT_DESTROY = 5,
    PJRT_EVENT_IS_READY = 6,
    PJRT_EVENT_AWAIT = 8,
    PJRT_CLIENT_CREATE = 10,
    PJRT_CLIENT_DESTROY = 11,
    PJRT_CLIENT_PLATFORM_NAME = 12,
    PJRT_CLIENT_PLATFORM_VERSION = 14,
    PJRT_CLIENT_DEVICES = 15,
    PJRT_CLIENT_ADDRESSABLE_DEVICES = 16,
    PJRT_CLIENT_COMPILE = 20,
    PJRT_CLIENT_BUFFER_FROM_HOST = 22,
    PJRT_DESCRIPTION_ID = 23,
    PJRT_DESCRIPTION_KIND = 26,
    PJRT_DEVICE_GET_DESCRIPTION = 29,
    PJRT_DEVICE_MEMORY_STATS = 34,
    PJRT_UNLOADED_DESTROY = 40,
    PJRT_UNLOADED_COST = 46,
    PJRT_UNLOADED_SERIALIZE = 49,
    PJRT_EXECUTABLE_DESTROY = 50,
    PJRT_EXECUTABLE_GET_UNLOADED = 51,
    PJRT_EXECUTABLE_EXECUTE = 55,
    PJRT_EXECUTABLE_LOAD = 56,
    PJRT_BUFFER_DESTROY = 58,
    PJRT_BUFFER_TO_HOST = 70,
    PJRT_TOPOLOGY_CREATE = 82,
    PJRT_TOPOLOGY_DESTROY = 83,
    PJRT_TOPOLOGY_DESCRIPTIONS = 86,
    PJRT_COMPILE = 89,
    PJRT_UNLOADED_MEMORY = 96,
    PJRT_N_SLOTS = 97
};

/* ERROR_DESTROY and ERROR_MESSAGE return nothing. */
typedef pjrt_error *(*pjrt_function)(void *args);

typedef struct pjrt_version {
    pjrt_head head;
    int major, minor;
} pjrt_version;

typedef struct pjrt_api {
    pjrt_head head;
    pjrt_version version;
    pjrt_function slot[]; /* as many as head.size has room for */
} pjrt_api;

/* Zeros behind a struct: what later versions have added, or will. A plug-in refuses structs that are shorter than its
 * own, and does not look at what is longer. */
#define PJRT_LATER void *later[8]

/* --- arguments; what a function gives stands behind the line --- */

typedef struct pjrt_error_args {
    pjrt_head head;
    pjrt_error *error;
} pjrt_error_args;

typedef struct pjrt_message_args {
    pjrt_head head;
    const pjrt_error *error;
    /* --- */
    const char *text; /* no 0 at its end */
    size_t n;
} pjrt_message_args;

enum {
    PJRT_CODE_DEADLINE_EXCEEDED = 4,
    PJRT_CODE_NOT_FOUND = 5,
    PJRT_CODE_ALREADY_EXISTS = 6,
    PJRT_CODE_RESOURCE_EXHAUSTED = 8,
    PJRT_CODE_ABORTED = 10,
    PJRT_CODE_UNIMPLEMENTED = 12
};

typedef struct pjrt_code_args {
    pjrt_head head;
    const pjrt_error *error;
    /* --- */
    int code;
} pjrt_code_args;

typedef struct pjrt_initialize_args {
    pjrt_head head;
} pjrt_initialize_args;

typedef struct pjrt_event_args {
    pjrt_head head;
    pjrt_event *event;
} pjrt_event_args;

typedef struct pjrt_is_ready_args {
    pjrt_head head;
    pjrt_event *event;
    /* --- */
    bool is_ready;
} pjrt_is_ready_args;

enum { PJRT_VALUE_TEXT = 0, PJRT_VALUE_INTEGER = 1, PJRT_VALUE_INTEGERS = 2, PJRT_VALUE_FLOAT = 3 };

typedef struct pjrt_named_value {
    pjrt_head head;
    const char *name;
    size_t name_bytes;
    int type;
    union {
        const char *text;
        int64_t integer;
        const int64_t *integers;
        float number;
    };
    size_t n; /* of a text's bytes, of integers */
} pjrt_named_value;

/* --- a store of keys for several hosts, which the plug-in calls, from any of its threads --- */

/* How a callback makes its error; the text is copied. */
typedef pjrt_error *(*pjrt_make_error)(int code, const char *text, size_t n);

typedef struct pjrt_get_args {
    pjrt_head head;
    const char *key;
    size_t key_bytes;
    int timeout_ms;
    pjrt_make_error *error;
    void *user;
    /* --- */
    char *value;
    size_t value_bytes;
    void (*free_value)(char *value); /* the plug-in calls it once it has a copy */
} pjrt_get_args;

/* Does not wait. */
typedef struct pjrt_try_get_args {
    pjrt_head head;
    const char *key;
    size_t key_bytes;
    pjrt_make_error *error;
    void *user;
    /* --- */
    char *value;
    size_t value_bytes;
    void (*free_value)(char *value);
} pjrt_try_get_args;

typedef struct pjrt_put_args {
    pjrt_head head;
    const char *key;
    size_t key_bytes;
    const char *value; /* until the call returns */
    size_t value_bytes;
    pjrt_make_error *error;
    void *user;
} pjrt_put_args;

typedef struct pjrt_client_create_args {
    pjrt_head head;
    const pjrt_named_value *option;
    size_t n_options;
    pjrt_error *(*get)(pjrt_get_args *args);
    void *get_user;
    pjrt_error *(*put)(pjrt_put_args *args);
    void *put_user;
    /* --- */
    pjrt_client *client;
    /* --- given, and newer than what is above --- */
    pjrt_error *(*try_get)(pjrt_try_get_args *args);
    void *try_get_user;
    PJRT_LATER;
} pjrt_client_create_args;

typedef struct pjrt_client_args {
    pjrt_head head;
    pjrt_client *client;
} pjrt_client_args;

/* Of CLIENT_PLATFORM_NAME, CLIENT_PLATFORM_VERSION and DESCRIPTION_KIND. */
typedef struct pjrt_text_args {
    pjrt_head head;
    const void *of; /* the client or the description */
    /* --- */
    const char *text; /* no 0 at its end */
    size_t n;
    PJRT_LATER;
} pjrt_text_args;

typedef struct pjrt_chips_args {
    pjrt_head head;
    pjrt_client *client;
    /* --- */
    pjrt_chip *const *chip;
    size_t n;
    PJRT_LATER;
} pjrt_chips_args;

typedef struct pjrt_description_args {
    pjrt_head head;
    pjrt_chip *chip;
    /* --- */
    pjrt_chip_about *about;
} pjrt_description_args;

typedef struct pjrt_id_args {
    pjrt_head head;
    pjrt_chip_about *about;
    /* --- */
    int id;
} pjrt_id_args;

typedef struct pjrt_memory_args {
    pjrt_head head;
    pjrt_chip *chip;
    /* --- */
    int64_t used;
    int64_t peak;
    bool has_peak;
    int64_t n_allocs;
    bool has_n_allocs;
    int64_t largest;
    bool has_largest;
    int64_t limit;
    bool has_limit;
    int64_t reserved;
    bool has_reserved;
    int64_t peak_reserved;
    bool has_peak_reserved;
    int64_t reservable;
    bool has_reservable;
    int64_t largest_free;
    bool has_largest_free;
    int64_t pool;
    bool has_pool;
    int64_t peak_pool;
    bool has_peak_pool;
    PJRT_LATER;
} pjrt_memory_args;

typedef struct pjrt_program {
    pjrt_head head;
    char *code;
    size_t code_bytes;
    const char *format; /* "mlir" */
    size_t format_bytes;
    PJRT_LATER;
} pjrt_program;

typedef struct pjrt_compile_args {
    pjrt_head head;
    pjrt_client *client;
    const pjrt_program *program;
    const char *options; /* a CompileOptionsProto */
    size_t options_bytes;
    /* --- */
    pjrt_executable *executable;
    PJRT_LATER;
} pjrt_compile_args;

typedef enum pjrt_type {
    PJRT_PRED = 1,
    PJRT_S8 = 2,
    PJRT_S32 = 4,
    PJRT_S64 = 5,
    PJRT_U8 = 6,
    PJRT_F16 = 10,
    PJRT_F32 = 11,
    PJRT_F64 = 12,
    PJRT_BF16 = 13
} pjrt_type;

enum { PJRT_READ_DURING_CALL = 0 }; /* the host's memory may change once the call has returned */

typedef struct pjrt_from_host_args {
    pjrt_head head;
    pjrt_client *client;
    const void *data;
    int type; /* pjrt_type */
    const int64_t *dim;
    size_t n_dims;
    const int64_t *stride_bytes; /* NULL: row-major */
    size_t n_strides;
    int semantics; /* PJRT_READ_DURING_CALL */
    pjrt_chip *chip;
    void *memory; /* NULL: the chip's own */
    void *layout; /* NULL: the chip's choice */
    /* --- */
    pjrt_event *done;
    pjrt_buffer *buffer;
    PJRT_LATER;
} pjrt_from_host_args;

typedef struct pjrt_layout {
    pjrt_head head;
    pjrt_head tiled_head; /* the rest is of a layout of tiles, of which there are none */
    const int64_t *minor_to_major;
    size_t n_dims;
    const int64_t *tile_dims;
    const size_t *tile_dim_sizes;
    size_t n_tiles;
    int type; /* 0: tiled */
} pjrt_layout;

typedef struct pjrt_to_host_args {
    pjrt_head head;
    pjrt_buffer *buffer;
    pjrt_layout *layout; /* of dst */
    void *dst;
    size_t dst_bytes;
    /* --- */
    pjrt_event *done;
    PJRT_LATER;
} pjrt_to_host_args;

typedef struct pjrt_buffer_args {
    pjrt_head head;
    pjrt_buffer *buffer;
} pjrt_buffer_args;

typedef struct pjrt_executable_args {
    pjrt_head head;
    pjrt_executable *executable;
} pjrt_executable_args;

typedef struct pjrt_execute_options {
    pjrt_head head;
    void *send, *receive;
    size_t n_send, n_receive;
    int launch_id;
    const int64_t *not_donated; /* arguments that stay, though the module gives their memory to results */
    size_t n_not_donated;
    PJRT_LATER;
} pjrt_execute_options;

typedef struct pjrt_execute_args {
    pjrt_head head;
    pjrt_executable *executable;
    pjrt_execute_options *options;
    pjrt_buffer *const *const *args; /* [n_chips][n_args] */
    size_t n_chips, n_args;
    /* --- */
    pjrt_buffer **const *results; /* [n_chips][results] */
    pjrt_event **done;            /* [n_chips]; NULL: not wanted */
    pjrt_chip *chip;              /* NULL: as compiled */
    PJRT_LATER;
} pjrt_execute_args;

/* --- executables as bytes --- */

typedef struct pjrt_get_unloaded_args {
    pjrt_head head;
    pjrt_executable *executable;
    /* --- */
    pjrt_unloaded *unloaded; /* the caller destroys it */
} pjrt_get_unloaded_args;

typedef struct pjrt_serialize_args {
    pjrt_head head;
    const pjrt_unloaded *executable;
    /* --- */
    const char *bytes;
    size_t n;
    void *owner;
    void (*free_owner)(void *owner);
    PJRT_LATER;
} pjrt_serialize_args;

typedef struct pjrt_load_args {
    pjrt_head head;
    pjrt_client *client;
    const char *bytes;
    size_t n;
    /* --- */
    pjrt_executable *executable;
    const char *options; /* NULL: those that it was compiled with */
    size_t options_bytes;
    PJRT_LATER;
} pjrt_load_args;

/* --- compiling for chips that are not here --- */

typedef struct pjrt_topology_create_args {
    pjrt_head head;
    const char *name; /* "v5e:2x2" */
    size_t name_bytes;
    const pjrt_named_value *option;
    size_t n_options;
    /* --- */
    pjrt_topology *topology;
    PJRT_LATER;
} pjrt_topology_create_args;

typedef struct pjrt_topology_args {
    pjrt_head head;
    pjrt_topology *topology;
} pjrt_topology_args;

typedef struct pjrt_descriptions_args {
    pjrt_head head;
    pjrt_topology *topology;
    /* --- */
    pjrt_chip_about *const *about;
    size_t n;
    PJRT_LATER;
} pjrt_descriptions_args;

typedef struct pjrt_compile_ahead_args {
    pjrt_head head;
    const pjrt_topology *topology;
    const pjrt_program *program;
    const char *options;
    size_t options_bytes;
    pjrt_client *client; /* NULL: none */
    /* --- */
    pjrt_unloaded *executable;
    PJRT_LATER;
} pjrt_compile_ahead_args;

typedef struct pjrt_unloaded_args {
    pjrt_head head;
    pjrt_unloaded *executable;
} pjrt_unloaded_args;

typedef struct pjrt_unloaded_memory_args {
    pjrt_head head;
    pjrt_unloaded *executable;
    /* --- */
    int64_t code, arguments, results, alias, scratch; /* bytes on a chip; alias: of arguments that results take */
    int64_t host_code, host_arguments, host_results, host_alias, host_scratch;
    PJRT_LATER;
} pjrt_unloaded_memory_args;

typedef struct pjrt_cost_args {
    pjrt_head head;
    pjrt_unloaded *executable;
    /* --- */
    size_t n;
    const pjrt_named_value *value;
    PJRT_LATER;
} pjrt_cost_args;

#endif
