/* Labels of files: by folder, or from a side file of lines "name<TAB or comma>label". Threads: one at a time. */
#ifndef STK_DATA_SOURCE_LABELS_H
#define STK_DATA_SOURCE_LABELS_H

#include "base/file.h"

typedef struct stk_file_labels {
    int32_t *label;    /* by file */
    char **class_name; /* sorted; NULL where labels are numbers */
    int64_t n_classes;
} stk_file_labels;

/* Each file's label is the name of the folder it lies in. Free *out with stk_labels_free, after an error too. */
stk_status stk_labels_by_folder(const stk_names *files, stk_file_labels *out);
/* From the lines of a file; a file without a line is an error, a line without a file is not. */
stk_status stk_labels_from_file(const stk_names *files, const char *path, stk_file_labels *out);
void stk_labels_free(stk_file_labels *labels);

#endif
