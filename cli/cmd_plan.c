/* stoker plan: what training a recipe needs, before it is trained. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "progress.h"
#include "stoker/data/cache.h"
#include "stoker/observe/plan.h"

static const cli_option options[] = {
    {"--set", "KEY=VALUE", "changes a key of the recipe; may be given often"},
    {"--memory", "SIZE", "short for --set memory=SIZE: plans within 8GiB, 60%"},
    {"--device", "DEVICE", "short for --set device=NAME; tpu:v5e:2x2: compiles the step for TPUs that are not here"},
    {"--precision", "auto|f32|tf32|bf16|f16", "short for --set precision=NAME"},
    {"--batch", "N", "short for --set batch=N"},
    {"--replicas", "N", "short for --set replicas=N: the plan is that of one of them"},
    {"--largest-batch", "SECONDS",
     "prints the largest batch, of doublings of the recipe's, that fits into memory as a whole "
     "and whose step is expected to take no more than that"},
    {"--json", NULL, "prints JSON"},
    {"--dump-graph", "PASS", "prints the graph after that pass, or after each with 'all'"},
    {NULL, NULL, NULL}};

/* --- text --- */

/* A row; none of what takes nothing. */
static void print_bytes(const char *what, size_t bytes, const char *note)
{
    char text[CLI_TEXT];
    if (bytes == 0) return;
    cli_printf("  %-24s %12s%s%s\n", what, cli_bytes((double)bytes, text), note[0] ? "  " : "", note);
}

/* What is there at the moment of most, so that the lines above the peak add up to it. */
static void print_memory(const stk_memory_plan *p)
{
    char note[128], a[CLI_TEXT];
    if (p->n_replicas > 1)
        snprintf(note, sizeof(note), " of each of %d replicas", p->n_replicas);
    else
        note[0] = 0;
    cli_printf("memory  of a step of %" PRId64 " samples%s in %s%s, when it needs most\n", p->batch, note,
               stk_dtype_name(p->compute), p->tf32 ? ", products in TF32" : "");
    snprintf(note, sizeof(note), "%s numbers that are trained", cli_count(p->n_trainable, a));
    print_bytes("parameters", p->trainable_bytes, note);
    snprintf(note, sizeof(note), "%s numbers that are not trained", cli_count(p->n_frozen, a));
    print_bytes("frozen, statistics", p->frozen_bytes, note);
    print_bytes("optimiser state", p->optimizer_bytes, "");
    if (p->packed_bytes) print_bytes("packed weights", p->packed_bytes, "in 16 bits, in the order that kernels want");
    print_bytes("gradients", p->gradient_bytes,
                p->n_micro > 1 ? "of parameters, kept for the whole step" : "of parameters, each until its update");
    print_bytes("activations", p->activation_bytes, "kept for the backward pass");
    print_bytes("backward pass", p->backward_bytes, "gradients of activations, and activations recomputed");
    print_bytes("workspace", p->workspace_bytes, "of kernels");
    snprintf(note, sizeof(note), "unused between places of the above, %.1f %%",
             p->arena_bytes ? 100 * (double)p->unused_bytes / (double)p->arena_bytes : 0);
    print_bytes("gaps", p->unused_bytes, note);
    print_bytes("peak", p->peak_bytes, "all of the above");
    if (p->program_bytes > 0)
        print_bytes("program", p->program_bytes, "besides: lists of kernels, and libraries that they use");
    if (p->pipeline_bytes > 0)
        print_bytes("input pipeline", p->pipeline_bytes, "besides, as much as the limit leaves to it");
    if (p->spread_bytes > 0)
        print_bytes("spread", p->spread_bytes,
                    "besides, where there is room: cores do not take memory from each other");
    if (p->checkpoint_copy_bytes > 0)
        print_bytes("a copy, once it saves", p->checkpoint_copy_bytes,
                    "besides; where a limit leaves no room, steps wait");
    if (p->n_recomputed > 0)
        cli_printf("  recompute %" PRId64 " of %" PRId64 " activations instead of keeping them: %.1f %% more FLOP\n",
                   p->n_recomputed, p->n_kept, 100 * p->recompute_flops / (p->flops - p->recompute_flops));
    if (p->n_micro > 1)
        cli_printf("  the batch goes through in %" PRId64 " micro-batches of %" PRId64 "\n", p->n_micro,
                   p->micro_batch);
    if (p->slowdown > 1.005)
        cli_printf("  to fit into the limit, a step takes about %.2fx the time of one without\n", p->slowdown);
    if (p->n_fewest > 0 && p->n_fewest < p->n_micro)
        cli_printf("  with fewer parts, %" PRId64 ", it would take about %.2fx, for what is computed twice then\n",
                   p->n_fewest, p->fewest_slowdown);
}

static void print_speed(const stk_memory_plan *p, const stk_device_speed *speed)
{
    char a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT], d[CLI_TEXT];
    double limit = p->flops / speed->flops_per_s;
    cli_printf(
        "step    expected %s, %s samples/s, by what was just measured here: %.1f GB/s of memory, and %s GFLOP/s of "
        "a large matrix product in %s\n",
        cli_time(p->expected_s, a), cli_rate((double)p->batch / p->expected_s, b), speed->bytes_per_s * 1e-9,
        cli_rate(speed->flops_per_s * 1e-9, c), stk_dtype_name(p->compute == STK_BF16 ? STK_BF16 : STK_F32));
    cli_printf("        %s, %s of memory traffic at least; all at that product's rate: %s, %s samples/s\n",
               cli_flops(p->flops, a), cli_bytes(p->bytes, b), cli_time(limit, c),
               cli_rate((double)p->batch / limit, d));
    if (p->is_compiled)
        cli_printf("        as its ops would take one by one; the plug-in compiles them as a whole, which may be many "
                   "times as fast\n");
    else if (p->expected_s < limit)
        cli_printf("        3x3 convolutions save multiplications, and so are faster\n");
}

static void print_sums(const stk_memory_plan *p)
{
    char bytes[CLI_TEXT], other[CLI_TEXT];
    if (p->n_replicas < 2) return;
    double way = 2 * (double)p->sum_bytes * (p->n_replicas - 1) / p->n_replicas;
    cli_printf("sums    replicas meet %d times a step and add up %s each; between hosts each would send and get %s\n",
               p->n_sums, cli_bytes((double)p->sum_bytes, bytes), cli_bytes(way, other));
}

static int compare_layers(const void *a, const void *b)
{
    const stk_layer_bytes *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->name, y->name);
}

static void print_layers(stk_memory_plan *p)
{
    enum { MOST = 12 };
    qsort(p->layer, (size_t)p->n_layers, sizeof(*p->layer), compare_layers);
    if (p->n_layers > 0) cli_printf("activations by layer, of those above\n");
    for (int i = 0; i < p->n_layers && i < MOST; i++)
        print_bytes(strcmp(p->layer[i].name, "-") ? p->layer[i].name : "of no layer", p->layer[i].bytes, "");
    size_t rest = 0;
    for (int i = MOST; i < p->n_layers; i++)
        rest += p->layer[i].bytes;
    char name[CLI_TEXT];
    snprintf(name, sizeof(name), "%d more", p->n_layers - MOST);
    if (p->n_layers > MOST) print_bytes(name, rest, "");
}

/* The peak for other batches and precisions, without a limit. */
static void print_others(stk_run *run, int64_t batch)
{
    static const char *const precisions[] = {"f32", "bf16"};
    cli_printf("peak for other batches and precisions, without a limit\n");
    for (int k = -2; k <= 2; k++) {
        int64_t n = k < 0 ? batch >> -k : batch << k;
        if (n < 1) continue;
        cli_printf("  batch %-6" PRId64, n);
        for (int i = 0; i < 2; i++) {
            char text[CLI_TEXT] = "-";
            stk_plan_request request = {.batch = n, .precision = precisions[i], .unlimited = true};
            stk_memory_plan p;
            if (stk_run_plan(run, &request, &p) == STK_OK) cli_bytes((double)p.peak_bytes, text);
            stk_memory_plan_free(&p);
            cli_printf("  %s %10s", precisions[i], text);
        }
        cli_printf("\n");
    }
}

/* --- of a compiled step --- */

static void print_compiled_memory(const stk_compiled_plan *p)
{
    char a[CLI_TEXT], note[160];
    int64_t most = p->argument_bytes + p->result_bytes + p->scratch_bytes + p->code_bytes;
    cli_printf("memory  of a step of %" PRId64 " samples in %s on %s%s, as XLA compiled it", p->batch, p->precision,
               p->n_chips > 1 ? "each " : "one ", p->chip);
    if (p->compile_ns > 0)
        cli_printf(" in %s\n", cli_duration((double)p->compile_ns * 1e-9, a));
    else
        cli_printf(" in an earlier run\n");
    print_bytes("arguments", (size_t)p->argument_bytes, "parameters, the optimiser's state, the batch");
    print_bytes("results", (size_t)p->result_bytes, "that take no argument's memory");
    print_bytes("scratch", (size_t)p->scratch_bytes, "activations, gradients and what else lies in between");
    print_bytes("program", (size_t)p->code_bytes, "");
    snprintf(note, sizeof(note), "all of the above; the chip has %s", cli_bytes((double)p->memory_bytes, a));
    print_bytes("peak", (size_t)most, p->memory_bytes ? note : "all of the above");
}

static void print_compiled_speed(const stk_compiled_plan *p)
{
    char a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT], d[CLI_TEXT];
    double least = p->arithmetic_s > p->traffic_s ? p->arithmetic_s : p->traffic_s;
    cli_printf("step    %s and %s of memory traffic on each chip, as XLA counts them\n", cli_flops(p->flops, a),
               cli_bytes(p->bytes, b));
    if (least <= 0) return;
    cli_printf("        at least %s by its maker's figures, which %s sets: at most %s samples/s with %d chip%s\n",
               cli_time(least, a), p->arithmetic_s > p->traffic_s ? "arithmetic in bf16" : "memory",
               cli_rate((double)p->batch * p->n_chips / least, b), p->n_chips, p->n_chips == 1 ? "" : "s");
    cli_printf("input   %s a step and chip: the host must feed up to %s/s, and %s/s in all\n",
               cli_bytes((double)p->fed_bytes, a), cli_bytes((double)p->fed_bytes / least, c),
               cli_bytes((double)p->fed_bytes * p->n_chips / least, d));
}

static void print_slow(const stk_compiled_plan *p)
{
    char a[CLI_TEXT];
    bool any = p->n_f32_products || p->n_gathers || p->n_scatters || p->padded_flops > 1.1 * p->product_flops;
    cli_printf(any ? "slow    on a TPU\n" : "slow    on a TPU: nothing that a look at shapes tells\n");
    if (p->padded_flops > 1.1 * p->product_flops) {
        cli_printf("  products fill tiles of 8 by 128 to about %.0f %%: most is lost in",
                   100 * p->product_flops / p->padded_flops);
        for (int i = 0; i < STK_PADDED_LAYERS && p->padded[i].lost_flops > 0; i++)
            cli_printf("%s '%s'", i ? "," : "", p->padded[i].name);
        cli_printf("\n");
    }
    if (p->n_f32_products)
        cli_printf("  %s of %" PRId64
                   " products are in f32, which takes a TPU several passes ('precision: bf16' leaves the last ones)\n",
                   cli_count(p->n_f32_products, a), p->n_products);
    if (p->n_gathers + p->n_scatters)
        cli_printf("  %" PRId64 " gathers and %" PRId64 " sums by number, row by row: embeddings and labels\n",
                   p->n_gathers, p->n_scatters);
}

static void print_compiled_json(const stk_compiled_plan *p)
{
    printf("{\"chip\": ");
    cli_json_text(stdout, p->chip);
    printf(", \"precision\": \"%s\"", p->precision);
    printf(", \"n_chips\": %d, \"batch\": %" PRId64 ", \"memory_bytes\": %" PRId64, p->n_chips, p->batch,
           p->memory_bytes);
    printf(", \"argument_bytes\": %" PRId64 ", \"result_bytes\": %" PRId64 ", \"scratch_bytes\": %" PRId64,
           p->argument_bytes, p->result_bytes, p->scratch_bytes);
    printf(", \"code_bytes\": %" PRId64 ", \"fed_bytes\": %" PRId64 ", \"compile_s\": %.3f", p->code_bytes,
           p->fed_bytes, (double)p->compile_ns * 1e-9);
    printf(", \"flops\": %.0f, \"bytes\": %.0f, \"arithmetic_s\": %.4g, \"traffic_s\": %.4g", p->flops, p->bytes,
           p->arithmetic_s, p->traffic_s);
    printf(", \"n_products\": %" PRId64 ", \"n_f32_products\": %" PRId64 ", \"n_gathers\": %" PRId64
           ", \"n_scatters\": %" PRId64,
           p->n_products, p->n_f32_products, p->n_gathers, p->n_scatters);
    printf(", \"product_flops\": %.0f, \"padded_flops\": %.0f, \"padded\": [", p->product_flops, p->padded_flops);
    for (int i = 0; i < STK_PADDED_LAYERS && p->padded[i].lost_flops > 0; i++) {
        printf("%s{\"layer\": ", i ? ", " : "");
        cli_json_text(stdout, p->padded[i].name);
        printf(", \"lost_flops\": %.0f}", p->padded[i].lost_flops);
    }
    printf("]}");
}

/* compiled: NULL, the device compiles no steps as a whole. */
static void print_json(const stk_memory_plan *p, const stk_device_speed *speed, const stk_compiled_plan *compiled)
{
    printf("{\"compute\": \"%s\", \"tf32\": %s, ", stk_dtype_name(p->compute), p->tf32 ? "true" : "false");
    printf("\"batch\": %" PRId64 ", \"micro_batch\": %" PRId64 ", \"n_micro\": %" PRId64, p->batch, p->micro_batch,
           p->n_micro);
    printf(", \"n_replicas\": %d, \"n_sums\": %d, \"sum_bytes\": %zu", p->n_replicas, p->n_sums, p->sum_bytes);
    printf(", \"n_trainable\": %" PRId64 ", \"n_frozen\": %" PRId64, p->n_trainable, p->n_frozen);
    printf(", \"trainable_bytes\": %zu, \"frozen_bytes\": %zu, \"optimizer_bytes\": %zu", p->trainable_bytes,
           p->frozen_bytes, p->optimizer_bytes);
    printf(", \"packed_bytes\": %zu, \"spread_bytes\": %zu", p->packed_bytes, p->spread_bytes);
    printf(", \"gradient_bytes\": %zu, \"activation_bytes\": %zu, \"backward_bytes\": %zu", p->gradient_bytes,
           p->activation_bytes, p->backward_bytes);
    printf(", \"workspace_bytes\": %zu, \"unused_bytes\": %zu, \"arena_bytes\": %zu", p->workspace_bytes,
           p->unused_bytes, p->arena_bytes);
    printf(", \"program_bytes\": %zu, \"pipeline_bytes\": %zu", p->program_bytes, p->pipeline_bytes);
    printf(", \"lower_bound_bytes\": %zu, \"peak_bytes\": %zu", p->lower_bound_bytes, p->peak_bytes);
    printf(", \"checkpoint_copy_bytes\": %zu", p->checkpoint_copy_bytes);
    printf(", \"n_kept\": %" PRId64 ", \"n_recomputed\": %" PRId64 ", \"slowdown\": ", p->n_kept, p->n_recomputed);
    cli_json_number(stdout, p->slowdown);
    printf(", \"n_fewest\": %" PRId64 ", \"fewest_slowdown\": ", p->n_fewest);
    cli_json_number(stdout, p->fewest_slowdown);
    printf(", \"n_groups\": %d", p->n_groups);
    printf(", \"flops\": %.0f, \"recompute_flops\": %.0f, \"bytes\": %.0f", p->flops, p->recompute_flops, p->bytes);
    printf(", \"flops_per_s\": %.4g, \"bytes_per_s\": %.4g, \"limit_s\": %.4g, \"expected_s\": %.4g",
           speed->flops_per_s, speed->bytes_per_s, p->flops / speed->flops_per_s, p->expected_s);
    printf(", \"is_compiled\": %s", p->is_compiled ? "true" : "false");
    printf(", \"layers\": [");
    for (int i = 0; i < p->n_layers; i++) {
        printf("%s{\"name\": ", i ? ", " : "");
        cli_json_text(stdout, p->layer[i].name);
        printf(", \"bytes\": %zu}", p->layer[i].bytes);
    }
    printf("]");
    if (compiled) {
        printf(", \"compiled\": ");
        print_compiled_json(compiled);
    }
    printf("}\n");
}

/* --- */

static int plan_ahead(stk_run *run, bool json)
{
    stk_compiled_plan p;
    stk_plan_request request = {.dump = true};
    if (stk_run_plan_compiled(run, &request, &p) != STK_OK) return cli_fail();
    if (json) {
        print_compiled_json(&p);
        printf("\n");
    } else {
        print_compiled_memory(&p);
        print_compiled_speed(&p);
        print_slow(&p);
    }
    return CLI_OK;
}

/* compiled: NULL, the device compiles no steps as a whole. */
static void print_plan(stk_run *run, stk_memory_plan *p, const stk_device_speed *speed,
                       const stk_compiled_plan *compiled)
{
    print_memory(p);
    if (compiled) print_compiled_memory(compiled);
    print_speed(p, speed);
    print_sums(p);
    print_layers(p);
    print_others(run, p->batch * p->n_replicas);
}

static int plan(const char *recipe, const stk_run_options *run_options, bool json)
{
    stk_run *run;
    stk_device_speed speed;
    stk_memory_plan p;
    stk_compiled_plan compiled;
    stk_plan_request request = {.speed = &speed, .dump = true};
    if (stk_run_open(recipe, run_options, &run) != STK_OK) return cli_fail();
    int code = CLI_OK;
    bool is_ahead;
    if (stk_run_is_ahead(run, &is_ahead) != STK_OK) {
        code = cli_fail();
    } else if (is_ahead) {
        code = plan_ahead(run, json);
    } else if (stk_run_measure(run, &speed) != STK_OK || stk_run_plan(run, &request, &p) != STK_OK) {
        code = cli_fail();
    } else {
        code = p.is_compiled && stk_run_plan_compiled(run, &request, &compiled) != STK_OK ? cli_fail() : CLI_OK;
        if (code == CLI_OK && json)
            print_json(&p, &speed, p.is_compiled ? &compiled : NULL);
        else if (code == CLI_OK)
            print_plan(run, &p, &speed, p.is_compiled ? &compiled : NULL);
        stk_memory_plan_free(&p);
    }
    stk_run_close(run);
    return code;
}

/* The largest of the recipe's batch, twice, four times, ... that needs no micro-batches, and whose step is expected to
 * take no more than most_s; the recipe's own in any case. */
static int print_largest(const char *recipe, const stk_run_options *run_options, double most_s)
{
    enum { DOUBLINGS = 20 };
    stk_run *run;
    stk_device_speed speed;
    int64_t batch = 0, largest = 0;
    if (stk_run_open(recipe, run_options, &run) != STK_OK) return cli_fail();
    int code = stk_run_measure(run, &speed) == STK_OK ? CLI_OK : cli_fail();
    for (int i = 0; i < DOUBLINGS && code == CLI_OK; i++) {
        stk_memory_plan p;
        stk_plan_request request = {.speed = &speed, .batch = batch};
        stk_status status = stk_run_plan(run, &request, &p);
        if (status == STK_NO_MEMORY && largest) break;
        if (status != STK_OK) {
            code = cli_fail();
            break;
        }
        bool fits = p.n_micro == 1 && p.slowdown < 1.05 && p.expected_s <= most_s;
        batch = p.batch * p.n_replicas;
        stk_memory_plan_free(&p);
        if (!fits && largest) break;
        largest = batch;
        if (!fits) break;
        batch *= 2;
    }
    if (code == CLI_OK) cli_printf("%" PRId64 "\n", largest);
    stk_run_close(run);
    return code;
}

static int run_verb(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static char sets[64][512];
    static const char *set[64];
    int n = 0;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words != 1) return cli_usage(verb, "plan needs one recipe: stoker plan RECIPE.yaml");
    for (int i = 0; i < args.n_found; i++) {
        const char *name = args.found[i].option->name, *value = args.found[i].value;
        if (!value || !strcmp(name, "--dump-graph") || !strcmp(name, "--largest-batch")) continue;
        if (n == 64 || strlen(value) > 400) return cli_usage(verb, "too many or too long options");
        if (!strcmp(name, "--set") && !strchr(value, '='))
            return cli_usage(verb, "option '--set' needs KEY=VALUE, not '%s'", value);
        if (!strcmp(name, "--set"))
            snprintf(sets[n], sizeof(sets[n]), "%s", value);
        else
            snprintf(sets[n], sizeof(sets[n]), "%s=%s", name + 2, value);
        set[n] = sets[n];
        n++;
    }
    int64_t most_s;
    if (!cli_number(&args, "--largest-batch", 1, 1000000, 1, &most_s)) return CLI_USAGE;
    stk_keep_data(false);
    bool json = cli_has(&args, "--json");
    if (json && cli_has(&args, "--dump-graph"))
        return cli_usage(verb, "graphs are no JSON: '--dump-graph' does not go with '--json'");
    progress p = progress_make(false, json);
    stk_run_options run_options = {
        .set = set, .n_set = n, .dump_graph = cli_value(&args, "--dump-graph"), .dump = progress_graph, .user = &p};
    if (cli_has(&args, "--largest-batch")) return print_largest(args.word[0], &run_options, (double)most_s);
    return plan(args.word[0], &run_options, json);
}

const cli_verb cli_plan = {
    "plan", "RECIPE [OPTION...]",
    "Says what training a recipe needs: memory by purpose and layer, arithmetic, expected time. Nothing is "
    "trained, and no memory of that size is taken.",
    options, .run = run_verb};
