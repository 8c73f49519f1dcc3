/* A recipe's training step compared with what its products and convolutions alone take in oneDNN, in the same run.
 *
 *     bench_step [--steps N] [--seconds S] [--threads T] [--set KEY=VALUE]... [--all | --calls | --limits] [RECIPE]...
 *
 * Without a recipe: recipes/bench-resnet18.yaml, bench-resnet50.yaml, bench-gpt2.yaml and bench-bert.yaml. The shapes
 * are those of the compiled program. The step runs on one batch, N times (8) after a first one, and its fastest time
 * counts; then N times again with the time of each entry taken. Then each different product and convolution runs in
 * oneDNN by as many threads, S seconds long (0.1), and its fastest time counts as often as the step has it. Only then,
 * since oneDNN's team of threads spins for a while after each call.
 *
 * Between the profiled steps it is measured what all threads can do at once (limits.h), and how fast one large product
 * is in oneDNN, in the step's precision. The last line has what the step would take at these limits: its products by
 * tiles where they are of bf16 and the processor has such, else by vectors, and the bytes that all other ops read and
 * write at the rate of memory, nothing of which is kept in a cache; and the same with products at the large one's rate.
 *
 * The header has what one core can do, and how far two threads of the device are from each other (round_trip.h).
 * --all prints a line for each different product and convolution, and for each other call that takes 0.2 % of the step;
 * without it there are sums by op. --calls prints those that bench_ways can time, one a line as it reads them, and
 * times nothing. --limits prints the last line alone, as JSON, and times nothing in oneDNN (tools/limits.py).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/cpu/threads/parallel.h"
#include "engine/program.h"
#include "limits.h"
#include "onednn_alone.h"
#include "peak.h"
#include "recipe/build.h"
#include "round_trip.h"
#include "train/trainer_state.h"

typedef struct bench {
    int n_steps, n_threads;
    double seconds;
    bool all, calls, limits;
    const char *set[16];
    int n_set;
    double peak;   /* GFLOP/s of one core; 0: not known */
    float *memory; /* [3][TRIAD] */
} bench;

/* Entries of the step with the same op, attributes and shapes. */
typedef struct group {
    int32_t node; /* one of them */
    int n;
    double step_ns;     /* of all of them, in a step */
    double onednn_ns;   /* of one */
    bool is_f32, fails; /* oneDNN has it in f32 only; not at all */
    bool is_product;    /* else not timed in oneDNN */
} group;

/* All entries of an op. */
typedef struct op_sum {
    int n, n_onednn;
    double step_ns, onednn_ns, flops, bytes;
} op_sum;

enum { MOST_IN = 64, MOST_OUT = 16 };

typedef struct call_of {
    stk_tensor_desc in[MOST_IN], out[MOST_OUT];
    stk_op_call call;
} call_of;

/* False for a node with more inputs than anything that is timed here. */
static bool find_call(const stk_graph *graph, int32_t i, call_of *c)
{
    if (graph->node[i].n_in > MOST_IN || graph->node[i].n_out > MOST_OUT) return false;
    c->call = stk_graph_call(graph, i, c->in, c->out);
    return true;
}

/* --- the step --- */

/* All threads' in GFLOP/s; 0 where oneDNN has it not in this dtype. */
static stk_status measure_product(stk_device *device, stk_dtype dtype, double *rate)
{
    enum { SIDE = 2048, REST_NS = 30000000 }; /* its threads spin for a while, which the next step is not to feel */
    stk_tensor_desc in[2] = {stk_desc_make(dtype, STK_SHAPE(SIDE, SIDE)), stk_desc_make(dtype, STK_SHAPE(SIDE, SIDE))};
    stk_attrs attrs = {0};
    stk_op_call call = {.op = STK_OP_matmul, .in = in, .out = in, .n_in = 2, .n_out = 1, .attrs = &attrs};
    double ns;
    bool is_f32;
    int before = stk_cpu_swap_thread_count(device->n_threads);
    stk_status status = onednn_alone_time(device, &call, 0, &ns, &is_f32);
    stk_cpu_swap_thread_count(before);
    *rate = 0;
    if (status == STK_UNSUPPORTED) return STK_OK;
    STK_RETURN_IF_ERROR(status);
    *rate = stk_op_cost(&call).flops / ns;
    nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    return STK_OK;
}

static void add_limits(limits *sum, limits l)
{
    sum->vectors += l.vectors;
    sum->tiles += l.tiles;
    sum->memory += l.memory;
    sum->product += l.product;
}

/* What most of the step's multiply-adds are done in. */
static stk_dtype main_dtype(const stk_program *program)
{
    static call_of c;
    double flops[2] = {0};
    for (int e = 0; e < program->n_entries; e++) {
        int32_t node = program->info[e].node;
        if (node < 0 || !find_call(program->graph, node, &c) || !onednn_alone_has(c.call.op)) continue;
        flops[c.in[0].dtype == STK_BF16] += stk_op_cost(&c.call).flops;
    }
    return flops[1] > flops[0] ? STK_BF16 : STK_F32;
}

/* found: means over the profiled steps. */
static stk_status time_steps(const bench *b, stk_program *program, double *best_ns, limits *found)
{
    stk_device *device = program->engine->device;
    stk_dtype dtype = main_dtype(program);
    limits sum = {0};
    *best_ns = 1e30;
    for (int i = -1; i < b->n_steps; i++) {
        int64_t start = stk_clock_ns();
        STK_RETURN_IF_ERROR(stk_program_run(program));
        double took = (double)(stk_clock_ns() - start);
        if (i >= 0 && took < *best_ns) *best_ns = took;
    }
    stk_program_profile(program, true);
    for (int i = 0; i < b->n_steps; i++) {
        limits now = measure_limits(device, b->memory);
        STK_RETURN_IF_ERROR(measure_product(device, dtype, &now.product));
        add_limits(&sum, now);
        STK_RETURN_IF_ERROR(stk_program_run(program));
    }
    stk_program_profile(program, false);
    double n = b->n_steps;
    *found = (limits){sum.vectors / n, sum.tiles / n, sum.memory / n, sum.product / n};
    return STK_OK;
}

static bool is_same(const call_of *a, const call_of *b)
{
    if (a->call.op != b->call.op || a->call.n_in != b->call.n_in) return false;
    if (memcmp(a->call.attrs, b->call.attrs, sizeof(*a->call.attrs))) return false;
    for (int i = 0; i < a->call.n_in; i++)
        if (a->in[i].dtype != b->in[i].dtype || !stk_shape_equal(a->in[i].shape, b->in[i].shape)) return false;
    return true;
}

static double entry_ns(const stk_program *program, int e)
{
    return (double)program->info[e].time_ns / (double)(program->n_profiled ? program->n_profiled : 1);
}

/* groups has room for all entries; sums for all ops. Returns how many groups there are. */
static int sort_entries(const stk_program *program, group *groups, op_sum *sums)
{
    const stk_graph *graph = program->graph;
    static call_of mine, other; /* large */
    int n = 0;
    for (int e = 0; e < program->n_entries; e++) {
        int32_t node = program->info[e].node;
        if (node < 0 || !find_call(graph, node, &mine)) continue;
        op_sum *sum = &sums[mine.call.op];
        stk_cost cost = stk_op_cost(&mine.call);
        sum->n++;
        sum->step_ns += entry_ns(program, e);
        sum->flops += cost.flops;
        sum->bytes += cost.bytes;
        int i = 0;
        while (i < n && !(find_call(graph, groups[i].node, &other) && is_same(&mine, &other)))
            i++;
        if (i == n) groups[n++] = (group){.node = node, .is_product = onednn_alone_has(mine.call.op)};
        groups[i].n++;
        groups[i].step_ns += entry_ns(program, e);
    }
    return n;
}

/* --- oneDNN --- */

static stk_status time_groups(const bench *b, stk_program *program, group *groups, int n, op_sum *sums)
{
    static call_of c;
    for (int i = 0; i < n; i++) {
        group *g = &groups[i];
        if (!g->is_product || !find_call(program->graph, g->node, &c)) continue;
        stk_status status = onednn_alone_time(program->engine->device, &c.call, b->seconds, &g->onednn_ns, &g->is_f32);
        g->fails = status == STK_UNSUPPORTED;
        if (g->fails) continue;
        STK_RETURN_IF_ERROR(status);
        sums[c.call.op].n_onednn += g->n;
        sums[c.call.op].onednn_ns += g->n * g->onednn_ns;
    }
    return STK_OK;
}

/* --- tables --- */

static void print_groups(const bench *b, const stk_program *program, const group *groups, int n)
{
    static call_of c;
    char text[3][STK_SHAPE_TEXT_BYTES];
    printf("| product or convolution | times | in the step, ms | of peak | oneDNN, ms | of peak |\n"
           "|---|---:|---:|---:|---:|---:|\n");
    for (int i = 0; i < n; i++) {
        const group *g = &groups[i];
        if (!g->is_product || !find_call(program->graph, g->node, &c)) continue;
        double percent = 100 * stk_op_cost(&c.call).flops / (b->peak > 0 ? b->peak : 1e30), one = g->step_ns / g->n;
        printf("| %s %s, %s -> %s | %d | %.3f | %.0f %% |", stk_op_name(c.call.op), stk_desc_text(c.in[0], text[0]),
               stk_desc_text(c.in[1], text[1]), stk_desc_text(c.out[0], text[2]), g->n, one * 1e-6, percent / one);
        if (g->fails)
            printf(" - | - |\n");
        else
            printf(" %.3f%s | %.0f %% |\n", g->onednn_ns * 1e-6, g->is_f32 ? " in f32" : "", percent / g->onednn_ns);
    }
    printf("\n");
}

/* What is neither a product nor a convolution, but for what takes next to nothing. */
static void print_other_groups(const stk_program *program, const group *groups, int n)
{
    static call_of c;
    char text[2][STK_SHAPE_TEXT_BYTES];
    double total = 0;
    for (int i = 0; i < n; i++)
        total += groups[i].step_ns;
    printf("| other | times | in the step, ms | GB/s |\n|---|---:|---:|---:|\n");
    for (int i = 0; i < n; i++) {
        const group *g = &groups[i];
        if (g->is_product || g->step_ns < 0.002 * total || !find_call(program->graph, g->node, &c)) continue;
        double one = g->step_ns / g->n;
        printf("| %s %s, %d in all -> %s, %d in all | %d | %.3f | %.1f |\n", stk_op_name(c.call.op),
               c.call.n_in ? stk_desc_text(c.in[0], text[0]) : "", c.call.n_in, stk_desc_text(c.out[0], text[1]),
               c.call.n_out, g->n, one * 1e-6, stk_op_cost(&c.call).bytes / one);
    }
    printf("\n");
}

static const op_sum *sums_to_sort;

static int compare_sums(const void *a, const void *b)
{
    double x = sums_to_sort[*(const int *)a].step_ns, y = sums_to_sort[*(const int *)b].step_ns;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void print_sums(const op_sum *sums)
{
    int order[STK_N_OPS];
    double total = 0;
    for (int i = 0; i < STK_N_OPS; i++) {
        order[i] = i;
        total += sums[i].step_ns;
    }
    sums_to_sort = sums;
    qsort(order, STK_N_OPS, sizeof(order[0]), compare_sums);
    printf("| op | times | in the step, ms | share | GFLOP/s | GB/s | oneDNN, ms "
           "|\n|---|---:|---:|---:|---:|---:|---:|\n");
    for (int i = 0; i < STK_N_OPS && sums[order[i]].n; i++) {
        const op_sum *s = &sums[order[i]];
        printf("| %s | %d | %.2f | %.1f %% | %.0f | %.1f |", stk_op_name((stk_op)order[i]), s->n, s->step_ns * 1e-6,
               100 * s->step_ns / total, s->flops / s->step_ns, s->bytes / s->step_ns);
        if (s->n_onednn)
            printf(" %.2f |\n", s->onednn_ns * 1e-6);
        else
            printf(" |\n");
    }
}

/* Weights that are kept packed, and copies at the end of a step. */
static void print_others(const stk_program *program)
{
    double ns = 0, bytes = 0;
    int n = 0;
    for (int e = 0; e < program->n_entries; e++) {
        int32_t node = program->info[e].node;
        if (node >= 0) continue;
        int k = -1 - node - program->plan.n_copies;
        ns += entry_ns(program, e);
        bytes += k >= 0 ? 3 * (double)program->kernel[program->packed.weight[k].node].packed_bytes
                        : 0; /* 4 bytes read, 2 written */
        n++;
    }
    if (n) printf("| packing of weights, copies | %d | %.2f | | | %.1f | |\n", n, ns * 1e-6, bytes / ns);
}

static void print_ratio(double step_ns, const op_sum *sums, const group *groups, int n)
{
    double ours = 0, onednn = 0;
    bool in_f32 = false;
    int n_missing = 0;
    for (int i = 0; i < STK_N_OPS; i++)
        if (sums[i].n_onednn) {
            ours += sums[i].step_ns;
            onednn += sums[i].onednn_ns;
        }
    for (int i = 0; i < n; i++) {
        in_f32 |= groups[i].is_f32;
        n_missing += groups[i].fails ? groups[i].n : 0;
    }
    printf(
        "\nThe step takes %.2f ms, its products and convolutions %.2f ms of it. Alone in oneDNN%s these take %.2f ms: "
        "the step is **%.2fx** of that.\n",
        step_ns * 1e-6, ours * 1e-6, in_f32 ? " (in f32: it has no 16-bit ones here)" : "", onednn * 1e-6,
        step_ns / onednn);
    if (n_missing) printf("oneDNN does not have %d of them, which are missing in its time.\n", n_missing);
}

static void print_limit(const stk_program *program, const group *groups, int n, double step_ns, limits l, bool as_json)
{
    static call_of c;
    double products = 0, bytes = 0, flops = 0;
    for (int i = 0; i < n; i++) {
        const group *g = &groups[i];
        if (!find_call(program->graph, g->node, &c)) continue;
        stk_cost cost = stk_op_cost(&c.call);
        bool is_half = c.in[0].dtype == STK_BF16 && l.tiles > 0;
        if (g->is_product)
            products += g->n * cost.flops / (is_half ? l.tiles : l.vectors), flops += g->n * cost.flops;
        else
            bytes += g->n * cost.bytes;
    }
    if (l.vectors == 0 || l.memory == 0) return;
    double limit = products + bytes / l.memory;
    double by_product = l.product > 0 ? flops / l.product + bytes / l.memory : 0;
    if (as_json) {
        printf(
            "{\"step_ms\": %.3f, \"vectors\": %.1f, \"tiles\": %.1f, \"memory\": %.2f, \"gflop\": %.2f, "
            "\"products_ms\": %.3f, \"others_ms\": %.3f, \"share\": %.4f, \"product\": %.1f, \"by_product\": %.4f}\n",
            step_ns * 1e-6, l.vectors, l.tiles, l.memory, flops * 1e-9, products * 1e-6, bytes / l.memory * 1e-6,
            limit / step_ns, l.product, by_product / step_ns);
        return;
    }
    printf("Between the steps all threads came to %.0f GFLOP/s in vectors", l.vectors);
    if (l.tiles > 0) printf(", %.0f in tiles", l.tiles);
    printf(" and %.1f GB/s: the %.0f GFLOP of products take %.0f ms at that, the %.2f GB of all else %.0f ms. The step "
           "is at **%.0f %%** of this limit.\n",
           l.memory, flops * 1e-9, products * 1e-6, bytes * 1e-9, bytes / l.memory * 1e-6, 100 * limit / step_ns);
    if (by_product > 0)
        printf("A product of 2,048 x 2,048 by 2,048 x 2,048 came to %.0f GFLOP/s in oneDNN: with all products at that "
               "rate the step is at **%.0f %%**.\n",
               l.product, 100 * by_product / step_ns);
}

/* --- calls --- */

static void print_product(const call_of *c)
{
    stk_shape a = c->in[0].shape, b = c->in[1].shape, y = c->out[0].shape;
    bool ta = c->call.attrs->matmul.transpose_a, tb = c->call.attrs->matmul.transpose_b;
    long long batches = stk_shape_product(y, 0, y.rank - 2), m = y.dim[y.rank - 2];
    bool shares = b.rank == 2 && !ta;
    if (shares) m *= batches, batches = 1;
    printf("matmul %s %s %lld %lld %lld %lld %d %d %d\n", stk_dtype_name(c->in[0].dtype),
           stk_dtype_name(c->out[0].dtype), batches, m, (long long)y.dim[y.rank - 1],
           (long long)a.dim[a.rank - (ta ? 2 : 1)], ta, tb, batches > 1 && b.rank == 2);
}

static void print_convolution(const call_of *c)
{
    const stk_window *w = &c->call.attrs->window;
    bool of_data = c->call.op == STK_OP_conv2d_grad_data, of_weight = c->call.op == STK_OP_conv2d_grad_weight;
    stk_shape x = of_data ? c->out[0].shape : c->in[0].shape, weight = of_weight ? c->out[0].shape : c->in[1].shape;
    /* What is not the same along both sides bench_ways does not read. */
    if (w->stride[0] != w->stride[1] || w->pad_low[0] != w->pad_low[1] || w->pad_high[0] != w->pad_high[1] ||
        w->dilation[0] != w->dilation[1])
        return;
    printf("%s %s %s %lld %lld %lld %lld %lld %lld %lld %d %d %d %d %d\n", stk_op_name(c->call.op),
           stk_dtype_name(c->in[0].dtype), stk_dtype_name(c->out[0].dtype), (long long)x.dim[0], (long long)x.dim[1],
           (long long)x.dim[2], (long long)x.dim[3], (long long)weight.dim[0], (long long)weight.dim[1],
           (long long)weight.dim[2], w->stride[0], w->pad_low[0], w->pad_high[0], w->dilation[0], w->groups);
}

static void print_calls(const stk_program *program)
{
    static call_of c;
    for (int e = 0; e < program->n_entries; e++) {
        int32_t node = program->info[e].node;
        if (node < 0 || !find_call(program->graph, node, &c)) continue;
        if (c.call.op == STK_OP_matmul)
            print_product(&c);
        else if (c.call.op == STK_OP_conv2d || c.call.op == STK_OP_conv2d_grad_data ||
                 c.call.op == STK_OP_conv2d_grad_weight)
            print_convolution(&c);
    }
}

/* --- a recipe --- */

/* The trainer of a recipe with its step compiled; *out is set first, so that it is freed also after a failure. */
static stk_status open_trainer(const bench *b, const stk_recipe *recipe, stk_trainer **out)
{
    stk_dataset *train = NULL;
    stk_model *model = NULL;
    stk_trainer_config config = stk_build_config(recipe);
    stk_status status = STK_OK;
    STK_TRY(stk_build_dataset(recipe, STK_PART_TRAIN, &train));
    STK_TRY(stk_build_model(recipe, train, &model));
    *out = stk_trainer_new(model, train, recipe->optimizer);
    config.n_threads = b->n_threads;
    stk_trainer_configure(*out, &config);
    return stk_trainer_prepare(*out, 1);
done:
    stk_model_free(model);
    stk_dataset_free(train);
    return status;
}

static stk_status compare(const bench *b, stk_trainer *trainer)
{
    stk_program *program = trainer->train.program;
    const stk_device *device = stk_engine_device(trainer->engine);
    op_sum sums[STK_N_OPS] = {{0}};
    double step_ns;
    limits found;
    stk_text about = {0};
    stk_status status = STK_OK;
    group *groups = calloc((size_t)program->n_entries + 1, sizeof(*groups));
    if (!groups) return stk_fail_memory((size_t)program->n_entries * sizeof(*groups));
    if (b->limits) {
        STK_TRY(time_steps(b, program, &step_ns, &found));
        print_limit(program, groups, sort_entries(program, groups, sums), step_ns, found, true);
        goto done;
    }
    device->class->describe(device, &about);
    printf("%s; multiply-adds at %.0f GFLOP/s a core; ", stk_text_get(&about), b->peak);
    if (device->n_threads > 1)
        printf("a word between two threads and back in %.0f ns; ", measure_round_trip(device->n_threads));
    printf("batch %lld, arena %.0f MiB\n\n", (long long)trainer->train.batch,
           (double)program->plan.arena_bytes / (1 << 20));
    STK_TRY(time_steps(b, program, &step_ns, &found));
    int n = sort_entries(program, groups, sums), before = stk_cpu_swap_thread_count(device->n_threads);
    status = time_groups(b, program, groups, n, sums);
    stk_cpu_swap_thread_count(before);
    STK_TRY(status);
    bench scaled = *b;
    scaled.peak *= device->n_threads;
    if (b->all) print_groups(&scaled, program, groups, n), print_other_groups(program, groups, n);
    print_sums(sums);
    print_others(program);
    print_ratio(step_ns, sums, groups, n);
    print_limit(program, groups, n, step_ns, found, false);
done:
    stk_text_free(&about);
    free(groups);
    return status;
}

static void print_title(const bench *b, const char *path)
{
    printf("\n### %s", path);
    for (int i = 0; i < b->n_set; i++)
        printf(", %s", b->set[i]);
    printf("\n\n");
}

static stk_status bench_recipe(const bench *b, const char *path)
{
    stk_recipe *recipe = NULL;
    stk_trainer *trainer = NULL;
    stk_loader *loader = NULL;
    stk_status status = STK_OK;
    if (!b->calls && !b->limits) print_title(b, path);
    STK_TRY(stk_recipe_read(path, b->set, b->n_set, &recipe));
    STK_TRY(stk_recipe_find_data(recipe));
    STK_TRY(open_trainer(b, recipe, &trainer));
    if (b->calls) {
        print_calls(trainer->train.program);
        goto done;
    }
    stk_loader_config config = stk_loader_config_default();
    config.n_threads = 1;
    STK_TRY(stk_loader_open(trainer->dataset, &config, &loader));
    const stk_batch *batch = stk_loader_next(loader);
    STK_TRY(stk_loader_status(loader));
    if (!batch) STK_TRY(stk_fail(STK_INVALID, "'%s' has no batch", path));
    stk_step_bind(&trainer->train, batch);
    STK_TRY(compare(b, trainer));
done:
    stk_loader_close(loader);
    stk_trainer_free(trainer);
    stk_recipe_free(recipe);
    return status;
}

static int fail_usage(void)
{
    fprintf(stderr, "usage: bench_step [--steps N] [--seconds S] [--threads T] [--set KEY=VALUE]... "
                    "[--all | --calls | --limits] [RECIPE]...\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"recipes/bench-resnet18.yaml", "recipes/bench-resnet50.yaml",
                                        "recipes/bench-gpt2.yaml", "recipes/bench-bert.yaml"};
    setvbuf(stdout, NULL, _IOLBF, 0);
    bench b = {.n_steps = 8, .seconds = 0.1, .peak = measure_peak()};
    const char *const *recipes = usual;
    int n_recipes = 4, i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--all")) {
            b.all = true;
            continue;
        }
        if (!strcmp(argv[i], "--calls")) {
            b.calls = true;
            continue;
        }
        if (!strcmp(argv[i], "--limits")) {
            b.limits = true;
            continue;
        }
        if (!value) return fail_usage();
        if (!strcmp(argv[i], "--steps"))
            b.n_steps = atoi(value);
        else if (!strcmp(argv[i], "--seconds"))
            b.seconds = atof(value);
        else if (!strcmp(argv[i], "--threads"))
            b.n_threads = atoi(value);
        else if (!strcmp(argv[i], "--set") && b.n_set < 16)
            b.set[b.n_set++] = value;
        else
            return fail_usage();
        i++;
    }
    if (i < argc) recipes = (const char *const *)argv + i, n_recipes = argc - i;
    b.memory = malloc(3 * sizeof(*b.memory) * TRIAD);
    if (!b.memory) return 1;
    memset(b.memory, 0, 3 * sizeof(*b.memory) * TRIAD);
    for (int r = 0; r < n_recipes; r++)
        if (bench_recipe(&b, recipes[r]) != STK_OK) {
            fprintf(stderr, "bench_step: %s\n", stk_error_text());
            free(b.memory);
            return 1;
        }
    free(b.memory);
    return 0;
}
