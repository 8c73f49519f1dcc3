/* What a run's data were like: fields, sizes, classes. It is RUN/data.json, and in the metadata of exports, so that a
 * network is built again, fed and read without the data (data/source/blank.h).
 *
 * A part whose source has a field 'image' is recorded as its source gives it, and its stages are the recipe's; any
 * other as it is after all stages, which are then left out: those of text need tokenizers. Not every recipe can be
 * recorded (batches of different lengths cannot); then the data are opened as ever.
 *
 * Threads: any number may read one record.
 */
#ifndef STK_RECIPE_DATA_RECORD_H
#define STK_RECIPE_DATA_RECORD_H

#include "data/dataset/dataset.h"
#include "recipe/recipe.h"

#define STK_DATA_RECORD_NAME "data.json"

typedef struct stk_data_record stk_data_record;

/* As JSON, appended to out, which stays as it is where the recipe cannot be recorded. part: NULL where there is none.
 * May read the first record of a part whose images differ in size. */
stk_status stk_data_record_print(const stk_recipe *recipe, const stk_dataset *const part[STK_N_PARTS], stk_text *out);
/* STK_CORRUPT tells what is wrong; name is what the text calls it. */
stk_status stk_data_record_parse(const char *name, const char *text, size_t n, stk_data_record **out);
/* RUN/data.json; *out is NULL where there is none. */
stk_status stk_data_record_read(const char *folder, stk_data_record **out);
void stk_data_record_free(stk_data_record *record); /* accepts NULL */

/* Samples of a part; 0: it has none. */
int64_t stk_data_record_count(const stk_data_record *record, int i_part);
/* A part's blank data set. *is_staged: its fields are as they are after all stages. */
stk_status stk_data_record_open(const stk_data_record *record, int i_part, stk_dataset **out, bool *is_staged);

#endif
