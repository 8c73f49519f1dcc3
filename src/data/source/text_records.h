/* The sources of stoker/text.h. */
#ifndef STK_DATA_SOURCE_TEXT_RECORDS_H
#define STK_DATA_SOURCE_TEXT_RECORDS_H

#include "base/file.h"
#include "data/source/source.h"
#include "stoker/text.h"

stk_status stk_source_open_tokens(const char *const *paths, int n_paths, const stk_tokens_config *config,
                                  stk_source **out);

/* What 'NAME.json' beside a file of tokens says. Fuzzed. */
typedef struct stk_tokens_facts {
    stk_token_type type;
    int64_t vocabulary; /* 0: not said */
} stk_tokens_facts;
stk_status stk_tokens_facts_parse(stk_span json, stk_tokens_facts *out);

#endif
