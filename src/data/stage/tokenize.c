/* Text to tokens. See stoker/data/text.h. */
#include <string.h>

#include "base/error.h"
#include "data/stage/stage_list.h"
#include "data/text/tokenizer.h"
#include "stoker/data/text.h"

typedef struct tokenize_params {
    stk_tokenizer *tokenizer; /* a reference of its own */
    stk_tokenize_config config;
} tokenize_params;

stk_tokenize_config stk_tokenize_config_default(void)
{
    return (stk_tokenize_config){.special = true, .pad_id = -1};
}

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const tokenize_params *p = params;
    char text[STK_SHAPE_TEXT_BYTES];
    if (in->kind != STK_FIELD_ARRAY) return stk_fail(STK_INVALID, "needs text, u8[?], not encoded bytes");
    if (in->desc.dtype != STK_U8 || in->desc.shape.rank != 1)
        return stk_fail(STK_INVALID, "needs text, u8[?], not %s", stk_desc_text(in->desc, text));
    int64_t n = p->config.pad ? p->config.length : STK_ANY;
    *out = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(STK_I32, STK_SHAPE(n))};
    return STK_OK;
}

/* That many tokens are wanted. */
static size_t most_of(const stk_tokenize_config *config)
{
    return config->length ? (size_t)config->length : SIZE_MAX;
}

/* Where samples differ in length this one's is found by making its tokens. */
static stk_status measure(const void *params, const stk_stage_key *key, const stk_item *in, stk_field_type *out)
{
    const tokenize_params *p = params;
    size_t n, most = most_of(&p->config);
    stk_scratch scratch = {0};
    stk_span text = {in->data, in->n_bytes};
    (void)key;
    STK_RETURN_IF_ERROR(plan(params, &in->type, out));
    if (!in->data && in->type.desc.shape.dim[0] != 0)
        return stk_fail(STK_UNSUPPORTED, "tokens of any number can be made by the first stage only: give 'tokenize' a "
                                         "length to fill up to");
    stk_status status = stk_tokenizer_run(p->tokenizer, text, p->config.special, false, &scratch, NULL, 0, &n);
    stk_scratch_free(&scratch);
    out->desc.shape.dim[0] = (int64_t)(n < most ? n : most);
    return status;
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const tokenize_params *p = params;
    size_t n, room = (size_t)out->type.desc.shape.dim[0];
    int32_t *ids = out->data;
    (void)key;
    /* Without a limit all tokens were counted; with one they may be cut, and the special ones stay. */
    bool cut = p->config.length != 0;
    stk_span text = {in->data, in->n_bytes};
    STK_RETURN_IF_ERROR(stk_tokenizer_run(p->tokenizer, text, p->config.special, cut, scratch, ids, room, &n));
    for (; n < room; n++)
        ids[n] = p->config.pad_id;
    return STK_OK;
}

static void close_params(void *params)
{
    stk_tokenizer_free(((tokenize_params *)params)->tokenizer);
}

static const char *const no_paths[] = {"bytes", NULL};
static const stk_key keys[] = {
    {.name = "tokenizer",
     .type = STK_KEY_TEXT,
     .is_path = true,
     .words = no_paths,
     .required = true,
     .doc = "bytes, or a tokenizer.json, vocab.json (with merges.txt next to it), vocab.txt or the folder of one."},
    {.name = "length",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1 << 24,
     .doc = "Tokens of a sample at most; what is more is left out. Default: all."},
    {.name = "pad",
     .type = STK_KEY_BOOL,
     .doc = "Whether samples are filled up to length; otherwise they differ in length, for the key pad. Default: true "
            "with a length."},
    {.name = "special",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc = "Whether with the tokens that the tokenizer puts around a text, as [CLS] and [SEP]."},
    {.name = "pad_id",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 2147483647,
     .doc = "The token that fills up. Default: the tokenizer's [PAD], <pad>, <|pad|> or <|endoftext|>, else 0."},
    {.name = "lowercase",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc = "For vocab.txt: lower case, without accents."},
    STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    const stk_yaml_node *path = stk_yaml_get(settings, "tokenizer"), *length = stk_yaml_get(settings, "length"),
                        *pad = stk_yaml_get(settings, "pad");
    stk_tokenizer_config opening = {.lowercase = stk_yaml_bool(settings, "lowercase")};
    stk_tokenize_config config = {.length = stk_yaml_int(settings, "length", 0),
                                  .pad = pad ? pad->truth : length != NULL,
                                  .special = stk_yaml_bool(settings, "special"),
                                  .pad_id = (int32_t)stk_yaml_int(settings, "pad_id", -1)};
    stk_tokenizer *tokenizer;
    STK_RETURN_IF_ERROR(stk_yaml_locate(path, stk_tokenizer_open(path->text, &opening, &tokenizer)));
    *out = stk_tokenize(tokenizer, &config);
    stk_tokenizer_free(tokenizer);
    return STK_OK;
}

const stk_stage_class stk_stage_tokenize = {.key = {.name = "tokenize",
                                                    .type = STK_KEY_MAP,
                                                    .keys = keys,
                                                    .doc = "Text to token numbers; works on the field text."},
                                            .build = build,
                                            .field = "text",
                                            .params_bytes = sizeof(tokenize_params),
                                            .plan = plan,
                                            .measure = measure,
                                            .run = run,
                                            .close = close_params};

/* What files call the token that fills up. */
static int32_t find_pad(const stk_tokenizer *tokenizer)
{
    static const char *const names[] = {"[PAD]", "<pad>", "<|pad|>", "<|endoftext|>"};
    int32_t id = -1;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && id < 0; i++)
        id = stk_tokenizer_find(tokenizer, names[i]);
    return id < 0 ? 0 : id;
}

stk_stage *stk_tokenize(stk_tokenizer *tokenizer, const stk_tokenize_config *config)
{
    enum { MOST = 1 << 24 };
    tokenize_params p = {.tokenizer = tokenizer, .config = config ? *config : stk_tokenize_config_default()};
    int n_special = 0;
    if (!tokenizer) return stk_stage_new_failed(STK_INVALID, "tokenize: the tokenizer is missing");
    if (p.config.special) n_special = tokenizer->n_before + tokenizer->n_after;
    if (p.config.length < 0 || p.config.length > MOST)
        return stk_stage_new_failed(STK_INVALID, "tokenize: the length must be 0 to %d", MOST);
    if (p.config.pad && !p.config.length)
        return stk_stage_new_failed(STK_INVALID, "tokenize: to be filled up it needs a length");
    if (p.config.length && p.config.length < n_special)
        return stk_stage_new_failed(STK_INVALID, "tokenize: a length of %lld leaves no room for %d special tokens",
                                    (long long)p.config.length, n_special);
    if (p.config.pad_id < 0) p.config.pad_id = find_pad(tokenizer);
    stk_stage *stage = stk_stage_new(&stk_stage_tokenize, &p);
    if (stage->status == STK_OK) stk_tokenizer_share(tokenizer);
    return stage;
}
