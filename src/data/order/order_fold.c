/* Orders of which only some records are kept. A filter says so of records, while an order is a chain of operations on
 * positions: what stands before the last skip, take or shard is folded into a list of records first, and shuffles and
 * repeats, which a filter may as well come before, stay. See data/order/order.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/order/order.h"

/* Operations before this one must be folded. */
static int find_suffix(const stk_order *order)
{
    int i = order->n_ops;
    while (i > 0 && order->op[i - 1].kind != STK_ORDER_SKIP && order->op[i - 1].kind != STK_ORDER_SHARD)
        i--;
    return i;
}

static stk_status check_prefix(const stk_order *order, int n)
{
    for (int i = 0; i < n; i++) {
        const stk_order_op *op = &order->op[i];
        bool shuffles = op->kind == STK_ORDER_SHUFFLE || op->kind == STK_ORDER_WINDOW;
        if (op->is_hint) return stk_fail(STK_INVALID, "not after the place for a shard: first of all");
        if (shuffles && !op->fixed)
            return stk_fail(STK_INVALID, "not after a shuffle with take, skip or shard behind it, which takes other "
                                         "records in every epoch: shuffle last");
        if (op->kind == STK_ORDER_REPEAT)
            return stk_fail(STK_INVALID, "not after repeat with take, skip or shard behind it: repeat last");
    }
    return STK_OK;
}

stk_status stk_order_fold(stk_order *order)
{
    int n = find_suffix(order);
    if (n == 0) return STK_OK;
    STK_RETURN_IF_ERROR(check_prefix(order, n));
    if (order->n_records > (int64_t)UINT32_MAX)
        return stk_fail(STK_UNSUPPORTED, "not for %lld records: at most 2^32 - 1 are possible",
                        (long long)order->n_records);
    stk_order prefix = *order;
    prefix.n_ops = n;
    prefix.count = n < order->n_ops ? order->op[n].n_in : order->count;
    uint32_t *kept = malloc((size_t)prefix.count * sizeof(*kept));
    if (!kept) return stk_fail_memory((size_t)prefix.count * sizeof(*kept));
    stk_order_cursor cursor = {0};
    for (int64_t i = 0; i < prefix.count; i++)
        kept[i] = (uint32_t)stk_order_map(&prefix, &cursor, 0, i).i_record;
    stk_order_cursor_free(&cursor);
    free(order->kept);
    order->kept = kept;
    order->n_ops -= n;
    memmove(order->op, order->op + n, (size_t)order->n_ops * sizeof(*order->op));
    return STK_OK;
}

int64_t stk_order_n_met(const stk_order *order)
{
    return order->n_ops ? order->op[0].n_in : order->count;
}

stk_status stk_order_keep(stk_order *order, const int32_t *answers)
{
    const stk_order before = *order;
    int64_t n_before = stk_order_n_met(order), n = 0;
    stk_status status;
    for (int64_t i = 0; i < n_before; i++)
        n += answers[i] > 0;
    if (n == 0) return stk_fail(STK_INVALID, "none of %lld records is kept", (long long)n_before);
    if (n == n_before) return STK_OK;
    if (order->n_records > (int64_t)UINT32_MAX)
        return stk_fail(STK_UNSUPPORTED, "not for %lld records: at most 2^32 - 1 are possible",
                        (long long)order->n_records);
    uint32_t *kept = malloc((size_t)n * sizeof(*kept));
    if (!kept) return stk_fail_memory((size_t)n * sizeof(*kept));
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n_before; i++)
        if (answers[i] > 0) kept[n_kept++] = before.kept ? before.kept[i] : (uint32_t)i;
    order->kept = kept;
    order->n_ops = 0;
    order->count = n;
    for (int i = 0; i < before.n_ops; i++)
        STK_TRY(stk_order_add_again(order, &before.op[i], 0));
    free(before.kept);
    return STK_OK;
done:
    free(kept);
    *order = before;
    return status;
}
