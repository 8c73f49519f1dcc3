/* See recipe/describe.h. */
#include "recipe/describe.h"

#include <string.h>

#include "base/error.h"
#include "recipe/build.h"

/* "key: value" of a top-level key, where there is one. */
static void print_key(const stk_recipe *recipe, const char *key, stk_text *out)
{
    const stk_yaml_node *node = stk_yaml_get(recipe->yaml->root, key);
    if (!node) return;
    stk_text_add(out, "%s: ", key);
    stk_yaml_print_flow(node, out);
    stk_text_add(out, "\n");
}

stk_status stk_describe(const stk_recipe *recipe, int i_part, const stk_dataset *dataset, stk_description *out)
{
    const stk_dataset *const part[STK_N_PARTS] = {[STK_PART_TRAIN] = dataset};
    const stk_yaml_node *stages = stk_build_stages_of(recipe, i_part);
    *out = (stk_description){0};
    STK_RETURN_IF_ERROR(stk_data_record_print(recipe, part, &out->record));
    if (out->record.n == 0) return STK_OK;
    print_key(recipe, "name", &out->recipe);
    stk_text_add(&out->recipe, "data:\n  train:\n    source: {images: " STK_NO_DATA "}\n");
    if (stages && strstr(stk_text_get(&out->record), "\"staged\":false")) {
        stk_text_add(&out->recipe, "    stages: ");
        stk_yaml_print_flow(stages, &out->recipe);
        stk_text_add(&out->recipe, "\n");
    }
    print_key(recipe, "model", &out->recipe);
    print_key(recipe, "loss", &out->recipe);
    stk_text_add(&out->recipe, "batch: 1\n");
    return stk_text_status(&out->recipe);
}

/* --- networks by name --- */

/* How many rows the weight of the last layer has; 0: it is not there. */
static int64_t count_classes(const stk_safetensors_file *weights)
{
    static const char *const heads[] = {"fc.weight",         "classifier.1.weight", "classifier.6.weight",
                                        "heads.head.weight", "classifier.weight",   "head.weight",
                                        "heads.weight",      "head.fc.weight"};
    for (size_t h = 0; h < sizeof(heads) / sizeof(heads[0]); h++)
        for (int64_t i = 0; i < stk_safetensors_count(weights); i++) {
            stk_safetensor t = stk_safetensors_at(weights, i);
            size_t n = strlen(t.name), n_head = strlen(heads[h]);
            bool ends = n >= n_head && !strcmp(t.name + n - n_head, heads[h]);
            if (ends && (n == n_head || t.name[n - n_head - 1] == '.') && t.shape.rank >= 2) return t.shape.dim[0];
        }
    return 0;
}

stk_status stk_describe_known(const char *name, const stk_safetensors_file *weights, stk_description *out)
{
    static const struct {
        const char *name, *kind, *settings;
    } known[] = {{"vgg16", "vgg16", ""},
                 {"resnet18", "resnet18", ""},
                 {"resnet34", "resnet34", ""},
                 {"resnet50", "resnet50", ""},
                 {"resnet101", "resnet101", ""},
                 {"mobilenet_v2", "mobilenet_v2", ""},
                 {"vit-base", "vit", "size: base, "},
                 {"vit-tiny", "vit", "size: tiny, "}};
    stk_text names = {0};
    int64_t n_classes = count_classes(weights);
    size_t k = 0, n = sizeof(known) / sizeof(known[0]);
    *out = (stk_description){0};
    for (; k < n && strcmp(known[k].name, name); k++)
        stk_text_add(&names, "%s%s", k ? ", " : "", known[k].name);
    stk_status status = STK_OK;
    if (k == n)
        status =
            stk_fail(STK_INVALID, "'%s' is none of the networks that need no recipe: %s", name, stk_text_get(&names));
    stk_text_free(&names);
    STK_RETURN_IF_ERROR(status);
    if (n_classes < 1)
        return stk_fail(STK_MISMATCH, "the file has no last layer that tells how many classes '%s' has; write a recipe",
                        name);
    stk_text_add(&out->recipe,
                 "name: %s\ndata:\n  train:\n    source: {images: " STK_NO_DATA "}\n"
                 "    stages: [decode, {resize: {shorter: 256}}, {center_crop: 224}, {normalize: imagenet}]\n"
                 "model: {%s: {%sclasses: %lld}}\nbatch: 1\n",
                 name, known[k].kind, known[k].settings, (long long)n_classes);
    stk_text_add(&out->record, "{\"stoker_data\":1,\"train\":{\"records\":1,\"staged\":false,\"fields\":["
                               "{\"name\":\"image\",\"dtype\":\"encoded\",\"height\":224,\"width\":224},"
                               "{\"name\":\"label\",\"dtype\":\"i32\",\"shape\":[]}]}}");
    STK_RETURN_IF_ERROR(stk_text_status(&out->recipe));
    return stk_text_status(&out->record);
}

void stk_description_free(stk_description *description)
{
    stk_text_free(&description->recipe);
    stk_text_free(&description->record);
}
