/* See data/skip_list.h. */
#include "data/skip_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

stk_status stk_skip_list_init(stk_skip_list *list)
{
    STK_RETURN_IF_ERROR(stk_mutex_init(&list->lock));
    list->has_lock = true;
    return STK_OK;
}

void stk_skip_list_free(stk_skip_list *list)
{
    for (size_t i = 0; i < atomic_load(&list->n_pending); i++)
        free(list->pending[i].text);
    free(list->pending);
    for (int i = 0; i < list->n_kept; i++)
        free(list->kept[i].text);
    if (list->has_lock) stk_mutex_destroy(&list->lock);
}

stk_status stk_skip_list_add(stk_skip_list *list, int64_t i_batch, int64_t row, int64_t i_try, int64_t i_record)
{
    stk_status status = STK_OK;
    char *text = strdup(stk_error_text());
    if (!text) return stk_fail_memory(strlen(stk_error_text()) + 1);
    stk_mutex_lock(&list->lock);
    size_t n = atomic_load(&list->n_pending);
    if (n == list->capacity) {
        size_t capacity = n ? 2 * n : 16;
        stk_skip *pending = realloc(list->pending, capacity * sizeof(*pending));
        if (!pending) STK_TRY(stk_fail_memory(capacity * sizeof(*pending)));
        list->pending = pending;
        list->capacity = capacity;
    }
    list->pending[n] = (stk_skip){.i_batch = i_batch, .row = row, .i_try = i_try, .i_record = i_record, .text = text};
    atomic_store(&list->n_pending, n + 1);
    text = NULL;
done:
    stk_mutex_unlock(&list->lock);
    free(text);
    return status;
}

static int compare_skips(const void *pa, const void *pb)
{
    const stk_skip *a = pa, *b = pb;
    if (a->i_batch != b->i_batch) return a->i_batch < b->i_batch ? -1 : 1;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return (a->i_try > b->i_try) - (a->i_try < b->i_try);
}

/* Takes skip. */
static void keep_skip(stk_skip_list *list, stk_skip skip)
{
    list->n_skipped += skip.i_try == 0;
    bool known = list->n_kept == STK_MAX_SKIPPED;
    for (int i = 0; i < list->n_kept && !known; i++)
        known = list->kept[i].i_record == skip.i_record;
    if (known)
        free(skip.text);
    else
        list->kept[list->n_kept++] = skip;
}

void stk_skip_list_collect(stk_skip_list *list, int64_t i_batch)
{
    /* Bad records are rare: nearly every batch ends here. */
    if (atomic_load(&list->n_pending) == 0) return;
    stk_mutex_lock(&list->lock);
    size_t n = atomic_load(&list->n_pending), n_done = 0;
    qsort(list->pending, n, sizeof(*list->pending), compare_skips);
    while (n_done < n && list->pending[n_done].i_batch <= i_batch)
        keep_skip(list, list->pending[n_done++]);
    memmove(list->pending, list->pending + n_done, (n - n_done) * sizeof(*list->pending));
    atomic_store(&list->n_pending, n - n_done);
    stk_mutex_unlock(&list->lock);
}
