/* A graph on the cpu device and on the reference device, for fuzz targets that run what they build.
 *
 * Node by node, each with the same inputs, which are the reference's: what differs is then the fault of that op's
 * kernel, and nothing grows from node to node. After that as a whole program, with all passes. Each value has memory of
 * exactly its size, so that the address sanitizer sees each step beyond it. Aborts, with the node, on what must not be.
 * Threads: one at a time.
 */
#ifndef STK_TESTS_FUZZ_BOTH_DEVICES_H
#define STK_TESTS_FUZZ_BOTH_DEVICES_H

#include "fuzz/draw.h"
#include "graph/graph.h"

/* Numbers of the leaf of that name, [desc]; NULL: they are made from the draw. Borrowed until fuzz_run_both returns. */
typedef const void *(*fuzz_content)(const void *user, const char *name, stk_tensor_desc desc);

/* Does nothing for graphs that are too large to run in milliseconds. All shapes must be known. */
void fuzz_run_both(const stk_graph *graph, fuzz_draw *draw, fuzz_content content, const void *user);

/* How large a graph is run: bytes of all values, operations. */
enum { FUZZ_MOST_BYTES = 1 << 20, FUZZ_MOST_FLOPS = 1000000 };

#endif
