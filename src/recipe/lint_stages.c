/* Rules about stages: their order, and what they do to images as large as these. See stoker/data/lint.h. */
#include <inttypes.h>
#include <string.h>

#include "data/stage/stage_list.h"
#include "recipe/lint.h"

/* Shrinking by more than this without antialiasing drops most pixels unseen. */
enum { MUCH = 2 };

/* The settings of a stage in the list; NULL past the end. */
static const stk_yaml_node *next_stage(const stk_yaml_node **entry)
{
    const stk_yaml_node *settings = *entry ? (*entry)->child : NULL;
    if (*entry) *entry = (*entry)->next;
    return settings;
}

/* Of `with`, which is none itself, nothing holds. */
static const stk_stage_class *class_of(const stk_yaml_node *stage)
{
    static const stk_stage_class none;
    const stk_stage_class *class = stk_stage_find(stage->key);
    return class ? class : &none;
}

static bool makes_floats(const stk_yaml_node *stage)
{
    return class_of(stage)->rescales && !stk_yaml_is(stage, "dtype", "u8");
}

static void check_order(stk_lint_part *p)
{
    const stk_yaml_node *entry = p->stages ? p->stages->child : NULL, *floats = NULL;
    for (const stk_yaml_node *stage; (stage = next_stage(&entry));) {
        if (floats && (class_of(stage)->resizes || class_of(stage)->crops))
            stk_lint_report(p, "resize-floats", stage, "put it before the stages that make f32 of the pixels",
                            "'%s' comes after '%s': it works on f32, four times the bytes, and cannot be one pass with "
                            "'decode'",
                            stage->key, floats->key);
        if (!floats && makes_floats(stage)) floats = stage;
    }
}

/* A crop reads only its part of a file where it is one pass with decode. */
static void check_crop(stk_lint_part *p)
{
    const stk_yaml_node *entry = p->stages ? p->stages->child : NULL, *before = NULL;
    int64_t pixels = p->sample.height * p->sample.width;
    int i = 0;
    if (pixels < 128 * 128) return; /* small images are read whole in any case */
    for (const stk_yaml_node *stage; (stage = next_stage(&entry)); before = stage) {
        if (class_of(stage)->field) continue;
        if (i++ < p->sample.n_pass || !class_of(stage)->crops || !before || !strcmp(before->key, "decode")) continue;
        stk_lint_report(p, "late-crop", stage, "put the crop right after 'decode'",
                        "whole images of about %" PRId64 " x %" PRId64
                        " pixels are decoded, as '%s' stands before the crop: a crop right after 'decode' reads only "
                        "its part of a file",
                        p->sample.height, p->sample.width, before->key);
        return;
    }
}

static void check_antialias(stk_lint_part *p)
{
    const stk_yaml_node *entry = p->stages ? p->stages->child : NULL;
    int64_t side = p->sample.height < p->sample.width ? p->sample.height : p->sample.width;
    for (const stk_yaml_node *stage; (stage = next_stage(&entry));) {
        const stk_yaml_node *antialias = stk_yaml_get(stage, "antialias"), *size = stk_yaml_get(stage, "size"),
                            *shorter = stk_yaml_get(stage, "shorter");
        if (!size) size = shorter ? shorter : stk_yaml_get(stage, "height");
        if (!class_of(stage)->resizes || !size || !antialias || antialias->truth) continue;
        if (side > MUCH * size->integer)
            stk_lint_report(p, "no-antialias", antialias, "'antialias: true', or train and serve with the same setting",
                            "images of about %" PRId64 " x %" PRId64 " pixels shrink to %" PRId64
                            " without antialiasing: most pixels are left out, and fine texture becomes noise",
                            p->sample.height, p->sample.width, size->integer);
    }
}

static void check_random(stk_lint_part *p)
{
    const stk_yaml_node *entry = p->stages ? p->stages->child : NULL;
    if (p->i_part == STK_PART_TRAIN) return;
    for (const stk_yaml_node *stage; (stage = next_stage(&entry));) {
        if (!class_of(stage)->random) continue;
        stk_lint_report(p, "random-eval", stage, "give the part stages of its own, without random ones",
                        "'%s' makes evaluation random: figures of two runs do not compare", stage->key);
        return;
    }
}

/* The stages of the field "image" alone: others cost nothing. */
static void check_cache(stk_lint_part *p)
{
    const stk_chain *chain = NULL;
    const stk_yaml_node *in = stk_yaml_get(p->part->cache, "in");
    if (!in || !strcmp(in->text, "none")) return;
    for (int f = 0; f < p->dataset->source->n_fields; f++)
        if (!strcmp(p->dataset->chain[f].field, "image")) chain = &p->dataset->chain[f];
    int i_random = 0;
    while (chain && i_random < chain->n_stages && !chain->stage[i_random]->class->random)
        i_random++;
    if (!chain || i_random == chain->n_stages) return;
    const char *random = chain->stage[i_random]->class->key.name;
    if (i_random == 0)
        stk_lint_report(
            p, "random-cache", p->part->cache, "put stages that are not random first, or leave out the cache",
            "'%s' is random and comes first, so that the cache keeps nothing but what the source gives", random);
    for (int i = i_random + 1; i < chain->n_stages && i_random > 0; i++)
        if (!strcmp(chain->stage[i]->class->key.name, "resize"))
            stk_lint_report(p, "random-cache", p->part->cache, "put 'resize' before it, if that is meant",
                            "'resize' comes after the random '%s', so that it is done again for each sample, and the "
                            "cache keeps images of full size",
                            random);
}

void stk_lint_stages(stk_lint_part *p)
{
    check_cache(p);
    check_order(p);
    check_crop(p);
    check_antialias(p);
    check_random(p);
}
