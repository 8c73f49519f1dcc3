/* Data sets of samples that come one after the other: what they can do. See stk_dataset_generator in
 * stoker/data/custom.h.
 */
#include <string.h>

#include "base/error.h"
#include "data/dataset/dataset.h"
#include "data/source/generator.h"

/* What can be done by moving forward alone; each pass of a repeat is an epoch of the generator's. */
static const char *const forward[] = {"take", "skip", "shard", "shard_hint", "repeat", "rename", "batch"};

static bool is_forward(const char *what)
{
    for (size_t i = 0; i < sizeof(forward) / sizeof(*forward); i++)
        if (!strcmp(forward[i], what)) return true;
    return false;
}

bool stk_dataset_has_numbers(stk_dataset *dataset, const char *what)
{
    stk_status status = STK_OK;
    if (!dataset->source->in_order) return true;
    if (!is_forward(what))
        status = stk_fail(STK_INVALID,
                          "'%s' asks for samples by number, and a generator's come one after the other: make them by "
                          "number (stk_dataset_function)",
                          what);
    else if (dataset->source->is_open && !strcmp(what, "repeat"))
        status = stk_fail(STK_INVALID, "cannot repeat a generator that does not say how many samples it has: give "
                                       "'n_samples', or open a loader for each epoch");
    return stk_dataset_keep_error(dataset, status) == STK_OK;
}

stk_dataset *stk_dataset_generator(const stk_array_field *fields, int n_fields, const stk_sample_generator *generator)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_generator(fields, n_fields, generator, &source);
    return stk_dataset_make(status, source);
}
