/* Windows of tokens out of files of u16 or u32 numbers. A window is read with one call; the two fields of a sample are
 * one array in memory, the second a token behind the first.
 *
 *     scratch[0]:   [ T + 1 tokens as i32 | the window as it is in the file ]
 */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_size.h"
#include "base/little.h"
#include "data/remote/remote.h"
#include "data/source/keys.h"
#include "data/source/paths.h"
#include "data/source/shards.h"
#include "data/source/source_list.h"
#include "data/source/text_records.h"

enum { HEADER_BYTES = 1024, MAGIC_U16 = 20240520, MAGIC_U32 = 20240801, MOST_TREE_BYTES = 16 << 20 };

typedef struct token_file {
    stk_input file;
    uint64_t data_at;
    size_t token_bytes;
    int64_t vocabulary; /* 0: any */
    int64_t n_windows;
    int64_t i_first; /* number of its first window over all files */
} token_file;

typedef struct tokens_source {
    stk_source base;
    token_file *file;
    int n_files;
    int64_t length, stride;
} tokens_source;

/* --- reading --- */

static const token_file *find_file(const tokens_source *s, int64_t i_record)
{
    int low = 0, high = s->n_files - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (i_record >= s->file[middle].i_first)
            low = middle;
        else
            high = middle - 1;
    }
    return &s->file[low];
}

/* The largest token, which tells whether all are within the vocabulary. */
static uint32_t widen(const uint8_t *src, size_t token_bytes, int64_t n, int32_t *dst)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t token = token_bytes == 2 ? stk_little16(src + 2 * i) : stk_little32(src + 4 * i);
        if (token > most) most = token;
        dst[i] = (int32_t)token;
    }
    return most;
}

static stk_status fail_token(int64_t first, const int32_t *token, int64_t limit)
{
    int64_t i = 0;
    while ((int64_t)(uint32_t)token[i] < limit)
        i++;
    return stk_fail(STK_CORRUPT, "token %lld is %u, which is not below %lld; is the dtype right?",
                    (long long)(first + i), (uint32_t)token[i], (long long)limit);
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const tokens_source *s = (const tokens_source *)source;
    const token_file *f = find_file(s, i_record);
    int64_t n = s->length + 1, first = (i_record - f->i_first) * s->stride;
    size_t n_raw = (size_t)n * f->token_bytes, n_scratch = (size_t)n * 4 + n_raw;
    int32_t *tokens = stk_scratch_get(&scratch[0], n_scratch);
    if (!tokens) return STK_NO_MEMORY;
    uint8_t *raw = (uint8_t *)(tokens + n);
    STK_RETURN_IF_ERROR(stk_input_read(&f->file, f->data_at + (uint64_t)first * f->token_bytes, raw, n_raw));
    int64_t most = widen(raw, f->token_bytes, n, tokens),
            limit = f->vocabulary ? f->vocabulary : (int64_t)INT32_MAX + 1;
    if (most >= limit) return fail_token(first, tokens, limit);
    size_t n_bytes = (size_t)s->length * 4;
    item[0] = (stk_item){source->field[0].type, tokens, n_bytes};
    item[1] = (stk_item){source->field[1].type, tokens + 1, n_bytes};
    return STK_OK;
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    const tokens_source *s = (const tokens_source *)source;
    const token_file *f = find_file(s, i_record);
    char where[48];
    int n = snprintf(where, sizeof(where), "', token %lld", (long long)((i_record - f->i_first) * s->stride));
    size_t room = out_bytes > (size_t)n + 2 ? out_bytes - (size_t)n - 2 : 0, n_path = strlen(f->file.path);
    snprintf(out, out_bytes, "'%s%s", f->file.path + (n_path > room ? n_path - room : 0), where);
}

static int64_t file_of(const stk_source *source, int64_t i_record)
{
    const tokens_source *s = (const tokens_source *)source;
    return find_file(s, i_record) - s->file;
}

static void close_source(stk_source *source)
{
    tokens_source *s = (tokens_source *)source;
    for (int i = 0; i < s->n_files; i++)
        stk_input_close(&s->file[i].file);
    free(s->file);
    free(s);
}

static const stk_source_class class_tokens = {
    .name = "tokens", .read = read_record, .name_record = name_record, .close = close_source, .file_of = file_of};

/* --- what the numbers are --- */

stk_status stk_tokens_facts_parse(stk_span json, stk_tokens_facts *out)
{
    json_error_t error;
    *out = (stk_tokens_facts){STK_TOKENS_AUTO, 0, -1};
    STK_RETURN_IF_ERROR(stk_json_check(json, MOST_TREE_BYTES));
    json_t *root;
    STK_RETURN_IF_ERROR(stk_json_parse(json.data, json.n, 0, &root, &error));
    const char *dtype = json_string_value(json_object_get(root, "dtype"));
    const json_t *vocabulary = json_object_get(root, "vocabulary"), *tokens = json_object_get(root, "tokens");
    stk_status status = STK_OK;
    if (dtype && !strcmp(dtype, "u16"))
        out->type = STK_TOKENS_U16;
    else if (dtype && !strcmp(dtype, "u32"))
        out->type = STK_TOKENS_U32;
    else
        status = stk_fail(STK_CORRUPT, "it has no \"dtype\" of \"u16\" or \"u32\"");
    out->vocabulary = json_integer_value(vocabulary);
    if (out->vocabulary < 0 || (vocabulary && !json_is_integer(vocabulary)))
        status = stk_fail(STK_CORRUPT, "its \"vocabulary\" is no whole number");
    if (json_is_integer(tokens)) out->n_tokens = json_integer_value(tokens);
    json_decref(root);
    return status;
}

/* Reads NAME.json where there is one. */
static stk_status read_facts(const token_file *f, stk_tokens_facts *out)
{
    char path[PATH_MAX];
    uint8_t *bytes = NULL;
    size_t capacity = 0, n;
    *out = (stk_tokens_facts){STK_TOKENS_AUTO, 0, -1};
    if (snprintf(path, sizeof(path), "%s.json", f->file.path) >= (int)sizeof(path)) return STK_OK;
    /* Of a remote file only an answer tells whether it is there. */
    if (!f->file.backend && !stk_path_exists(path)) return STK_OK;
    stk_status status = stk_read_input_small(path, STK_TOKENS_FACTS_BYTES, &bytes, &capacity, &n);
    if (status == STK_NOT_FOUND) return STK_OK;
    if (status == STK_OK) {
        status = stk_tokens_facts_parse((stk_span){bytes, n}, out);
        if (status != STK_OK) stk_fail_prefix(status, "'%s': ", path);
    }
    free(bytes);
    return status;
}

/* llm.c's header, of 256 i32: magic, version, number of tokens. */
static stk_status read_header(token_file *f, stk_tokens_facts *facts)
{
    uint8_t header[12];
    f->data_at = 0;
    if (f->file.n_bytes < HEADER_BYTES) return STK_OK;
    STK_RETURN_IF_ERROR(stk_input_read(&f->file, 0, header, sizeof(header)));
    uint32_t magic = stk_little32(header);
    if ((magic != MAGIC_U16 && magic != MAGIC_U32) || stk_little32(header + 4) != 1) return STK_OK;
    stk_token_type type = magic == MAGIC_U16 ? STK_TOKENS_U16 : STK_TOKENS_U32;
    uint64_t n_tokens = stk_little32(header + 8), n_bytes = f->file.n_bytes - HEADER_BYTES;
    if (n_bytes != n_tokens * (type == STK_TOKENS_U16 ? 2 : 4))
        return stk_fail(STK_CORRUPT, "'%s' has %llu bytes of tokens, but its header says %llu tokens", f->file.path,
                        (unsigned long long)n_bytes, (unsigned long long)n_tokens);
    if (facts->type != STK_TOKENS_AUTO && facts->type != type)
        return stk_fail(STK_MISMATCH, "the header of '%s' says %s: leave out the dtype", f->file.path,
                        type == STK_TOKENS_U16 ? "u16" : "u32");
    facts->type = type;
    f->data_at = HEADER_BYTES;
    return STK_OK;
}

static stk_status find_type(token_file *f, const stk_tokens_config *config)
{
    stk_tokens_facts facts = {config->type, config->vocabulary, -1};
    if (config->type == STK_TOKENS_AUTO) {
        STK_RETURN_IF_ERROR(read_facts(f, &facts));
        if (config->vocabulary) facts.vocabulary = config->vocabulary;
    }
    STK_RETURN_IF_ERROR(read_header(f, &facts));
    if (facts.type == STK_TOKENS_AUTO)
        return stk_fail(STK_INVALID, "nothing tells whether the tokens of '%s' are u16 or u32: say which as its dtype",
                        f->file.path);
    f->token_bytes = facts.type == STK_TOKENS_U16 ? 2 : 4;
    f->vocabulary = facts.vocabulary;
    if (facts.n_tokens >= 0 && (uint64_t)facts.n_tokens * f->token_bytes != f->file.n_bytes - f->data_at)
        return stk_fail(STK_MISMATCH, "'%s' has %llu bytes, but '%s.json' is of %lld tokens of %zu bytes", f->file.path,
                        (unsigned long long)f->file.n_bytes, f->file.path, (long long)facts.n_tokens, f->token_bytes);
    return STK_OK;
}

/* --- opening --- */

static stk_status open_file(tokens_source *s, const char *path, bool keep_open, const stk_tokens_config *config)
{
    token_file *f = &s->file[s->n_files++];
    STK_RETURN_IF_ERROR(stk_open_input(path, keep_open, &f->file));
    STK_RETURN_IF_ERROR(find_type(f, config));
    uint64_t n_bytes = f->file.n_bytes - f->data_at, n_tokens = n_bytes / f->token_bytes;
    if (n_bytes % f->token_bytes)
        return stk_fail(STK_CORRUPT, "'%s' has %llu bytes, which is no whole number of tokens of %zu bytes", path,
                        (unsigned long long)n_bytes, f->token_bytes);
    f->i_first = s->base.n_records;
    s->base.file_bytes += (int64_t)n_bytes;
    int64_t window_bytes = (s->length + 1) * (int64_t)f->token_bytes;
    if (window_bytes > s->base.window_bytes) s->base.window_bytes = window_bytes;
    if (n_tokens > (uint64_t)s->length)
        f->n_windows = (int64_t)((n_tokens - (uint64_t)s->length - 1) / (uint64_t)s->stride) + 1;
    s->base.n_records += f->n_windows;
    return STK_OK;
}

static stk_status open_files(tokens_source *s, const stk_names *names, const stk_tokens_config *config)
{
    s->file = calloc(names->n ? names->n : 1, sizeof(*s->file));
    if (!s->file) return stk_fail_memory(names->n * sizeof(*s->file));
    for (size_t i = 0; i < names->n; i++)
        s->file[i].file.fd = -1;
    for (size_t i = 0; i < names->n; i++)
        STK_RETURN_IF_ERROR(open_file(s, names->name[i], names->n <= STK_MOST_OPEN_SHARDS, config));
    if (s->base.n_records > 0) return STK_OK;
    return stk_fail(STK_INVALID, "'%s'%s holds no window of %lld + 1 tokens", names->n ? names->name[0] : "",
                    names->n > 1 ? " and what follows" : "", (long long)s->length);
}

/* The side files of tokens match many a pattern of theirs. */
static void drop_facts(stk_names *names)
{
    size_t n = 0;
    for (size_t i = 0; i < names->n; i++) {
        size_t length = strlen(names->name[i]);
        if (length > 9 && !strcmp(names->name[i] + length - 9, ".bin.json"))
            free(names->name[i]);
        else
            names->name[n++] = names->name[i];
    }
    names->n = n;
}

stk_status stk_source_open_tokens(const char *const *paths, int n_paths, const stk_tokens_config *config,
                                  stk_source **out)
{
    enum { MOST = 1 << 28 };
    stk_names names;
    if (!config) return stk_fail(STK_INVALID, "'config' is NULL");
    if (config->length < 1 || config->length > MOST)
        return stk_fail(STK_INVALID, "the length of a window must be 1 to %d", MOST);
    if (config->stride < 0 || config->vocabulary < 0)
        return stk_fail(STK_INVALID, "stride and vocabulary must not be below 0");
    STK_RETURN_IF_ERROR(stk_paths_expand(paths, n_paths, false, &names));
    drop_facts(&names);
    stk_status status;
    tokens_source *s = calloc(1, sizeof(*s));
    if (!s) STK_TRY(stk_fail_memory(sizeof(*s)));
    s->length = config->length;
    s->stride = config->stride ? config->stride : config->length;
    STK_TRY(open_files(s, &names, config));
    s->base.class = &class_tokens;
    s->base.n_files = s->n_files;
    s->base.n_fields = 2;
    stk_field_type type = {STK_FIELD_ARRAY, stk_desc_make(STK_I32, STK_SHAPE(s->length))};
    s->base.field[0] = (stk_source_field){"tokens", type};
    s->base.field[1] = (stk_source_field){"targets", type};
    *out = &s->base;
done:
    stk_names_free(&names);
    if (status != STK_OK && s) close_source(&s->base);
    return status;
}

/* --- settings --- */

static const char *const type_words[] = {
    [STK_TOKENS_AUTO] = "auto", [STK_TOKENS_U16] = "u16", [STK_TOKENS_U32] = "u32", NULL};
static const stk_key keys[] = {
    STK_SOURCE_PATHS("files", "Files of token numbers; patterns stand for their matches by name."),
    {.name = "length",
     .type = STK_KEY_INT,
     .default_value = "1024",
     .least = 1,
     .most = 1 << 28,
     .doc = "Tokens of a sample; the targets are those one further."},
    {.name = "stride",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e15,
     .doc = "Tokens from the start of one window to that of the next. Default: length."},
    {.name = "dtype",
     .type = STK_KEY_WORD,
     .words = type_words,
     .default_value = "auto",
     .doc = "Of the numbers, little-endian; auto: as NAME.json next to the file or its own header says."},
    {.name = "vocabulary",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 2147483647,
     .doc = "Numbers that are not below it are errors. Default: as NAME.json says, or any."},
    STK_KEY_END};

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    const char **paths;
    int n_paths;
    stk_tokens_config config = {.length = stk_yaml_int(settings, "length", 0),
                                .stride = stk_yaml_int(settings, "stride", 0),
                                .type = (stk_token_type)stk_yaml_word(settings, "dtype", type_words),
                                .vocabulary = stk_yaml_int(settings, "vocabulary", 0)};
    STK_RETURN_IF_ERROR(stk_yaml_texts(stk_yaml_get(settings, "files"), &paths, &n_paths));
    stk_status status = stk_yaml_locate(settings, stk_source_open_tokens(paths, n_paths, &config, out));
    free(paths);
    return status;
}

/* What lies next to the first of the files; 0: nothing, or it does not say. */
static stk_status ask_note(const char *first, int64_t *out)
{
    char path[PATH_MAX];
    uint8_t *bytes = NULL;
    size_t capacity = 0, n = 0;
    stk_tokens_facts facts = {.vocabulary = 0};
    if (snprintf(path, sizeof(path), "%s.json", first) >= (int)sizeof(path)) return STK_OK;
    stk_status status = stk_read_input_small(path, STK_TOKENS_FACTS_BYTES, &bytes, &capacity, &n);
    if (status == STK_OK) status = stk_tokens_facts_parse((stk_span){bytes, n}, &facts);
    free(bytes);
    *out = facts.vocabulary;
    if (status == STK_NO_MEMORY) return status;
    stk_error_clear(); /* A note that is damaged is an error of the data set, which has read it, too. */
    return STK_OK;
}

static stk_status find_vocabulary(const stk_yaml_node *settings, int64_t *out)
{
    const stk_yaml_node *given = stk_yaml_get(settings, "vocabulary"), *files = stk_yaml_get(settings, "files");
    const char *first = files->child ? files->child->text : files->text;
    stk_names names = {0};
    if (given) {
        *out = given->integer;
        return STK_OK;
    }
    stk_status status = stk_paths_expand(&first, 1, false, &names);
    if (status == STK_OK && names.n > 0) status = ask_note(names.name[0], out);
    stk_names_free(&names);
    return status;
}

/* As the file next to the first one says. */
static stk_status find_tokenizer(const stk_yaml_node *settings, char **out)
{
    const stk_yaml_node *files = stk_yaml_get(settings, "files");
    const char *first = files->child ? files->child->text : files->text;
    char path[PATH_MAX];
    stk_names names = {0};
    *out = NULL;
    stk_status status = stk_paths_expand(&first, 1, false, &names);
    if (status == STK_OK && names.n > 0 && snprintf(path, sizeof(path), "%s.json", names.name[0]) < (int)sizeof(path)) {
        json_t *facts = NULL;
        status = stk_json_read(path, 0, &facts);
        const char *text = json_string_value(json_object_get(facts, "tokenizer"));
        if (text && !(*out = strdup(text))) status = stk_fail_memory(strlen(text));
        json_decref(facts);
    }
    stk_names_free(&names);
    return status == STK_NO_MEMORY ? status : STK_OK;
}

const stk_source_kind stk_source_kind_tokens = {
    .key = {.name = "tokens",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "Windows of files of token numbers: tokens and, one further, targets."},
    .open = open_settings,
    .vocabulary = find_vocabulary,
    .tokenizer = find_tokenizer};
