/* A call on the cpu device, by every instruction set and on 1, 2 and 3 threads, against the reference device. */
#ifndef STK_TESTS_DEVICE_CPU_COMPARE_H
#define STK_TESTS_DEVICE_CPU_COMPARE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "device/cpu/call.h"

static const char *const compare_isas[] = {"baseline", "avx2", "avx512"};

static inline double compare_load(stk_dtype dtype, const void *data, int64_t i)
{
    if (dtype == STK_BF16) {
        uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        float x;
        memcpy(&x, &bits, sizeof(x));
        return (double)x;
    }
    return dtype == STK_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* Off by at most `allowed` of the element or of the mean size. */
static inline bool compare_is_near(stk_tensor_desc desc, const void *got, const void *want, double allowed)
{
    int64_t n = stk_shape_count(desc.shape);
    double size = 0;
    for (int64_t i = 0; i < n; i++)
        size += fabs(compare_load(desc.dtype, want, i)) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double x = compare_load(desc.dtype, got, i), y = compare_load(desc.dtype, want, i);
        if (fabs(x - y) <= allowed * (fabs(y) + size)) continue;
        print_message("element %lld of %lld is %.9g instead of %.9g\n", (long long)i, (long long)n, x, y);
        return false;
    }
    return true;
}

static inline void compare_device(const call *c, stk_device *device, void *const *want, double allowed)
{
    void *first[CALL_MOST], *again[CALL_MOST];
    assert_int_equal(call_run(c, device, -1, first, NULL), STK_OK);
    assert_int_equal(call_run(c, device, -1, again, NULL), STK_OK);
    for (int o = 0; o < c->n_out; o++) {
        assert_true(compare_is_near(c->out_desc[o], first[o], want[o], allowed));
        assert_memory_equal(first[o], again[o], stk_desc_bytes(c->out_desc[o]));
    }
    call_free_outputs(first);
    call_free_outputs(again);
}

/* Frees the call's inputs. */
static inline void compare_call(call *c, double allowed)
{
    stk_device *reference = NULL;
    void *want[CALL_MOST];
    assert_int_equal(stk_device_open("reference", NULL, &reference), STK_OK);
    assert_int_equal(call_run(c, reference, -1, want, NULL), STK_OK);
    for (int i = 0; i < 3; i++) {
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            stk_device *device = call_open(compare_isas[i], n_threads);
            assert_non_null(device);
            compare_device(c, device, want, allowed);
            stk_device_close(device);
        }
    }
    call_free_outputs(want);
    call_free(c);
    stk_device_close(reference);
}

static inline call compare_make(stk_op op)
{
    return (call){.op = op, .attrs = stk_attrs_zero()};
}

#endif
