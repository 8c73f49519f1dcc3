/* A generator for the network of a run folder, and the tokenizer of its data. See stoker/train/generate.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/neighbour.h"
#include "data/source/source_list.h"
#include "infer/generator.h"
#include "recipe/build.h"
#include "weights/checkpoint.h"

static stk_status read_recipe(const char *run, stk_recipe **out)
{
    char path[PATH_MAX], hint[STK_PATH_HINT];
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), run, "recipe.yaml"));
    if (!stk_path_is_dir(run))
        return stk_fail(STK_NOT_FOUND, "there is no run folder '%s'%s", run, stk_path_hint(run, hint));
    if (!stk_path_exists(path)) return stk_fail(STK_NOT_FOUND, "folder '%s' holds no run: no recipe.yaml", run);
    return stk_recipe_read(path, NULL, 0, out);
}

/* --- parameters --- */

static bool is_cache(const char *name)
{
    const char *ending = strrchr(name, '.');
    return ending && (!strcmp(ending, ".cached_keys") || !strcmp(ending, ".cached_values"));
}

/* The engine's parameters, in its own memory or, where the host cannot see that, in copies to be written. */
typedef struct parameters {
    stk_named_tensor *tensor; /* [n] */
    int *variable;            /* [n] */
    void **copy;              /* [n]; NULL: none */
    size_t n;
} parameters;

static void free_parameters(parameters *p)
{
    for (size_t i = 0; i < p->n && p->copy; i++)
        free(p->copy[i]);
    free(p->tensor);
    free(p->variable);
    free(p->copy);
}

static stk_status list_parameters(stk_engine *engine, parameters *p)
{
    size_t n = (size_t)stk_engine_n_variables(engine) + 1;
    p->tensor = calloc(n, sizeof(*p->tensor));
    p->variable = calloc(n, sizeof(*p->variable));
    p->copy = calloc(n, sizeof(*p->copy));
    if (!p->tensor || !p->variable || !p->copy) return stk_fail_memory(n * sizeof(*p->tensor));
    for (int i = 0; i < stk_engine_n_variables(engine); i++) {
        stk_variable_view v = stk_engine_variable(engine, i);
        if (is_cache(v.name)) continue;
        if (!v.view.data) v.view.data = p->copy[p->n] = malloc(stk_desc_bytes(v.view.desc));
        if (!v.view.data) return stk_fail_memory(stk_desc_bytes(v.view.desc));
        p->variable[p->n] = i;
        p->tensor[p->n++] = (stk_named_tensor){.name = v.name, .view = v.view};
    }
    return STK_OK;
}

static stk_status load(stk_engine *engine, const char *run)
{
    char path[PATH_MAX];
    parameters p = {0};
    stk_status status;
    STK_TRY(stk_checkpoint_find(run, true, path, sizeof(path), NULL));
    STK_TRY(list_parameters(engine, &p));
    STK_TRY(stk_checkpoint_load(path, p.tensor, p.n, false, NULL, NULL));
    for (size_t i = 0; i < p.n; i++)
        if (p.copy[i]) STK_TRY(stk_engine_write_variable(engine, p.variable[i], p.copy[i]));
done:
    free_parameters(&p);
    return status;
}

stk_status stk_generator_open(const char *run, const stk_generator_options *options, stk_generator **out)
{
    STK_NEED(run);
    STK_NEED(out);
    stk_generator_options o = options ? *options : (stk_generator_options){0};
    stk_recipe *recipe = NULL;
    stk_generator *g = NULL;
    stk_transformer_config config;
    stk_status status;
    *out = NULL;
    STK_TRY(read_recipe(run, &recipe));
    if (!stk_build_generates(recipe))
        STK_TRY(stk_fail(STK_UNSUPPORTED,
                         "the run '%s' has a model '%s', which does not go on with a text: 'gpt2' does", run,
                         recipe->model_kind ? recipe->model_kind : "?"));
    STK_TRY(stk_build_transformer_config(recipe, &config));
    if (!o.device) o.device = recipe->device;
    if (!o.n_threads) o.n_threads = (int)recipe->max_threads;
    STK_TRY(stk_generator_new(&config, recipe->seed, &o, &g));
    STK_TRY(load(stk_generator_engine(g), run));
    *out = g;
    g = NULL;
done:
    stk_generator_close(g);
    stk_recipe_free(recipe);
    return status;
}

/* --- the tokenizer --- */

static const char *find_stage(const stk_yaml_node *stages)
{
    for (const stk_yaml_node *stage = stages ? stages->child : NULL; stage; stage = stage->next) {
        const stk_yaml_node *tokenize = stk_yaml_get(stage, "tokenize");
        const stk_yaml_node *path = tokenize ? stk_yaml_get(tokenize, "tokenizer") : NULL;
        if (path) return path->text;
    }
    return NULL;
}

stk_status stk_run_tokenizer(const char *run, char **path)
{
    STK_NEED(run);
    STK_NEED(path);
    stk_recipe *recipe = NULL;
    stk_status status;
    *path = NULL;
    STK_TRY(read_recipe(run, &recipe));
    const stk_recipe_part *train = &recipe->part[STK_PART_TRAIN];
    const char *stage = find_stage(train->stages);
    if (stage && !(*path = strdup(stage))) STK_TRY(stk_fail_memory(strlen(stage)));
    const stk_source_kind *kind = stage || !train->source ? NULL : stk_source_kind_find(train->source->key);
    if (kind && kind->tokenizer) STK_TRY(kind->tokenizer(train->source, path));
    if (!*path)
        STK_TRY(stk_fail(STK_NOT_FOUND, "the run '%s' does not tell the tokenizer of its tokens: name it (--tokenizer)",
                         run));
done:
    stk_recipe_free(recipe);
    return status;
}
