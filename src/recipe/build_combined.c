/* Sources of several data sets: their keys, and what is built of them. See recipe/build.h. */
#include <stdlib.h>

#include "base/error.h"
#include "recipe/build.h"
#include "recipe/keys.h"

static void rename_fields(const stk_yaml_node *names, stk_dataset *dataset)
{
    for (const stk_yaml_node *name = names ? names->child : NULL; name; name = name->next)
        stk_dataset_rename(dataset, name->key, name->text);
}

/* One of the data sets; *out is NULL after an error. */
static stk_status build_set(const stk_yaml_node *set, uint64_t seed, stk_dataset **out)
{
    const stk_yaml_node *source = stk_yaml_get(set, "source")->child;
    stk_recipe_part part = {.node = set};
    stk_dataset *dataset = NULL;
    stk_status status;
    *out = NULL;
    STK_TRY(stk_recipe_take_order(set, &part));
    STK_TRY(stk_build_source(source, seed, &dataset));
    STK_TRY(stk_build_check(source, dataset));
    rename_fields(stk_yaml_get(set, "rename"), dataset);
    stk_build_class_labels(dataset);
    STK_TRY(stk_build_check(set, dataset));
    STK_TRY(stk_build_stages(stk_yaml_get(set, "stages"), dataset));
    STK_TRY(stk_build_filter(part.filter, dataset));
    /* Not the part's own seed: shuffling twice by one key is no better than once. */
    stk_build_order(&part, seed + 1, dataset);
    STK_TRY(stk_build_check(set, dataset));
    *out = dataset;
    dataset = NULL;
done:
    stk_dataset_free(dataset);
    return status;
}

/* --- kinds --- */

#define OF                                                                                                             \
    {                                                                                                                  \
        .name = "of", .type = STK_KEY_LIST, .element = &stk_set_key, .required = true,                                 \
        .doc = "The data sets: [{source: ...}, {source: ..., take: 100}]."                                             \
    }
static const stk_key concatenate_keys[] = {OF, END};
static const stk_key zip_keys[] = {OF, END};
static const stk_key interleave_keys[] = {
    OF,
    {.name = "cycle",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .doc = "How many take turns; one that has ended is replaced by the next. Default: all."},
    {.name = "block",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e15,
     .default_value = "1",
     .doc = "Samples of each in a turn."},
    END};
static const char *const until_words[] = {"all", "first", NULL};
static const stk_key mix_keys[] = {
    OF,
    {.name = "until",
     .type = STK_KEY_WORD,
     .words = until_words,
     .default_value = "all",
     .doc = "first: the epoch ends where one is drawn that has ended; all: the others go on."},
    END};

static stk_dataset *concatenate(const stk_combined *c)
{
    return stk_dataset_concatenate(c->sets, c->n);
}

static stk_dataset *zip(const stk_combined *c)
{
    return stk_dataset_zip(c->sets, c->n);
}

static stk_dataset *interleave(const stk_combined *c)
{
    return stk_dataset_interleave(c->sets, c->n, stk_yaml_int(c->settings, "cycle", c->n),
                                  stk_yaml_int(c->settings, "block", 1));
}

static stk_dataset *mix(const stk_combined *c)
{
    return stk_dataset_mix(c->sets, c->weights, c->n, stk_yaml_is(c->settings, "until", "first"), c->seed);
}

const stk_combined_kind stk_combined_concatenate = {
    .key = {.name = "concatenate",
            .type = STK_KEY_MAP,
            .keys = concatenate_keys,
            .doc = "Several data sets, one after the other: {concatenate: [{source: ...}, {source: ...}]}."},
    .combine = concatenate};
const stk_combined_kind stk_combined_zip = {
    .key = {.name = "zip",
            .type = STK_KEY_MAP,
            .keys = zip_keys,
            .doc = "The fields of several data sets side by side, sample by sample; as long as the shortest."},
    .combine = zip};
const stk_combined_kind stk_combined_interleave = {
    .key = {.name = "interleave",
            .type = STK_KEY_MAP,
            .keys = interleave_keys,
            .doc = "A block of samples of each of several data sets in turn."},
    .combine = interleave};
const stk_combined_kind stk_combined_mix = {
    .key = {.name = "mix",
            .type = STK_KEY_MAP,
            .keys = mix_keys,
            .doc = "Samples of several data sets, drawn at random by their weights."},
    .combine = mix};

stk_status stk_build_combined(const stk_combined_kind *kind, const stk_yaml_node *source, uint64_t seed,
                              stk_dataset **out)
{
    const stk_yaml_node *of = stk_yaml_get(source, "of");
    stk_status status = STK_OK;
    int n = 0;
    size_t most = (size_t)of->n_children;
    stk_dataset **sets = calloc(most + 1, sizeof(*sets));
    double *weights = calloc(most + 1, sizeof(*weights));
    if (!sets || !weights) STK_TRY(stk_fail_memory(most * sizeof(*sets)));
    for (const stk_yaml_node *set = of->child; set; set = set->next) {
        weights[n] = stk_yaml_get(set, "weight")->real;
        STK_TRY(build_set(set, seed, &sets[n]));
        n++;
    }
    *out = kind->combine(&(stk_combined){source, seed, sets, weights, n});
    n = 0;
done:
    while (n > 0)
        stk_dataset_free(sets[--n]);
    free(sets);
    free(weights);
    return status;
}
