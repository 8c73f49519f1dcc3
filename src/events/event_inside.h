/* The event file's struct, shared by event_file.c, event_values.c and event_cut.c. */
#ifndef STK_EVENTS_EVENT_INSIDE_H
#define STK_EVENTS_EVENT_INSIDE_H

#include "events/event_file.h"
#include "events/proto.h"

struct stk_event_file {
    int fd;
    char path[4096];
    int64_t n_bytes; /* of whole records */
    stk_text record; /* the one being made, from its header on; its memory is used again */
    size_t summary;  /* where its values begin */
};

/* Appends the nodes of a GraphDef. */
void stk_event_add_nodes(stk_text *out, const stk_event_node *node, int n);

/* Cuts what the folder's files hold of later steps. */
stk_status stk_event_files_cut(const char *folder, int64_t step);

#endif
