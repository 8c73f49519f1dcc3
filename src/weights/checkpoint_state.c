#include "weights/checkpoint_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_size.h"

const char *const stk_manifest_names[STK_MANIFEST_FILES] = {"model.safetensors", "optimizer.safetensors", "state.json"};

enum { FORMAT = 1, MOST_TREE_BYTES = 64 << 20, FLAGS = JSON_INDENT(1) | JSON_SORT_KEYS };

/* Every integer and every number of the state, once. */
#define INTEGERS(X) X(step) X(epoch) X(i_batch) X(epoch_samples) X(best_epoch) X(best_metric) X(n_bad_epochs)
#define NUMBERS(X)  X(epoch_loss_sum) X(epoch_correct) X(epoch_top5) X(best_value) X(stop_value)

/* A number as text with all its bits: JSON has neither hexadecimal floats nor infinity. */
static void set_number(json_t *object, const char *key, double x)
{
    char text[64];
    snprintf(text, sizeof(text), "%a", x);
    json_object_set_new(object, key, json_string(text));
}

/* Of very many, those with the least keys: it is a count, and the file is to stay small. A text that is no UTF-8, as a
   file's name may be, JSON cannot have; it is counted all the same. */
static json_t *list_skipped(const stk_skipped *list)
{
    json_t *keys = json_array(), *texts = json_array();
    for (int64_t i = 0; i < list->n_keys && i < STK_SKIPPED_MOST_KEPT; i++)
        json_array_append_new(keys, json_integer(list->key[i]));
    for (size_t i = 0; i < list->n_texts; i++)
        json_array_append_new(texts, json_string(list->text[i]));
    return json_pack("{s:o,s:o}", "keys", keys, "records", texts);
}

char *stk_state_to_json(const stk_train_state *state, const char *recipe)
{
    char seed[32], *text;
    unsigned mark = stk_json_mark();
    json_t *object = json_object();
    json_object_set_new(object, "format", json_integer(FORMAT));
    json_object_set_new(object, "stoker", json_string(stk_version()));
#define X(name) json_object_set_new(object, #name, json_integer(state->name));
    INTEGERS(X)
#undef X
#define X(name) set_number(object, #name, state->name);
    NUMBERS(X)
#undef X
    set_number(object, "epoch_weight", state->epoch_weight);
    snprintf(seed, sizeof(seed), "%" PRIu64, state->seed);
    json_object_set_new(object, "seed", json_string(seed));
    if (recipe) json_object_set_new(object, "recipe", json_string(recipe));
    if (state->skipped && state->skipped->n_keys > 0)
        json_object_set_new(object, "skipped", list_skipped(state->skipped));
    return stk_json_print(object, mark, FLAGS, &text) == STK_OK ? text : NULL;
}

static stk_status get_integer(json_t *object, const char *key, int64_t *out)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) return stk_fail(STK_CORRUPT, "no integer '%s'", key);
    *out = json_integer_value(value);
    return STK_OK;
}

static stk_status get_number(json_t *object, const char *key, double *out)
{
    const char *text = json_string_value(json_object_get(object, key));
    char *end = NULL;
    if (text) *out = strtod(text, &end);
    if (!text || end == text || *end) return stk_fail(STK_CORRUPT, "no number '%s'", key);
    return STK_OK;
}

static stk_status parse_object(stk_span text, json_t **out)
{
    json_error_t error;
    STK_RETURN_IF_ERROR(stk_json_check(text, MOST_TREE_BYTES));
    stk_status status = stk_json_parse(text.data, text.n, JSON_REJECT_DUPLICATES, out, &error);
    if (status == STK_CORRUPT) return stk_fail(status, "not JSON at line %d: %s", error.line, error.text);
    STK_RETURN_IF_ERROR(status);
    if (json_is_object(*out)) return STK_OK;
    json_decref(*out);
    return stk_fail(STK_CORRUPT, "no JSON object");
}

static stk_status check_format(json_t *object)
{
    int64_t format = 0;
    STK_RETURN_IF_ERROR(get_integer(object, "format", &format));
    if (format != FORMAT)
        return stk_fail(STK_UNSUPPORTED, "format %lld; this version reads %d", (long long)format, FORMAT);
    return STK_OK;
}

stk_status stk_state_from_json(stk_span text, stk_train_state *out, char **recipe)
{
    json_t *object;
    stk_status status = STK_OK;
    stk_train_state state = {0};
    const char *seed;
    char *end = NULL;
    STK_RETURN_IF_ERROR(parse_object(text, &object));
    STK_TRY(check_format(object));
#define X(name) STK_TRY(get_integer(object, #name, &state.name));
    INTEGERS(X)
#undef X
#define X(name) STK_TRY(get_number(object, #name, &state.name));
    NUMBERS(X)
#undef X
    state.epoch_weight = (double)state.epoch_samples; /* as it is without weights, and was before there were any */
    if (json_object_get(object, "epoch_weight")) STK_TRY(get_number(object, "epoch_weight", &state.epoch_weight));
    seed = json_string_value(json_object_get(object, "seed"));
    if (seed) state.seed = strtoull(seed, &end, 10);
    if (!seed || end == seed || *end) STK_TRY(stk_fail(STK_CORRUPT, "no number 'seed'"));
    if (recipe) {
        const char *kept = json_string_value(json_object_get(object, "recipe"));
        *recipe = kept ? strdup(kept) : NULL;
        if (kept && !*recipe) STK_TRY(stk_fail_memory(strlen(kept)));
    }
    *out = state;
done:
    json_decref(object);
    return status;
}

stk_status stk_skipped_from_json(stk_span text, stk_skipped *into)
{
    json_t *object, *item;
    stk_status status = STK_OK;
    size_t i;
    STK_RETURN_IF_ERROR(parse_object(text, &object));
    json_t *list = json_object_get(object, "skipped");
    json_t *keys = json_object_get(list, "keys"), *records = json_object_get(list, "records");
    if (list && (!json_is_array(keys) || !json_is_array(records)))
        STK_TRY(stk_fail(STK_CORRUPT, "'skipped' has no 'keys' and 'records'"));
    json_array_foreach(keys, i, item)
    {
        if (!json_is_integer(item)) STK_TRY(stk_fail(STK_CORRUPT, "a key of 'skipped' is no integer"));
        stk_skipped_add_key(into, json_integer_value(item));
    }
    json_array_foreach(records, i, item)
    {
        if (!json_is_string(item)) STK_TRY(stk_fail(STK_CORRUPT, "a record of 'skipped' is no text"));
        stk_skipped_add_text(into, json_string_value(item));
    }
done:
    json_decref(object);
    return status;
}

char *stk_manifest_to_json(const stk_manifest_file *files)
{
    char *text;
    unsigned mark = stk_json_mark();
    json_t *object = json_object(), *list = json_object();
    json_object_set_new(object, "format", json_integer(FORMAT));
    for (int i = 0; i < STK_MANIFEST_FILES; i++) {
        char hash[32];
        snprintf(hash, sizeof(hash), "%016" PRIx64, files[i].hash);
        json_object_set_new(list, files[i].name,
                            json_pack("{s:I,s:s}", "bytes", (json_int_t)files[i].n_bytes, "xxh64", hash));
    }
    json_object_set_new(object, "files", list);
    return stk_json_print(object, mark, FLAGS, &text) == STK_OK ? text : NULL;
}

stk_status stk_manifest_from_json(stk_span text, stk_manifest_file *files)
{
    json_t *object;
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(parse_object(text, &object));
    STK_TRY(check_format(object));
    for (int i = 0; i < STK_MANIFEST_FILES; i++) {
        json_t *entry = json_object_get(json_object_get(object, "files"), files[i].name);
        const char *hash = json_string_value(json_object_get(entry, "xxh64"));
        int64_t bytes = 0;
        char *end = NULL;
        STK_TRY(get_integer(entry, "bytes", &bytes));
        if (hash) files[i].hash = strtoull(hash, &end, 16);
        if (!hash || end == hash || *end || bytes < 0)
            STK_TRY(stk_fail(STK_CORRUPT, "no checksum for '%s'", files[i].name));
        files[i].n_bytes = (uint64_t)bytes;
    }
done:
    json_decref(object);
    return status;
}
