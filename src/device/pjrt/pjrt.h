/* The inside of the device 'pjrt': programs as one StableHLO module each, which a PJRT plug-in compiles and runs.
 *
 *   plugin.c    finds and loads plug-ins; calls them, and turns their errors into ours
 *   busy.c      who has the TPU where another process does
 *   device.c    the table: devices, kernels that are only a note of their call
 *   memory.c    addresses without memory, and the plug-in's buffers that stand for what lies there
 *   module.c    the text of a module (module.h); lower/ has a file for each family of ops
 *   capture.c   a list of entries as a module: what is read before it is written are its arguments, what the program
 *               leaves behind its results
 *   loop.c      micro-batches as a loop in it (capture.h)
 *   launch.c    launching it: what lies at the addresses of arguments and results
 *   executable.c   modules compiled, once for each text, and kept on disk; running them
 *   team.c      ranks of one process that run one program together, each on a chip of its own
 *   hosts.c     ranks that are processes, with a chip each
 *   absent.c    chips that are not here ("tpu:v5e:2x2"), for which programs are only compiled
 *   compile.c   XLA's options; compiling for chips that are not here
 *   queue.c     queues and events
 *
 * A kernel never runs by itself. The addresses that entries name are only names: a capture follows which value lies at
 * which address, so that the arena does not exist on the device and XLA places what is in between.
 */
#ifndef STK_DEVICE_PJRT_PJRT_H
#define STK_DEVICE_PJRT_PJRT_H

#include "base/text.h"
#include "comm/comm.h"
#include "device/pjrt/interface.h"
#include "device/pjrt/module.h"
#include "device/queue.h"

/* --- plug-ins (plugin.c) --- */

/* Processes that were launched together, of which this is one. */
typedef struct pjrt_hosts {
    struct stk_store *store; /* comm/store.h; NULL: this process is alone */
    int number;              /* of the plug-in, alike in all of them */
    int rank, n_ranks;
} pjrt_hosts;

typedef struct pjrt_plugin {
    char path[512];
    int foreign; /* its number (base/foreign.h) */
    const pjrt_api *api;
    pjrt_client *client;
    pjrt_chip *const *chip; /* the client's */
    int n_chips;
    char platform[64]; /* "cpu", "tpu" */
    char version[128]; /* its first line */
    bool can_serialize;
    pjrt_hosts hosts;
} pjrt_plugin;

/* Loads the plug-in that "tpu", a name, or a path (with a '/') means, once in the process; it stays. NULL: that of
 * STOKER_PJRT_PATH. Threads: any. */
stk_status pjrt_load(const char *name, const pjrt_plugin **out);
/* The same without its devices, of which none need be here: to compile alone. Threads: one at a time. */
stk_status pjrt_load_compiler(const char *name, pjrt_plugin *out);
/* Plug-ins that were asked for by name or path have numbers, in turn. The class 'pjrt' means these; where there are
 * none, the chips of STOKER_PJRT_PATH. Threads: any. */
stk_status pjrt_find(const char *name, int *number);
int pjrt_n_named(void);
const pjrt_plugin *pjrt_get_named(int number);
/* Calls a function; its error becomes ours, with the plug-in's text behind `doing`. */
stk_status pjrt_call(const pjrt_plugin *plugin, enum pjrt_slot slot, void *args, const char *doing);
/* The same where a failure helps nobody. */
void pjrt_call_quietly(const pjrt_plugin *plugin, enum pjrt_slot slot, void *args);
/* A failure whose text says that another process has the TPU: which one, and what to do. Others stay as they are. */
stk_status pjrt_explain_busy(stk_status status);
void pjrt_destroy_buffer(const pjrt_plugin *plugin, pjrt_buffer *buffer); /* accepts NULL */
void pjrt_destroy_event(const pjrt_plugin *plugin, pjrt_event *event);    /* accepts NULL */

/* --- devices and memory --- */

/* A buffer of the plug-in's, which may stand for several places: it never changes. */
typedef struct pjrt_content {
    pjrt_buffer *buffer;
    stk_tensor_desc desc;
    int n_users;
} pjrt_content;

/* A part of an allocation. While `content` is there it counts, and not the host's bytes at the address. */
typedef struct pjrt_item {
    char *address;
    size_t bytes;
    pjrt_content *content;
} pjrt_item;

typedef struct pjrt_block {
    char *address; /* pages of the host that stay untouched, unless bytes come for which nothing tells a type */
    size_t bytes;
    bool scratch; /* STK_MEMORY_SCRATCH */
    pjrt_item *item;
    int n_items, n_slots;
} pjrt_block;

/* A program that was compiled, by its text. Threads: the device's. */
typedef struct pjrt_compiled {
    char *text;
    pjrt_executable *executable;
    int64_t compile_ns; /* 0: it was found */
    int n_users;
    struct pjrt_compiled *next;
} pjrt_compiled;

typedef struct pjrt_device {
    stk_device base;
    const pjrt_plugin *plugin;
    pjrt_chip *chip; /* NULL: it is absent */
    int i_chip;      /* of the plug-in's */
    stk_device_caps caps;
    pjrt_block **block; /* [n_blocks], in the order of their addresses */
    int n_blocks, n_block_slots;
    pjrt_compiled *compiled;
    stk_status failed; /* of the first work that failed */
    char failure[1024];
} pjrt_device;

stk_status pjrt_alloc(stk_device *device, size_t bytes, stk_memory_kind kind, void **out);
void pjrt_free(stk_device *device, void *p, size_t bytes);
void pjrt_free_blocks(pjrt_device *device);
/* The block of an address; NULL: there is none. */
pjrt_block *pjrt_find_block(const pjrt_device *device, const void *address);
/* What lies at [address, + bytes) of a block as a buffer of that type, which the block keeps. Borrowed. */
stk_status pjrt_get_content(pjrt_device *device, pjrt_block *block, char *address, stk_tensor_desc desc,
                            pjrt_content **out);
/* From now on that lies there. Takes a use of content, also on failure. */
stk_status pjrt_put_content(pjrt_device *device, pjrt_block *block, char *address, size_t bytes, pjrt_content *content);
/* Takes the buffer, also on failure. */
stk_status pjrt_new_content(pjrt_device *device, pjrt_buffer *buffer, stk_tensor_desc desc, pjrt_content **out);
void pjrt_drop_content(pjrt_device *device, pjrt_content *content); /* accepts NULL */
/* The host's bytes to the device's address. */
stk_status pjrt_write(pjrt_device *device, char *dst, const char *src, size_t bytes);
stk_status pjrt_move(pjrt_device *device, char *dst, const char *src, size_t bytes);
/* Begins to bring bytes to the host: what is under way goes to the queue. */
stk_status pjrt_read(pjrt_device *device, stk_queue *queue, char *dst, const char *src, size_t bytes);
/* Begins to copy a buffer to the host. *done is the plug-in's event. */
stk_status pjrt_to_host(pjrt_device *device, pjrt_content *content, void *dst, pjrt_event **done);
pjrt_type pjrt_type_of(stk_dtype dtype);

/* --- queues (queue.c) --- */

/* Work that is under way. Shared by a queue and events. */
typedef struct pjrt_work {
    pjrt_event *event;
    pjrt_content *content; /* what it reads; NULL: none */
    int32_t *ids;          /* [n_checks]: what a program found, see pjrt_check; owned; NULL: none */
    pjrt_check *check;     /* [n_checks], owned */
    int n_checks;
    int n_users;
} pjrt_work;

/* Takes the event and a use of content, also on failure. */
stk_status pjrt_add_work(stk_queue *queue, pjrt_work work);
/* Keeps the first failure with its text. */
stk_status pjrt_keep_failure(pjrt_device *device, stk_status status);
extern const stk_queue_class pjrt_queues;

/* --- captures (capture.c; pjrt_launch: launch.c) --- */

stk_status pjrt_capture(stk_device *device, const stk_entry *entries, int n_entries, stk_capture **out);
stk_status pjrt_keep(stk_capture *capture, const stk_kept *kept, int n_kept);
void pjrt_release(stk_capture *capture);
stk_status pjrt_launch(stk_queue *queue, const stk_capture *capture, int *i_failed);
stk_status pjrt_print(stk_capture *capture, const stk_named_place *places, int n_places, stk_text *out);
stk_status pjrt_analyse(stk_capture *capture, stk_compiled_program *out);

/* --- executables (executable.c) --- */

/* Compiles for the chips of comm's ranks, or finds what was. text is taken or freed by the caller. The caller counts
 * n_users down. */
stk_status pjrt_get_compiled(pjrt_device *device, const stk_comm *comm, stk_text *text, pjrt_compiled **out);
void pjrt_free_compiled(pjrt_device *device);

/* One rank's part of a launch. */
typedef struct pjrt_launching {
    stk_comm *comm; /* NULL: it is alone */
    pjrt_device *device;
    pjrt_executable *executable; /* of the first rank */
    uint64_t text_hash;
    pjrt_buffer **argument, **result;
    int n_arguments;
    int64_t *not_donated; /* room for n_arguments */
    size_t n_not_donated;
    pjrt_event *done; /* filled */
    stk_status status;
    char error[1024];
} pjrt_launching;

/* Runs first's executable on the chips of n: others[0] is not looked at. */
stk_status pjrt_execute(pjrt_launching *first, pjrt_launching *const *others, int n);

/* --- ranks (team.c) --- */

stk_status pjrt_find_rank_kernel(stk_device *device, stk_comm *comm, const stk_op_call *call, stk_kernel *out);
/* All ranks of own->comm call it; each gets its results. */
stk_status pjrt_launch_together(pjrt_launching *own);

/* --- processes (hosts.c) --- */

/* Which processes there are: those of the communication that this one has opened. Threads: one at a time. */
stk_status pjrt_find_hosts(pjrt_hosts *out, int number);
/* Sets plugin->client; plugin stays where it is. */
stk_status pjrt_create_client(pjrt_plugin *plugin, bool is_tpu);
/* Tells the others of this process's chips, and refuses a client that does not see theirs. */
stk_status pjrt_join_hosts(pjrt_plugin *plugin);
/* id[n_ranks]: of the chip of each process that has this device's place among its own. */
stk_status pjrt_list_host_chips(const pjrt_device *device, int *id);
/* Whether ranks are processes. Accepts NULL. */
bool pjrt_is_of_hosts(const stk_comm *comm);
/* Whether the device's client was made for the processes of comm. */
stk_status pjrt_check_hosts(const pjrt_device *device, const stk_comm *comm);
/* Collective: all ranks must come, and say the same. */
stk_status pjrt_agree(stk_comm *comm, uint64_t text_hash);
/* Collective: this rank's part, on its own chip. */
stk_status pjrt_launch_part(pjrt_launching *own);

/* --- chips that are not here (absent.c) --- */

/* A topology's number, below 0, by its name: "v5e:2x2". Threads: any. */
stk_status pjrt_find_absent(const char *name, int *number);
stk_status pjrt_open_absent(const stk_device_class *class, int number, stk_device **out);
/* Of a topology: its chips; a chip's memory and speed by its maker's figures, zeros where they are not known. */
int pjrt_count_absent(const char *topology);
void pjrt_describe_absent(const char *topology, stk_compiled_program *out);

/* --- compiling (compile.c) --- */

/* XLA's options for a program that n replicas run, on the chips with those ids. */
void pjrt_print_options(const pjrt_plugin *plugin, const int *chip_id, int n, stk_text *out);
/* Borrows the text. */
pjrt_program pjrt_make_program(const stk_text *text);

/* Compiles the text of a module for an absent device, on n of its chips. */
/* What the compiler says of an executable's memory and costs, on one chip; costs are left out where it does not tell.
 */
stk_status pjrt_analyse_executable(const pjrt_plugin *compiler, pjrt_unloaded *executable, stk_compiled_program *out);
/* The same of what was compiled for a device that is here. */
stk_status pjrt_analyse_compiled(const pjrt_device *device, const pjrt_compiled *compiled, stk_compiled_program *out);
stk_status pjrt_compile_ahead(const pjrt_device *device, int n_replicas, const stk_text *module,
                              stk_compiled_program *out);

stk_status pjrt_get_chip_id(const pjrt_plugin *plugin, pjrt_chip *chip, int *id);

/* What a kernel is: its call. */
typedef struct pjrt_kernel {
    stk_comm *comm; /* of ranks; NULL: it is no op of theirs */
    stk_op_call call;
    stk_attrs attrs;
    stk_tensor_desc desc[]; /* inputs, then outputs */
} pjrt_kernel;

stk_status pjrt_make_kernel(const stk_op_call *call, stk_kernel *out);
/* Whether it was made here, and not by the engine, as what ranks do together. */
bool pjrt_is_own_kernel(const stk_kernel *kernel);

#endif
