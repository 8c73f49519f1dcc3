/* The JSON files of a checkpoint: what is accepted is written and must read the same.
 *
 * covers: weights/checkpoint_state.c
 */
#include <stdlib.h>
#include <string.h>

#include "weights/checkpoint_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static stk_span span_of(const char *text)
{
    return (stk_span){(const uint8_t *)text, strlen(text)};
}

static void try_state(stk_span text)
{
    stk_train_state state;
    char *recipe = NULL, *recipe_again = NULL;
    if (stk_state_from_json(text, &state, &recipe) != STK_OK) return;
    char *first = stk_state_to_json(&state, recipe);
    if (!first || stk_state_from_json(span_of(first), &state, &recipe_again) != STK_OK) abort();
    char *second = stk_state_to_json(&state, recipe_again);
    if (!second || strcmp(first, second)) abort();
    free(first);
    free(second);
    free(recipe);
    free(recipe_again);
}

static void try_skipped(stk_span text)
{
    stk_skipped list = {0}, again = {0};
    if (stk_skipped_from_json(text, &list) == STK_OK && list.n_keys > 0 && list.n_keys <= STK_SKIPPED_MOST_KEPT) {
        char *written = stk_state_to_json(&(stk_train_state){.skipped = &list}, NULL);
        if (!written || stk_skipped_from_json(span_of(written), &again) != STK_OK) abort();
        if (list.n_keys != again.n_keys || memcmp(list.key, again.key, (size_t)list.n_keys * sizeof(*list.key)))
            abort();
        if (list.n_texts != again.n_texts) abort();
        for (size_t i = 0; i < list.n_texts; i++)
            if (strcmp(list.text[i], again.text[i])) abort();
        free(written);
    }
    stk_skipped_free(&list);
    stk_skipped_free(&again);
}

static void try_manifest(stk_span text)
{
    stk_manifest_file files[STK_MANIFEST_FILES], again[STK_MANIFEST_FILES];
    for (int i = 0; i < STK_MANIFEST_FILES; i++)
        files[i] = again[i] = (stk_manifest_file){.name = stk_manifest_names[i]};
    if (stk_manifest_from_json(text, files) != STK_OK) return;
    char *written = stk_manifest_to_json(files);
    if (!written || stk_manifest_from_json(span_of(written), again) != STK_OK) abort();
    for (int i = 0; i < STK_MANIFEST_FILES; i++)
        if (files[i].n_bytes != again[i].n_bytes || files[i].hash != again[i].hash) abort();
    free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_state((stk_span){data, size});
    try_skipped((stk_span){data, size});
    try_manifest((stk_span){data, size});
    return 0;
}
