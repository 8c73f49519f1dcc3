/* A GPU that is played: a stand-in for NVIDIA's driver, libcuda, for tests on machines without a card. Kernels are
 * really run, by OpenCL on the processor (PoCL), from the source that the played NVRTC (nvrtc.c) puts into its images.
 *
 *   driver.c    cuInit, devices, contexts, cuGetProcAddress, what holds for every call
 *   settings.c  what is played, by the variables below
 *   counts.c    what was called how often, and misuse
 *   memory.c    memory of the device and of the host, copies
 *   streams.c   streams and events: work, and who goes on next
 *   graphs.c    captures and graphs
 *   modules.c   images and kernels, launches
 *   work.c      doing it
 *   opencl.h    OpenCL, for both libraries
 *
 * A stream is a list of work that nothing does until something is waited for: what reads too early reads old numbers,
 * or poison. Queries do one piece of work each, and say "not ready" once more.
 *
 * STOKER_PLAY_CHIP     "capability=9.0,memory=4GiB,chips=1,units=132,name=Played GPU,mig=0,peers=1"
 * STOKER_PLAY_DRIVER   the driver's version; 13000
 * STOKER_PLAY_MISSING  names of calls, separated by commas, that this driver lacks
 * STOKER_PLAY_OTHERS   "1GiB,5:3GiB": bytes that others hold; from the 5th call about memory on
 * STOKER_PLAY_FAIL     "cuMemAlloc:3:2,...": what the third call returns. Errors of work (700, ...) of what only
 * enqueues come when the work is done; the context is broken from then on STOKER_PLAY_HANG     "3": the third graph
 * launch never ends; "cuLaunchKernel:5": that kernel STOKER_PLAY_ORDER    0: work is done when it must be, in the order
 * of those who wait. n: stream i does its work as soon as it may where bit i % 3 of n is set, and queries go on with
 * whatever may be next STOKER_PLAY_COUNTS   a file that gets all counts, as JSON, when the process ends
 * STOKER_PLAY_SLOW_PLANS milliseconds that each plan of cuDNN takes
 * STOKER_PLAY_MISUSE   "count": misuse does not end the process with 86
 */
#ifndef TESTS_DEVICE_PLAY_PLAY_H
#define TESTS_DEVICE_PLAY_PLAY_H

#include <pthread.h>
#include <stdbool.h>

#include "device/play/api.h"
#include "device/play/opencl.h"

enum { /* errors, by their numbers in cuda.h */
       WELL = 0,
       INVALID_VALUE = 1,
       OUT_OF_MEMORY = 2,
       NOT_INITIALIZED = 3,
       NO_DEVICE = 100,
       INVALID_DEVICE = 101,
       INVALID_IMAGE = 200,
       INVALID_CONTEXT = 201,
       NO_BINARY_FOR_GPU = 209,
       INVALID_HANDLE = 400,
       ILLEGAL_STATE = 401,
       NOT_FOUND = 500,
       NOT_READY = 600,
       ILLEGAL_ADDRESS = 700,
       LAUNCH_OUT_OF_RESOURCES = 701,
       LAUNCH_TIMEOUT = 702,
       PEER_IS_ENABLED = 704,
       CONTEXT_IS_DESTROYED = 709,
       NOT_SUPPORTED = 801,
       CAPTURE_UNSUPPORTED = 900,
       CAPTURE_INVALIDATED = 901,
       CAPTURE_ISOLATION = 905,
       CAPTURED_EVENT = 907,
       CAPTURE_WRONG_THREAD = 908,
};

enum { MOST_CHIPS = 8, POISON = 0xff }; /* poison: not a number in any float, -1 in integers */

#define X(name, symbol, since, needs, parameters) CALL_##name,
typedef enum play_call { PLAY_API(X) N_CALLS } play_call;
#undef X

/* --- driver.c --- */

typedef struct play_context {
    int number, n_retained;
    bool is_made;
    bool reaches[MOST_CHIPS]; /* peers */
    int broken;               /* the error that all calls give from now on; 0: none */
    size_t used_bytes;        /* of memory */
    handle self;
    struct play_stream *streams, *legacy; /* streams: all, those that are destroyed too */
    int n_streams;
} play_context;

extern play_context play_contexts[MOST_CHIPS];

/* WELL, with the lock held; or what the call returns. Then play_leave(code) is what it returns. */
int play_enter(play_call call);
int play_leave(int code);
play_context *play_current(void); /* the thread's, after play_enter of a call that needs one */
/* An error of work that is enqueued now, by STOKER_PLAY_FAIL, and is taken; 0: none. */
int play_take_late_failure(void);

/* --- handles: numbers that are no addresses, and never the same twice --- */

typedef enum play_kind { A_CONTEXT = 1, A_STREAM, AN_EVENT, A_MODULE, A_FUNCTION, A_GRAPH, AN_EXEC } play_kind;
handle play_open_handle(play_kind kind, void *object, play_context *context);
void *play_find(play_kind kind, handle h); /* NULL, and misuse: it is none, or is destroyed */
void play_close_handle(handle h);
/* Of a context that ends. */
void play_close_handles(const play_context *context, void (*close)(play_kind kind, void *object));

/* --- settings.c --- */

typedef struct play_settings {
    int capability, n_chips, n_units, driver; /* capability: 90 of 9.0 */
    size_t memory;
    bool is_slice, has_peers;
    char name[64];
    unsigned long long order;
} play_settings;
extern play_settings play_set;

void play_read_settings(void);
int play_failure(play_call call, unsigned long long n_calls); /* of this call; 0: none */
bool play_hangs(play_call call, unsigned long long n_calls);
bool play_is_missing(const char *name);
size_t play_others(void); /* counts as a call about memory */

/* --- counts.c --- */

typedef struct play_counts {
    unsigned long long calls[N_CALLS];
    unsigned long long kernels, products, graph_work; /* that were done; graph_work: by graphs */
    unsigned long long to_device, to_host, on_device, to_device_bytes, to_host_bytes;
    unsigned long long unpinned; /* copies of memory that is not pinned */
    unsigned long long misuse, most_used_bytes;
} play_counts;
extern play_counts play_count;

__attribute__((format(printf, 1, 2))) void play_misuse(const char *format, ...);

/* --- memory.c --- */

typedef struct play_block {
    address at;
    size_t bytes, taken; /* taken: of the device's memory; 0: the host's, pinned */
    void *map;
    size_t map_bytes;
    cl_mem memory;
    play_context *context;
} play_block;

/* The block that an address lies in, its end too; NULL: nobody's. */
play_block *play_block_of(address p);
bool play_is_on_device(address p, size_t bytes);
void play_free_blocks(const play_context *context);

/* --- streams.c --- */

typedef enum play_what { DO_NOTHING, DO_KERNEL, DO_COPY, DO_FILL, DO_RECORD, DO_LIST, DO_HOST } play_what;

typedef struct play_deed { /* what is done, in a stream or in a graph */
    play_what what;
    struct play_function *function; /* DO_KERNEL */
    unsigned n_groups[3], group[3];
    char *values; /* arguments one after the other, by the function's list; data of DO_HOST */
    address dst, src;
    size_t bytes;
    void *staged; /* instead of src */
    unsigned char byte;
    struct play_event *event;
    uint64_t number; /* of the recording */
    struct play_list *list;
    void (*run)(void *data);
    play_range *range;
    int n_ranges;
} play_deed;

typedef struct play_list { /* a graph's work */
    int n_references, n, capacity;
    play_deed *deed;
} play_list;

typedef struct play_after { /* that stream's work, up to that number, is done first */
    struct play_stream *stream;
    uint64_t number;
} play_after;

typedef struct play_work {
    struct play_work *next;
    uint64_t number;
    play_after *after;
    int n_after;
    play_deed deed;
    int fails; /* with that code */
    bool hangs;
} play_work;

typedef struct play_stream {
    struct play_stream *next;
    play_context *context;
    handle self;
    int index;
    bool is_hasty, is_blocking; /* blocking: in the order of the stream NULL */
    play_work *first, *last;
    uint64_t n_enqueued, n_done;
    play_after *wait; /* for what is enqueued next */
    int n_waits;
    struct play_capture *capture;
} play_stream;

typedef struct play_event {
    int n_references;
    bool has_time, is_captured;
    play_stream *stream; /* of the last recording; NULL: none */
    uint64_t number;
    int64_t done_ns;
} play_event;

/* NULL, and misuse: there is none of that handle. NULL's own is the legacy stream. */
play_stream *play_stream_of(handle h);
play_stream *play_add_stream(play_context *context, bool is_blocking);
/* Takes what the deed owns. In a stream that captures it is recorded. */
int play_enqueue(play_stream *stream, play_deed *deed, bool hangs);
void play_wait_for(play_stream *stream, play_stream *after, uint64_t number);
/* Does one piece of work, towards that one. False: nothing can go on. */
bool play_step(play_stream *stream, uint64_t number);
/* All of it up to that number. */
int play_finish(play_stream *stream, uint64_t number, const char *call);
int play_finish_all(const play_context *context, const char *call);
bool play_is_busy(const play_stream *stream);
void play_free_streams(play_context *context);
void play_release_event(play_event *event);
/* Whether pending work reads that memory of the host. */
bool play_is_read(const play_context *context, const void *p, size_t bytes);

/* --- graphs.c --- */

typedef struct play_capture {
    play_list *list;
    int mode;
    pthread_t thread;
    bool is_invalid;
} play_capture;

typedef struct play_exec {
    play_list *list;
    play_stream *stream; /* of its last launch */
    uint64_t number;
} play_exec;

int play_record(play_stream *stream, play_deed *deed); /* takes it */
/* A call that may not be while this thread captures: makes that capture invalid, and returns 900; or WELL. */
int play_refuse_in_capture(void);
int play_break_capture(play_stream *stream, int code); /* returns the code */
void play_release_list(play_list *list);
void play_close_graph(void *list);
void play_close_exec(void *exec);
void play_free_capture(play_capture *capture);

/* --- modules.c --- */

typedef struct play_function {
    struct play_module *module;
    char name[96];
    char arguments[72]; /* a letter each: opencl.h */
    unsigned group[3];
    int local_bytes;
    cl_kernel kernel;
    handle self;
} play_function;

typedef struct play_module {
    int n_references, n_functions;
    bool is_unloaded;
    play_function *function;
    cl_program program;
} play_module;

void play_close_module(void *module); /* it is unloaded */
void play_release_module(play_module *module);

/* --- work.c --- */

int play_do(play_stream *stream, play_deed *deed);
void play_free_deed(play_deed *deed);
/* OpenCL's side, once; WELL, or NO_DEVICE. */
int play_open_opencl(void);

#endif
