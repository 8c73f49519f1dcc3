#include "bench/metric.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

static const struct {
    const char *name, *file, *place, *text;
} metrics[] = {
#define X(name, file, place, text) {#name, #file, place, text},
    STK_BENCH_METRICS(X)
#undef X
};

const char *stk_bench_metric_name(int i)
{
    return metrics[i].name;
}

const char *stk_bench_metric_text(int i)
{
    return metrics[i].text;
}

double stk_bench_number_at(const json_t *object, const char *place)
{
    char name[256];
    while (object && *place) {
        size_t n = strcspn(place, ".");
        snprintf(name, sizeof(name), "%.*s", (int)n, place);
        object = json_object_get(object, name);
        place += n + (place[n] == '.');
    }
    return json_is_number(object) ? json_number_value(object) : NAN;
}

/* NULL: there is none. */
static json_t *read_neighbour(const char *path, const char *name)
{
    char other[4096];
    json_t *root = NULL;
    const char *slash = strrchr(path, '/');
    snprintf(other, sizeof(other), "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name);
    if (!stk_path_exists(other) || stk_json_read(other, 0, &root) != STK_OK) return NULL;
    return root;
}

void stk_bench_metrics_read(const char *path, double out[STK_BENCH_N_METRICS])
{
    for (int i = 0; i < STK_BENCH_N_METRICS; i++)
        out[i] = NAN;
    if (!path) return;
    json_t *profile = read_neighbour(path, "profile.json"), *result = NULL;
    if (profile) result = read_neighbour(path, "result.json");
    for (int i = 0; result && i < STK_BENCH_N_METRICS; i++)
        out[i] = stk_bench_number_at(!strcmp(metrics[i].file, "profile") ? profile : result, metrics[i].place);
    json_decref(profile);
    json_decref(result);
}

json_t *stk_bench_metrics_json(const double metric[STK_BENCH_N_METRICS])
{
    json_t *object = json_object();
    for (int i = 0; i < STK_BENCH_N_METRICS; i++)
        if (isfinite(metric[i])) json_object_set_new(object, metrics[i].name, json_real(metric[i]));
    return object;
}

void stk_bench_metrics_parse(const json_t *object, double out[STK_BENCH_N_METRICS])
{
    for (int i = 0; i < STK_BENCH_N_METRICS; i++)
        out[i] = stk_bench_number_at(object, metrics[i].name);
}

stk_bench_use stk_bench_use_of(const double metric[STK_BENCH_N_METRICS], int n_replicas, stk_bench_roof published,
                               stk_bench_roof measured)
{
    double step_s = metric[STK_BENCH_METRIC_step_s];
    double all = metric[STK_BENCH_METRIC_step_flop] * n_replicas;
    double recomputed = metric[STK_BENCH_METRIC_recomputed_flop] * n_replicas;
    if (isnan(recomputed)) recomputed = 0;
    stk_bench_use use = {.flop_per_s = (all - recomputed) / step_s};
    use.of_published = use.flop_per_s / published.flop_per_s;
    use.of_measured = use.flop_per_s / measured.flop_per_s;
    use.hardware_share = all / step_s / measured.flop_per_s;
    use.intensity = metric[STK_BENCH_METRIC_step_flop] / metric[STK_BENCH_METRIC_step_bytes];
    double by_memory = use.intensity * measured.byte_per_s;
    use.roofline_flop_per_s =
        isnan(by_memory) || isnan(measured.flop_per_s) ? NAN : fmin(measured.flop_per_s, by_memory);
    return use;
}
