#include "weights/skipped.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/rising.h"

void stk_skipped_add_key(stk_skipped *list, int64_t key)
{
    (void)stk_rising_insert(key, &list->key, &list->n_keys, &list->key_capacity);
}

/* A file may be met in training and in every evaluation. */
static bool is_listed(const stk_skipped *list, const char *text)
{
    for (size_t i = 0; i < list->n_texts; i++)
        if (!strcmp(list->text[i], text)) return true;
    return false;
}

void stk_skipped_add_text(stk_skipped *list, const char *text)
{
    if (list->n_texts == STK_SKIPPED_MOST_TEXTS || is_listed(list, text)) return;
    char **grown = realloc(list->text, (list->n_texts + 1) * sizeof(*grown));
    if (!grown) return;
    list->text = grown;
    if ((grown[list->n_texts] = strdup(text))) list->n_texts++;
}

void stk_skipped_free(stk_skipped *list)
{
    for (size_t i = 0; i < list->n_texts; i++)
        free(list->text[i]);
    free(list->text);
    free(list->key);
    *list = (stk_skipped){0};
}
