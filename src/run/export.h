/* What exports have in common: a run opened for reading only, and its checkpoint's tensors. */
#ifndef STK_RUN_EXPORT_H
#define STK_RUN_EXPORT_H

#include "base/arena.h"
#include "graph/graph.h"
#include "stoker/files/exchange.h"
#include "stoker/files/safetensors.h"

typedef struct stk_export_source {
    stk_run *run;
    stk_graph *graph; /* the model's; borrowed from run */
    stk_safetensors_file *weights;
    int64_t step;      /* of the checkpoint */
    stk_arena *loaded; /* NULL: no tensor's numbers are in memory */
} stk_export_source;

stk_status stk_export_open(const char *folder, const stk_run_options *run_options, stk_export_source *out);
void stk_export_close(stk_export_source *source); /* accepts an empty one */
/* A variable's tensor, checked against the graph. Borrowed until the source is closed. */
stk_status stk_export_tensor(const stk_export_source *source, const stk_node *variable, stk_safetensor *out);
/* Its numbers, in memory until the source is closed. */
stk_status stk_export_load(stk_export_source *source, const stk_node *variable, const void **out);
/* out, or where it is NULL, folder/name. */
stk_status stk_export_path(const char *folder, const char *name, const char *out, char path[STK_EXCHANGE_TEXT]);

#endif
