/* The sources of stoker/data/text.h. */
#ifndef STK_DATA_SOURCE_TEXT_RECORDS_H
#define STK_DATA_SOURCE_TEXT_RECORDS_H

#include "base/file.h"
#include "data/source/shards.h"
#include "data/source/source.h"
#include "stoker/data/text.h"

stk_status stk_source_open_tokens(const char *const *paths, int n_paths, const stk_tokens_config *config,
                                  stk_source **out);

stk_status stk_source_open_text(const char *const *paths, int n_paths, const stk_text_config *config, stk_source **out);

/* A record's bytes: in memory where its file is, else read into scratch. */
stk_status stk_shard_read(stk_shard_place place, stk_scratch *scratch, stk_span *record);
/* "'path', what n"; what NULL: the path alone. */
void stk_shard_name(stk_shard_place place, const char *what, int64_t n, char *out, size_t out_bytes);
/* Text is u8 with one open side. */
stk_source_field stk_text_field(const char *name);
stk_item stk_text_item(const stk_source_field *field, stk_span text);

/* What 'NAME.json' next to a file of tokens says. Fuzzed. */
enum { STK_TOKENS_FACTS_BYTES = 1 << 20 }; /* it has no more */
typedef struct stk_tokens_facts {
    stk_token_type type;
    int64_t vocabulary; /* 0: not said */
    int64_t n_tokens;   /* -1: not said */
} stk_tokens_facts;
stk_status stk_tokens_facts_parse(stk_span json, stk_tokens_facts *out);

#endif
