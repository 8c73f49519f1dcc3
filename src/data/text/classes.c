/* See text/classes.h. */
#include "data/text/classes.h"

#include "base/thread.h"

static const uint32_t runs[] = {
#include "data/text/class_runs.h"
};
enum { N_RUNS = sizeof(runs) / sizeof(runs[0]) };

uint8_t stk_low_classes[0x10000];

static void fill(void)
{
    for (int i = 0; i < N_RUNS && runs[i] >> 8 < 0x10000; i++) {
        uint32_t end = i + 1 < N_RUNS ? runs[i + 1] >> 8 : 0x10000;
        for (uint32_t c = runs[i] >> 8; c < end && c < 0x10000; c++)
            stk_low_classes[c] = (uint8_t)runs[i];
    }
}

void stk_classes_load(void)
{
    static stk_once once = STK_ONCE_INIT;
    stk_once_run(&once, fill);
}

uint8_t stk_high_class(uint32_t c)
{
    if (c > 0x10ffff) return 0;
    int low = 0, high = N_RUNS - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (runs[middle] >> 8 <= c)
            low = middle;
        else
            high = middle - 1;
    }
    return (uint8_t)runs[low];
}
