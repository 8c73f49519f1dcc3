/* Data sets over the sources of stoker/text.h and stoker/csv.h. */
#include "data/dataset.h"
#include "data/source/csv.h"
#include "data/source/text_records.h"

stk_tokens_config stk_tokens_config_default(void)
{
    return (stk_tokens_config){.length = 1024};
}

stk_dataset *stk_dataset_tokens(const char *const *paths, int n_paths, const stk_tokens_config *config)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_tokens(paths, n_paths, config, &source);
    return stk_dataset_make(status, source);
}

stk_text_config stk_text_config_default(void)
{
    return (stk_text_config){0};
}

stk_dataset *stk_dataset_text(const char *const *paths, int n_paths, const stk_text_config *config)
{
    stk_source *source = NULL;
    stk_text_config standard = stk_text_config_default();
    stk_status status = stk_source_open_text(paths, n_paths, config ? config : &standard, &source);
    return stk_dataset_make(status, source);
}

stk_csv_config stk_csv_config_default(void)
{
    return (stk_csv_config){0};
}

stk_dataset *stk_dataset_csv(const char *const *paths, int n_paths, const stk_csv_config *config)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_csv(paths, n_paths, config, &source);
    return stk_dataset_make(status, source);
}
