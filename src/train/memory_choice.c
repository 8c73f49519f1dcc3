/* How a step is made to fit into its memory: parts of the batch, and what is recomputed in the backward pass.
 *
 * For each number of parts, the engine plans a clone of the step with as little recomputed as fits. What takes least
 * time is taken, by a model that counts operations, 6 for each byte moved and 200,000 for each kernel's start; more
 * parts are taken only where less is recomputed or fewer rows are computed twice for it, and where that gains 5 % or
 * more: what small kernels lose is not in the model. Parts that do not divide the batch do some rows twice. More parts
 * than are needed with no more recomputed than without a limit are not looked at. The effective batch, and so training,
 * stays the same; but batch norms take their statistics from each part: networks that have them are divided only when
 * the user says so. So are those whose loss compares the rows of a batch with each other. Before any of this, ranks
 * share the optimiser's state out, where they may.
 *
 * The input pipeline comes before recomputing, but not before fewer parts: where it needs no more than its least for
 * them, it has that, and half of what the plan leaves.
 */
#include "base/error.h"
#include "graph/graph.h"
#include "train/trainer_state.h"

bool stk_memory_has_batch_norm(const stk_trainer *trainer)
{
    const stk_graph *graph = stk_model_graph(trainer->model);
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].op == STK_OP_batch_norm) return true;
    return false;
}

/* More than two batches and a worker of any pipeline that is not strange. */
#define AMPLE_BYTES ((size_t)256 << 20)

/* Which more parts must bring. */
#define LEAST_GAIN 0.05

/* Of sums of operations. */
#define ROUNDING 1e-6

static double step_cost(const stk_program_info *info)
{
    enum { FLOPS_A_BYTE = 6, FLOPS_AN_ENTRY = 200000 };
    return info->flops + FLOPS_A_BYTE * info->bytes + FLOPS_AN_ENTRY * (double)info->n_entries;
}

/* Plans the step in parts of N samples. STK_NO_MEMORY: it does not fit. */
static stk_status plan_parts(stk_trainer *trainer, int64_t batch, int64_t micro, stk_program_info *out)
{
    stk_program *program;
    STK_RETURN_IF_ERROR(stk_step_compile_with(trainer, batch, micro, STK_STEP_TRY, &program));
    *out = stk_program_get_info(program);
    stk_engine_discard(trainer->engine, program);
    return STK_OK;
}

/* As it is without a limit: to compare with, and to see whether the limit matters. */
static stk_status plan_unlimited(stk_trainer *trainer, int64_t batch, int64_t micro, stk_program_info *out)
{
    size_t limit = trainer->config.memory_limit_bytes;
    trainer->config.memory_limit_bytes = 0;
    stk_status status = plan_parts(trainer, batch, micro, out);
    trainer->config.memory_limit_bytes = limit;
    return status;
}

static stk_status refuse(const stk_trainer *trainer, int64_t micro)
{
    if (stk_memory_has_batch_norm(trainer))
        return stk_fail(STK_NO_MEMORY,
                        "%s\nEverything that helps is recomputed already. Micro-batches would need less, but change "
                        "batch norm's statistics: 'micro_batch: N' takes them all the same",
                        stk_error_text());
    return stk_fail(STK_NO_MEMORY, "%s\nThis is with micro-batches of %lld and all recomputed that helps",
                    stk_error_text(), (long long)micro);
}

/* A way to fit. */
typedef struct way {
    stk_memory_choice choice;
    stk_program_info info;
    double cost; /* 0: none */
} way;

/* What is computed, as a multiple of the batch: more than 1 where parts do not divide it. */
static double rows_done(const stk_memory_choice *choice, int64_t batch)
{
    return (double)(choice->micro * choice->n_micro) / (double)batch;
}

/* Recomputed for each row, so that rows computed twice do not count. */
static double recomputed(const way *w, int64_t batch)
{
    return w->info.recompute_flops / rows_done(&w->choice, batch);
}

/* Whether a way of more parts is worth it. */
static bool is_better(const way *w, const way *best, int64_t batch)
{
    if (best->cost == 0) return true;
    bool saves = recomputed(w, batch) < (1 - ROUNDING) * recomputed(best, batch) ||
                 rows_done(&w->choice, batch) < rows_done(&best->choice, batch);
    return saves && w->cost < (1 - LEAST_GAIN) * best->cost;
}

/* The best of at most that many parts. STK_NO_MEMORY: nothing fits next to what is reserved; *last: the least part that
 * was tried. */
static stk_status search(stk_trainer *trainer, int64_t batch, int64_t most_parts, const stk_program_info *unlimited,
                         way *best, int64_t *last)
{
    *best = (way){0};
    stk_memory_choice fewest = {0};
    for (int64_t n = 1; n <= most_parts; n++) {
        way w = {.choice = {.micro = (batch + n - 1) / n, .n_micro = n}};
        if ((batch + w.choice.micro - 1) / w.choice.micro != n) continue; /* fewer parts have that size */
        stk_status status = plan_parts(trainer, batch, w.choice.micro, &w.info);
        *last = w.choice.micro;
        if (status == STK_NO_MEMORY) continue;
        STK_RETURN_IF_ERROR(status);
        w.cost = step_cost(&w.info);
        w.choice.slowdown = w.cost / step_cost(unlimited);
        if (!fewest.n_micro) fewest = w.choice;
        if (is_better(&w, best, batch)) *best = w;
        bool may_gain = rows_done(&w.choice, batch) * (1 - LEAST_GAIN) > 1;
        if (recomputed(&w, batch) <= (1 + ROUNDING) * unlimited->recompute_flops && !may_gain) break;
    }
    best->choice.n_fewest = fewest.n_micro;
    best->choice.fewest_slowdown = fewest.slowdown;
    return best->cost > 0 ? STK_OK : STK_NO_MEMORY;
}

static size_t planned_bytes(const stk_program_info *info)
{
    return info->arena_bytes + info->variable_bytes + info->program_bytes;
}

/* Half of what a plan next to the pipeline's least leaves is the pipeline's, as much as it wants; the plan stays. */
static stk_status give_rest(stk_trainer *trainer, int64_t batch, int64_t micro, const stk_program_info *info,
                            size_t wanted)
{
    stk_program_info again;
    size_t least = trainer->reserved_bytes, used = least + planned_bytes(info);
    size_t limit = trainer->config.memory_limit_bytes, rest = limit > used ? (limit - used) / 2 : 0;
    trainer->reserved_bytes += rest < wanted - least ? rest : wanted - least;
    stk_status status = plan_parts(trainer, batch, micro, &again);
    if (status == STK_NO_MEMORY || (status == STK_OK && again.recompute_flops > info->recompute_flops))
        trainer->reserved_bytes = least;
    return status == STK_NO_MEMORY ? STK_OK : status;
}

/* Whether the plan leaves so much of the limit that no input pipeline has to be asked for what it needs. */
static bool is_ample(const stk_trainer *trainer, const stk_program_info *info)
{
    size_t limit = trainer->config.memory_limit_bytes, left = limit / 4 > AMPLE_BYTES ? limit / 4 : AMPLE_BYTES;
    size_t piece = stk_engine_device(trainer->engine)->most_piece_bytes;
    return left < limit && planned_bytes(info) <= limit - left && (!piece || info->arena_bytes <= piece);
}

static stk_status search_limit(stk_trainer *trainer, int64_t batch, stk_memory_choice *out)
{
    stk_program_info unlimited;
    way best, slim; /* next to what the pipeline wants, and next to its least */
    int64_t last = batch;
    size_t least, wanted;
    STK_RETURN_IF_ERROR(plan_unlimited(trainer, batch, batch, &unlimited));
    if (is_ample(trainer, &unlimited)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_memory_ask_pipeline(trainer, &least, &wanted));
    bool undivided = stk_memory_has_batch_norm(trainer) || stk_model_is_embedding(trainer->model);
    int64_t most_parts = undivided ? 1 : batch;
    trainer->reserved_bytes = wanted;
    stk_status status = search(trainer, batch, most_parts, &unlimited, &best, &last);
    if (status != STK_OK && status != STK_NO_MEMORY) return status;
    if (status == STK_OK) most_parts = best.choice.n_micro - 1;
    if (least < wanted && most_parts > 0) {
        trainer->reserved_bytes = least;
        stk_status other = search(trainer, batch, most_parts, &unlimited, &slim, &last);
        if (other != STK_OK && other != STK_NO_MEMORY) return other;
        if (other == STK_OK && (status == STK_NO_MEMORY || !is_better(&best, &slim, batch))) {
            *out = slim.choice;
            return give_rest(trainer, batch, slim.choice.micro, &slim.info, wanted);
        }
        if (other == STK_OK) best.choice.n_fewest = slim.choice.n_fewest;
        if (other == STK_OK) best.choice.fewest_slowdown = slim.choice.fewest_slowdown;
        trainer->reserved_bytes = status == STK_OK ? wanted : least;
    }
    if (status == STK_NO_MEMORY) return refuse(trainer, last);
    *out = best.choice;
    return STK_OK;
}

/* Where the user has chosen the parts, too, the pipeline does with the least if it must. */
static stk_status fit_parts(stk_trainer *trainer, int64_t batch, int64_t micro)
{
    stk_program_info info;
    size_t least, wanted;
    STK_RETURN_IF_ERROR(plan_unlimited(trainer, batch, micro, &info));
    if (is_ample(trainer, &info)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_memory_ask_pipeline(trainer, &least, &wanted));
    trainer->reserved_bytes = wanted;
    if (least == wanted) return STK_OK;
    stk_status status = plan_parts(trainer, batch, micro, &info);
    if (status != STK_NO_MEMORY) return status;
    trainer->reserved_bytes = least;
    status = plan_parts(trainer, batch, micro, &info);
    if (status == STK_NO_MEMORY) return STK_OK; /* whoever compiles it says so */
    STK_RETURN_IF_ERROR(status);
    return give_rest(trainer, batch, micro, &info, wanted);
}

static stk_status choose(stk_trainer *trainer, int64_t batch, stk_memory_choice *out)
{
    const stk_trainer_config *config = &trainer->config;
    int64_t micro = config->micro_batch;
    *out = (stk_memory_choice){.micro = batch, .n_micro = 1, .slowdown = 1};
    if (config->accumulate > 0) {
        if (micro > 0) return stk_fail(STK_INVALID, "micro_batch and accumulate say the same twice: give one of them");
        if (config->accumulate > batch)
            return stk_fail(STK_INVALID, "accumulate %lld: a batch of %lld cannot be divided into that many",
                            (long long)config->accumulate, (long long)batch);
        micro = (batch + config->accumulate - 1) / config->accumulate;
    }
    if (micro > batch)
        return stk_fail(STK_INVALID, "micro_batch %lld is larger than the batch of %lld", (long long)micro,
                        (long long)batch);
    if (config->strict) micro = batch * stk_comm_n_ranks(trainer->comm) / config->strict;
    trainer->reserved_bytes = 0;
    if (micro > 0) {
        *out = (stk_memory_choice){.micro = micro, .n_micro = (batch + micro - 1) / micro, .slowdown = 1};
        return config->memory_limit_bytes ? fit_parts(trainer, batch, micro) : STK_OK;
    }
    return config->memory_limit_bytes ? search_limit(trainer, batch, out) : STK_OK;
}

/* Whether a step as chosen fits; where the user has chosen the parts, nobody has looked yet. */
static stk_status try_choice(stk_trainer *trainer, int64_t batch, stk_memory_choice *out)
{
    stk_program_info info;
    STK_RETURN_IF_ERROR(choose(trainer, batch, out));
    return out->n_micro > 1 ? plan_parts(trainer, batch, out->micro, &info) : STK_OK;
}

/* To share the state out costs about nothing: as many bytes go to other ranks. So it comes before all that takes time.
 */
static stk_status choose_shards(stk_trainer *trainer, int64_t batch, bool may_differ, stk_memory_choice *out)
{
    const stk_trainer_config *config = &trainer->config;
    bool has_ranks = stk_comm_n_ranks(trainer->comm) > 1;
    trainer->shards = has_ranks && config->shared == STK_SHARED_OPTIMIZER;
    bool may_share = has_ranks && !may_differ && config->outer.every == 0;
    if (!may_share || config->shared != STK_SHARED_AUTO || !config->memory_limit_bytes)
        return choose(trainer, batch, out);
    stk_status status = try_choice(trainer, batch, out);
    if (status != STK_NO_MEMORY && (status != STK_OK || out->slowdown <= 1)) return status;
    stk_memory_choice whole = *out;
    size_t reserved = trainer->reserved_bytes;
    trainer->shards = true;
    stk_status shared = try_choice(trainer, batch, out);
    if (status != STK_OK || shared != STK_NO_MEMORY) return shared;
    *out = whole;
    trainer->reserved_bytes = reserved;
    trainer->shards = false;
    return STK_OK;
}

/* Gradients that are added up meanwhile live a little longer: first of all that is given up. */
stk_status stk_memory_choose(stk_trainer *trainer, int64_t batch, stk_memory_choice *out)
{
    /* Ranks of other hosts may have other limits, and all must decide alike. */
    bool may_differ = trainer->comm && trainer->comm->n_here != trainer->comm->n_ranks;
    /* Where a step is compiled as a whole, its compiler sees to that. */
    bool is_whole = stk_engine_device(trainer->engine)->class->compiles_steps;
    trainer->overlaps = stk_comm_n_ranks(trainer->comm) > 1 && !trainer->config.no_overlap && !is_whole;
    stk_status status = choose_shards(trainer, batch, may_differ, out);
    bool shares_out = trainer->shards && trainer->config.shared == STK_SHARED_AUTO;
    bool is_tight = status == STK_NO_MEMORY || (status == STK_OK && (out->slowdown > 1 || shares_out));
    if (!is_tight || may_differ || !trainer->overlaps || !trainer->config.memory_limit_bytes) return status;
    trainer->overlaps = false;
    return choose_shards(trainer, batch, may_differ, out);
}
