/* A result.json of stoker bench from memory: what is accepted becomes a page and tables, and is compared with itself.
 *
 * covers: bench/page.c bench/page_training.c bench/page_curves.c bench/metric.c bench/table.c bench/apart.c
 */
#include <stdlib.h>
#include <string.h>

#include "bench/page.h"
#include "bench/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static stk_bench_kept kept;
    stk_text page = {0}, differences = {0};
    if (stk_bench_kept_parse("result.json", data, size, &kept) != STK_OK) {
        if (kept.root || kept.cases) abort(); /* an error leaves nothing behind */
        return 0;
    }
    (void)stk_bench_page_add(&kept, 1, NULL, &page);
    if (stk_text_status(&page) != STK_OK || !strstr(stk_text_get(&page), "</html>")) abort();
    /* Texts of a result are never markup. */
    if (strstr(stk_text_get(&page), "<script")) abort();
    if (stk_bench_kept_differences(&kept, &kept, &differences) != 0) abort();
    stk_text tables = {0};
    const stk_bench_kept two[] = {kept, kept};
    /* A text that is no UTF-8 has no JSON; too few runs have no comparison. */
    (void)stk_bench_table_markdown(two, 2, NULL, &tables);
    stk_bench_table_csv(two, 2, NULL, &tables);
    (void)stk_bench_table_json(two, 2, NULL, &tables);
    if (strstr(stk_text_get(&tables), "](javascript")) abort();
    stk_text_free(&tables);
    stk_text_free(&page);
    stk_text_free(&differences);
    stk_bench_kept_free(&kept);
    return 0;
}
