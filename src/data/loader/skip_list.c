/* See data/loader/skip_list.h. */
#include "data/loader/skip_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/rising.h"

stk_status stk_skip_list_init(stk_skip_list *list, int64_t most)
{
    list->most = most;
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
    free(list->record);
    free(list->key);
    free(list->row);
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
    bool known = list->n_kept == STK_MAX_SKIPPED;
    for (int i = 0; i < list->n_kept && !known; i++)
        known = list->kept[i].i_record == skip.i_record;
    if (known)
        free(skip.text);
    else
        list->kept[list->n_kept++] = skip;
}

static stk_status note_skip(stk_skip_list *list, const stk_skip *skip, int64_t i_batch)
{
    if (skip->i_try == 0 && skip->i_batch == i_batch)
        STK_RETURN_IF_ERROR(stk_rising_insert(skip->row, &list->row, &list->n_rows, &list->row_capacity));
    STK_RETURN_IF_ERROR(stk_rising_insert(skip->i_record, &list->record, &list->n_records, &list->record_capacity));
    int64_t key = (int64_t)stk_hash_text(skip->text);
    STK_RETURN_IF_ERROR(stk_rising_insert(key, &list->key, &list->n_keys, &list->key_capacity));
    if (list->most < 0 || list->n_records <= list->most) return STK_OK;
    return stk_fail(STK_CORRUPT, "%lld records cannot be read, one more than 'on_error' allows, the last one %s",
                    (long long)list->n_records, skip->text);
}

stk_status stk_skip_list_collect(stk_skip_list *list, int64_t i_batch)
{
    stk_status status = STK_OK;
    list->n_rows = 0;
    /* Bad records are rare: nearly every batch ends here. */
    if (atomic_load(&list->n_pending) == 0) return STK_OK;
    stk_mutex_lock(&list->lock);
    size_t n = atomic_load(&list->n_pending), n_done = 0;
    qsort(list->pending, n, sizeof(*list->pending), compare_skips);
    while (n_done < n && list->pending[n_done].i_batch <= i_batch && status == STK_OK) {
        status = note_skip(list, &list->pending[n_done], i_batch);
        keep_skip(list, list->pending[n_done++]);
    }
    memmove(list->pending, list->pending + n_done, (n - n_done) * sizeof(*list->pending));
    atomic_store(&list->n_pending, n - n_done);
    stk_mutex_unlock(&list->lock);
    return status;
}
