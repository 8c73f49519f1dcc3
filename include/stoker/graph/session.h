/* Training loops of one's own: graphs as compiled steps that are run by hand, for several optimisers, for losses that
 * the host has a part in, for anything that is no pass over a data set (examples/07_gan.c, 08_reinforce.c).
 *
 *   session    one device, and the variables of all its steps: what two graphs call alike is one variable
 *   step       one graph, compiled: inputs are set by name, it is run, outputs are read by name
 *
 * The first error of a session is kept: after it calls do nothing, and stk_session_status gives it again, until
 * stk_session_forget. Threads: one at a time for each session.
 */
#ifndef STOKER_GRAPH_SESSION_H
#define STOKER_GRAPH_SESSION_H

#include "stoker/graph/graph.h"
#include "stoker/train/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_session stk_session;
typedef struct stk_session_step stk_session_step;

/* device: NULL: "cpu". n_threads 0: as many as cores. seed: of variables' first content, and of dropout. NULL only
 * where there is no memory at all, which all calls accept. */
STK_API stk_session *stk_session_new(const char *device, int n_threads, uint64_t seed);
STK_API void stk_session_free(stk_session *session); /* its steps, too; accepts NULL */
STK_API stk_status stk_session_status(const stk_session *session);
/* Forgets the error that is kept, for callers who have been told of it, so that calls do their work again. A graph that
 * was refused left nothing behind. A run that fails in what it was given, as by a label that is no class, left all
 * variables as they were but for batch norms' running statistics; one that fails by its device may have updated some. A
 * session that could not be opened stays as it is. */
STK_API void stk_session_forget(stk_session *session);

/* Adds to loss's graph, once a graph, an update of the trainable variables that loss, a float scalar, depends on. only:
 * names or patterns, comma-separated, as stk_param_group's ("generator" is all in that scope); the others stay as they
 * are, and their batch norms go by the running statistics. NULL: all. clip_norm: of all gradients together; 0: none. An
 * error is kept in the graph. */
STK_API void stk_minimize(stk_value loss, stk_optimizer optimizer, double clip_norm, const char *only);

/* Takes graph, whose shapes are all known. training: batch norm goes by the batch, dropout drops, variables are
 * updated; else it is as in evaluation. The step is the session's. NULL: after an error. */
STK_API stk_session_step *stk_session_compile(stk_session *session, stk_graph *graph, bool training);

/* Input and output number i >= 0 of the step, in the graph's order. STK_NO_ROW past the last one. name is borrowed from
 * the step. */
typedef struct stk_session_value {
    const char *name;
    stk_dtype dtype;
    stk_shape shape;
} stk_session_value;
STK_API stk_status stk_session_step_input(const stk_session_step *step, int i, stk_session_value *out);
STK_API stk_status stk_session_step_output(const stk_session_step *step, int i, stk_session_value *out);

/* What the input holds in the runs from now on: an array as the graph has it, borrowed until it is set again or the
 * session is freed, and changed only between runs. Inputs of dropout and optimisers ("seed", "sample", "step", "lr")
 * are set by the session. */
STK_API void stk_session_input(stk_session_step *step, const char *name, const void *data);
/* The learning rate of the runs from now on; at first the optimiser's. */
STK_API void stk_session_rate(stk_session_step *step, double lr);
/* Runs once and waits. Every input must be set. */
STK_API stk_status stk_session_run(stk_session_step *step);
/* The output of the step's last run, in the host's memory, as the graph has it; NULL where there is none of that name.
 * Borrowed until the session's next run. */
STK_API const void *stk_session_output(const stk_session_step *step, const char *name);
/* A scalar output, f32 or f64; NAN where there is none. */
STK_API double stk_session_scalar(const stk_session_step *step, const char *name);

#ifdef __cplusplus
}
#endif
#endif
