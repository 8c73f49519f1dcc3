/* A file of prices from memory: what is accepted has a date, a unit and amounts above 0, and can be told.
 *
 * covers: bench/price.c
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/price.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static stk_bench_prices prices;
    stk_text text = {0};
    if (stk_bench_prices_parse("prices.yaml", data, size, &prices) == STK_OK) {
        if (!prices.n || strlen(prices.date) != 10 || !prices.unit[0]) abort();
        for (int i = 0; i < prices.n; i++) {
            const stk_bench_priced *m = &prices.machine[i];
            if (isnan(m->hourly) == isnan(m->purchase) || (isnan(m->rate) && !m->result)) abort();
            if (!isnan(m->rate) && !(m->rate > 0)) abort();
        }
        stk_bench_prices_tell(&prices, &text);
        if (stk_text_status(&text) != STK_OK || !strstr(stk_text_get(&text), "Prices of")) abort();
    }
    stk_text_free(&text);
    stk_bench_prices_free(&prices);
    return 0;
}
