/* Which side index of entry points a data set uses, and learning one; see stoker/data/index.h. */
#include "stoker/data/index.h"
#include "base/error.h"
#include "data/dataset/dataset.h"
#include "data/source/mcu_index.h"

/* NULL: the data set has an error, or gets one. */
static stk_entry_points *find_points(stk_dataset *dataset)
{
    if (dataset->status != STK_OK) return NULL;
    stk_source *source = dataset->source;
    stk_entry_points *points = source->class->points ? source->class->points(source) : NULL;
    if (!points)
        stk_fail(STK_UNSUPPORTED, "source '%s' uses no index of entry points", source->class->name);
    else if (!points->folder)
        stk_fail(STK_INVALID, "an index is of one folder, and the files are given otherwise");
    else
        return points;
    stk_dataset_keep_error(dataset, points ? STK_INVALID : STK_UNSUPPORTED);
    return NULL;
}

void stk_dataset_index(stk_dataset *dataset, const char *path)
{
    if (!dataset) return;
    if (dataset->status != STK_OK) return;
    const stk_source_class *class = dataset->source->class;
    if (!path && class->drop_entries) class->drop_entries(dataset->source);
    if (!path && !class->points) return;
    stk_entry_points *points = find_points(dataset);
    if (!points) return;
    stk_mcu_index_close(points->mcu_index);
    points->mcu_index = NULL;
    stk_dataset_keep_error(dataset, stk_entries_use(points->folder, path, &points->known));
}

void stk_dataset_index_auto(stk_dataset *dataset)
{
    if (!dataset) return;
    if (dataset->status == STK_OK && dataset->source->class->drop_entries) return; /* all is known */
    stk_entry_points *points = find_points(dataset);
    if (!points || points->mcu_index) return;
    stk_dataset_keep_error(dataset,
                           stk_mcu_index_open(dataset->source, points->folder, &points->known, &points->mcu_index));
}

bool stk_dataset_index_progress(const stk_dataset *dataset, stk_index_progress *out)
{
    if (!dataset || !out) return false;
    *out = (stk_index_progress){0};
    stk_source *source = dataset->source;
    stk_entry_points *points = source && source->class->points ? source->class->points(source) : NULL;
    if (!points || !points->mcu_index) return false;
    stk_mcu_index_get_progress(points->mcu_index, out);
    return true;
}
