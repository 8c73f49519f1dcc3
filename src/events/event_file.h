/* TensorBoard's event files: records of TFRecord framing, each an Event message, each one write, so that a reader
 * next to the run never sees half of one for long, and a run that is killed leaves at most a torn tail, which readers
 * pass over. Formats: tensorflow/core/util/event.proto, framework/summary.proto, graph.proto; tensorboard's
 * plugins/<name>/metadata.py.
 *
 *   stk_event_begin(file, step);
 *   stk_event_add_scalar(file, "train/loss", true, 0.5);
 *   stk_event_end(file);
 *
 * Adding fails silently; the end tells. A record that cannot be written is lost as a whole.
 * Threads: one at a time for each file.
 */
#ifndef STK_EVENTS_EVENT_FILE_H
#define STK_EVENTS_EVENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

typedef struct stk_event_file stk_event_file;

/* Removes the event files of a folder, and nothing else; no error where there is no folder. */
stk_status stk_event_files_remove(const char *folder);

/* Makes folder and a new file in it, whose name sorts behind those that are there. step > 0: the run goes on behind
 * that step, and readers forget what earlier files hold of later ones. */
stk_status stk_event_file_open(const char *folder, int64_t step, stk_event_file **out);
void stk_event_file_close(stk_event_file *file); /* accepts NULL */
/* Borrowed until close. */
const char *stk_event_file_path(const stk_event_file *file);

/* Begins a record of values at a step. */
void stk_event_begin(stk_event_file *file, int64_t step);
/* Writes it; does nothing where no value was added. */
stk_status stk_event_end(stk_event_file *file);

/* is_first: of this tag in this file; only then the value says which plugin it is for. */
void stk_event_add_scalar(stk_event_file *file, const char *tag, bool is_first, double value);
/* Markdown. */
void stk_event_add_text(stk_event_file *file, const char *tag, bool is_first, const char *text);
/* The finite ones of n numbers, in STK_EVENT_BUCKETS equal parts of their range. Nothing where there is none. */
enum { STK_EVENT_BUCKETS = 30 };
void stk_event_add_histogram(stk_event_file *file, const char *tag, bool is_first, const float *x, size_t n);
/* n PNG files of one size, in pixels. */
typedef struct stk_event_image {
    const uint8_t *png;
    size_t n_bytes;
} stk_event_image;
void stk_event_add_images(stk_event_file *file, const char *tag, bool is_first, const stk_event_image *image, int n,
                          int64_t height, int64_t width);

/* A graph for the graph view: nodes by name; '/' in a name makes groups. Inputs are numbers of nodes. */
typedef struct stk_event_node {
    const char *name, *op; /* borrowed until the call returns */
    const int *input;
    int n_inputs;
    const int64_t *shape; /* of the first output; -1: open */
    int rank;             /* -1: not known */
} stk_event_node;
stk_status stk_event_write_graph(stk_event_file *file, const stk_event_node *node, int n);

#endif
