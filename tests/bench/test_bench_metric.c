/* What trainings made of a machine, computed by hand; the table of accelerators, and its page. */
#include "bench/accelerator.h"
#include "bench/page_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"

static void assert_close(double x, double y)
{
    if (!(fabs(x - y) <= 1e-9 * fabs(y))) fail_msg("%.12g is not %.12g", x, y);
}

static void test_use_by_hand(void **state)
{
    (void)state;
    double m[STK_BENCH_N_METRICS];
    stk_bench_metrics_parse(NULL, m);
    stk_bench_roof published = {1000e9, 100e9}, measured = {400e9, 50e9};
    assert_true(isnan(stk_bench_use_of(m, 1, published, measured).flop_per_s));
    m[STK_BENCH_METRIC_step_flop] = 120e9;
    m[STK_BENCH_METRIC_recomputed_flop] = 20e9;
    m[STK_BENCH_METRIC_step_bytes] = 30e9;
    m[STK_BENCH_METRIC_step_s] = 0.5;
    stk_bench_use use = stk_bench_use_of(m, 1, published, measured);
    assert_close(use.flop_per_s, 200e9);
    assert_close(use.of_published, 0.2);
    assert_close(use.of_measured, 0.5);
    assert_close(use.hardware_share, 0.6);
    assert_close(use.intensity, 4);
    assert_close(use.roofline_flop_per_s, 200e9); /* 4 operations a byte at 50 GB/s are less than 400 GFLOP/s */
    assert_close(stk_bench_use_of(m, 2, published, measured).of_measured, 1);
    published.flop_per_s = NAN;
    use = stk_bench_use_of(m, 1, published, measured);
    assert_true(isnan(use.of_published));
    m[STK_BENCH_METRIC_step_bytes] = NAN;
    assert_true(isnan(stk_bench_use_of(m, 1, published, measured).roofline_flop_per_s));
}

static void test_roofs(void **state)
{
    (void)state;
    json_t *root = json_loads(
        "{\"machine\": {\"published\": {\"bf16_tflop_per_s\": 312, \"bandwidth_gb_per_s\": 2039}}, \"cases\": ["
        "{\"name\": \"memory\", \"unit\": \"GB/s\", \"summary\": {\"median\": {\"value\": 12}}},"
        "{\"name\": \"copy in\", \"unit\": \"GB/s\", \"summary\": {\"median\": {\"value\": 99}}},"
        "{\"name\": \"a\", \"unit\": \"GFLOP/s\", \"precision\": \"bf16\", \"summary\": {\"median\": {\"value\": "
        "300}}},"
        "{\"name\": \"b\", \"unit\": \"GFLOP/s\", \"precision\": \"bf16\", \"summary\": {\"median\": {\"value\": "
        "700}}},"
        "{\"name\": \"c\", \"unit\": \"GFLOP/s\", \"precision\": \"f32\", \"summary\": {\"median\": {\"value\": "
        "90}}}]}",
        0, NULL);
    assert_non_null(root);
    assert_close(stk_bench_measured_roof(root, "bf16").flop_per_s, 700e9);
    assert_close(stk_bench_measured_roof(root, "f32").flop_per_s, 90e9);
    assert_true(isnan(stk_bench_measured_roof(root, "f16").flop_per_s));
    assert_close(stk_bench_measured_roof(root, "f32").byte_per_s, 12e9);
    assert_close(stk_bench_published_roof(root, "bf16").flop_per_s, 312e12);
    assert_close(stk_bench_published_roof(root, "bf16").byte_per_s, 2039e9);
    assert_true(isnan(stk_bench_published_roof(root, "f32").flop_per_s));
    json_decref(root);
}

static void test_efficiency(void **state)
{
    (void)state;
    stk_bench_interval e =
        stk_bench_efficiency((stk_bench_interval){100, 98, 102}, (stk_bench_interval){360, 350, 370}, 4);
    assert_close(e.value, 0.9);
    assert_close(e.low, 350 / 408.0);
    assert_close(e.high, 370 / 392.0);
}

static void test_run_folder(void **state)
{
    (void)state;
    static const char folder[] = STK_BINARY_DIR "/test_bench_metric",
                      *const result = STK_BINARY_DIR "/test_bench_metric/result.json",
                      *const profile = STK_BINARY_DIR "/test_bench_metric/profile.json";
    static const char of_result[] =
        "{\"samples_per_s\": 12.5, \"gpu\": {\"joules_per_sample\": 3}, \"test_loss\": null}";
    static const char of_profile[] = "{\"batch\": 8, \"step\": {\"flops\": 5e9}}";
    double m[STK_BENCH_N_METRICS];
    (void)stk_tree_remove(folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(stk_file_write_durably(result, of_result, strlen(of_result)), STK_OK);
    stk_bench_metrics_read(result, m); /* without a profile it is nobody's run */
    assert_true(isnan(m[STK_BENCH_METRIC_samples_per_s]));
    assert_int_equal(stk_file_write_durably(profile, of_profile, strlen(of_profile)), STK_OK);
    stk_bench_metrics_read(result, m);
    assert_close(m[STK_BENCH_METRIC_samples_per_s], 12.5);
    assert_close(m[STK_BENCH_METRIC_gpu_joules_per_sample], 3);
    assert_close(m[STK_BENCH_METRIC_step_flop], 5e9);
    assert_true(isnan(m[STK_BENCH_METRIC_test_loss]));
    json_t *object = stk_bench_metrics_json(m);
    double again[STK_BENCH_N_METRICS];
    stk_bench_metrics_parse(object, again);
    for (int i = 0; i < STK_BENCH_N_METRICS; i++)
        assert_true(again[i] == m[i] || (isnan(again[i]) && isnan(m[i])));
    json_decref(object);
}

static void test_accelerators(void **state)
{
    (void)state;
    static const struct {
        const char *chip, *name;
    } known[] = {{"NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM"},
                 {"NVIDIA H100 PCIe", "NVIDIA H100 PCIe"},
                 {"NVIDIA H200", "NVIDIA H200"},
                 {"NVIDIA A100-SXM4-80GB", "NVIDIA A100 SXM 80 GB"},
                 {"NVIDIA A10", "NVIDIA A10"},
                 {"NVIDIA L4", "NVIDIA L4"},
                 {"NVIDIA L40S", "NVIDIA L40S"},
                 {"Tesla T4", "NVIDIA T4"},
                 {"Tesla V100-SXM2-16GB", "NVIDIA V100 SXM2"},
                 {"NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"},
                 {"AMD Instinct MI300X OAM", "AMD Instinct MI300X"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const stk_accelerator *a = stk_accelerator_find(known[i].chip);
        assert_non_null(a);
        assert_string_equal(a->name, known[i].name);
    }
    assert_null(stk_accelerator_find("NVIDIA A1000"));
    assert_null(stk_accelerator_find(""));
    assert_null(stk_accelerator_find(NULL));
    assert_close(stk_accelerator_peak(stk_accelerator_find("NVIDIA A100-SXM4-40GB"), "bf16"), 312e12);
    assert_true(isnan(stk_accelerator_peak(stk_accelerator_find("Tesla T4"), "bf16")));
    const stk_accelerator *a;
    for (int i = 0; (a = stk_accelerator_at(i)); i++) {
        assert_true(a->source[0] && strlen(a->as_of) == 10 && a->released > 2010 && a->memory_gb > 0);
        /* 16 bits are at least as fast as 32, memory moves between 0.1 and 10 TB/s. */
        if (isfinite(a->bf16) && isfinite(a->f32)) assert_true(a->bf16 >= a->f32);
        assert_true(a->bandwidth_gb_s > 100 && a->bandwidth_gb_s < 10000);
    }
}

/* docs/accelerators.md ends with the table; stoker devices --published prints it. */
static void test_page(void **state)
{
    (void)state;
    stk_text text = {0};
    stk_span file;
    stk_accelerators_tell(&text);
    assert_int_equal(stk_text_status(&text), STK_OK);
    assert_int_equal(stk_file_load(STK_SOURCE_DIR "/docs/accelerators.md", &file), STK_OK);
    assert_true(file.n > text.n);
    if (memcmp((const char *)file.data + file.n - text.n, stk_text_get(&text), text.n))
        fail_msg("docs/accelerators.md has another table than stoker devices --published");
    stk_file_unload(file);
    stk_text_free(&text);
}

/* A chart for the network that was trained at two batches, none for that of one; energy only where it was measured. */
static void test_curves(void **state)
{
    (void)state;
    static const char text[] =
        "{\"cases\": ["
        "{\"name\": \"net bf16, largest batch\", \"unit\": \"samples/s\", \"precision\": \"bf16\", \"summary\": "
        "{\"median\": {\"value\": 90}, \"metrics\": {\"batch\": 64}}},"
        "{\"name\": \"net bf16\", \"unit\": \"samples/s\", \"precision\": \"bf16\", \"summary\": "
        "{\"median\": {\"value\": 50}, \"metrics\": {\"batch\": 8%s}}},"
        "{\"name\": \"other f32\", \"unit\": \"samples/s\", \"precision\": \"f32\", \"summary\": "
        "{\"median\": {\"value\": 20}, \"metrics\": {\"batch\": 8}}}]}";
    char whole[2048];
    for (int has_energy = 0; has_energy < 2; has_energy++) {
        stk_text out = {0};
        snprintf(whole, sizeof(whole), text, has_energy ? ", \"gpu_joules_per_sample\": 2" : "");
        stk_bench_kept kept = {.root = json_loads(whole, 0, NULL)};
        assert_non_null(kept.root);
        if (has_energy)
            json_object_set_new(
                json_object_get(json_object_get(json_array_get(json_object_get(kept.root, "cases"), 0), "summary"),
                                "metrics"),
                "gpu_joules_per_sample", json_real(1));
        stk_bench_page_curves(&out, &kept);
        assert_non_null(strstr(stk_text_get(&out), "net: samples/s over the batch"));
        assert_null(strstr(stk_text_get(&out), "other"));
        assert_int_equal(strstr(stk_text_get(&out), "net: joules a sample over the batch") != NULL, has_energy);
        stk_text_free(&out);
        json_decref(kept.root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_use_by_hand),  cmocka_unit_test(test_roofs),
                                       cmocka_unit_test(test_efficiency),   cmocka_unit_test(test_run_folder),
                                       cmocka_unit_test(test_accelerators), cmocka_unit_test(test_page),
                                       cmocka_unit_test(test_curves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
