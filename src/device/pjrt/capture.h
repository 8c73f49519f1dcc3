/* The inside of a capture, which capture.c, loop.c and launch.c share: pjrt.h. Threads: the device's. */
#ifndef STK_DEVICE_PJRT_CAPTURE_H
#define STK_DEVICE_PJRT_CAPTURE_H

#include "device/pjrt/lowering.h"
#include "device/pjrt/pjrt.h"

/* A value at an address. */
typedef struct pjrt_live {
    char *address;
    size_t bytes;
    pjrt_value value;
    bool written; /* by an entry; else it is an argument */
    bool inside;  /* of the loop, which does not give it yet: pjrt_take_out */
} pjrt_live;

typedef struct pjrt_live_list {
    pjrt_live *at;
    int n, n_slots;
} pjrt_live_list;

/* An argument or a result. */
typedef struct pjrt_site {
    pjrt_block *block;
    char *address;
    size_t bytes;
    pjrt_value value;
    int i_result; /* of an argument: the result that takes its memory; -1: none */
} pjrt_site;

/* Entries that stand there again and again, once for each micro-batch. */
typedef struct pjrt_body {
    const stk_entry *entry; /* [n_turns][n] */
    int n, n_turns;
} pjrt_body;

/* A value that goes from turn to turn of a loop. */
typedef struct pjrt_carried {
    char *address;        /* where the body finds it; NULL: nowhere */
    pjrt_value start, in; /* before the loop; in a turn, from the one before */
    pjrt_value next, out; /* at the end of a turn; behind the loop */
} pjrt_carried;

/* The body as a loop. While it is open the module's text is what follows on it. */
typedef struct pjrt_loop {
    stk_text before, inside;
    pjrt_carried *carried; /* the first counts turns; none: no loop is open */
    int n_carried, n_slots;
} pjrt_loop;

struct stk_capture {
    pjrt_device *device;
    pjrt_module module; /* its text while it is made, or for a chip that is not here; its checks stay */
    stk_comm *comm;     /* of the ranks that run it together, borrowed; NULL: it runs alone */
    uint64_t text_hash;
    const stk_entry *entry; /* [n_entries], borrowed */
    int n_entries;
    pjrt_live_list live;
    pjrt_body body; /* of the loop; n_turns is 0 where there is none */
    pjrt_loop loop;
    pjrt_site *argument, *result;
    int n_arguments, n_argument_slots, n_results;
    bool is_whole;     /* results are listed */
    pjrt_value checks; /* all of the module's, where there are any */
    pjrt_compiled *compiled;
    pjrt_buffer **argument_buffer, **result_buffer; /* one more result where there are checks */
    int64_t *not_donated;
};

/* --- capture.c --- */

bool pjrt_overlaps(const pjrt_live *live, const char *address, size_t bytes);
/* Nothing of the list lies there. */
void pjrt_forget(pjrt_live_list *list, const char *address, size_t bytes);
stk_status pjrt_note(pjrt_live_list *list, pjrt_live live);
/* Whether a value of the list covers it: *out is that, or its part. */
bool pjrt_find_value(stk_capture *c, pjrt_live_list *list, const char *address, stk_tensor_desc desc, pjrt_value *out);
/* What lies there: a value that was written, or an argument. */
stk_status pjrt_read_value(stk_capture *c, char *address, stk_tensor_desc desc, pjrt_value *out);
/* The call of an entry that is the device's own. */
stk_status pjrt_get_call(const stk_entry *entry, const stk_op_call **out);
/* Some inputs are there for their shapes alone. */
bool pjrt_is_read(stk_op op, int i);
stk_status pjrt_lower_entry(stk_capture *c, const stk_entry *entry, int n_in, const pjrt_value *in, pjrt_value *out);

/* --- loop.c --- */

/* False: none do. *first: where they begin. */
bool pjrt_find_body(const stk_entry *entries, int n_entries, int *first, pjrt_body *out);
/* Makes arguments of what is another part of an input in each turn: of the whole input. */
stk_status pjrt_read_inputs(stk_capture *c, const pjrt_body *body);
/* Writes the body once, as a loop. STK_UNSUPPORTED: that cannot be, and the capture is as it was. */
stk_status pjrt_lower_loop(stk_capture *c, const pjrt_body *body);
/* Has the loop give a value of its body as of the last turn. */
stk_status pjrt_take_out(stk_capture *c, pjrt_value *value);
/* Writes the loop, where there is one, into the module's text. */
void pjrt_close_loop(stk_capture *c);
void pjrt_free_loop(pjrt_loop *loop);

#endif
