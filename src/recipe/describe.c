/* See recipe/describe.h. */
#include "recipe/describe.h"

#include <string.h>

#include "base/error.h"
#include "nn/model_list.h"
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

/* "resnet18", or "vit-base" of a network that comes in sizes. */
static void add_known(const stk_model_class *class, const char *size, stk_text *out)
{
    stk_text_add(out, "%s%s%s", class->key.name, size ? "-" : "", size ? size : "");
}

/* The network of that name, and its size where it comes in such; NULL: there is none, and *names are those there are.
 */
static const stk_model_class *find_known(const char *name, const char **size, stk_text *names)
{
    const stk_model_class *class;
    static const char *const no_sizes[] = {NULL, NULL};
    for (int i = 0; (class = stk_model_class_at(i)); i++) {
        const stk_key *sizes = stk_key_find(&class->key, "size");
        const char *const *word = sizes ? sizes->words : no_sizes;
        for (int j = 0; class->is_published && (j == 0 || word[j]); j++) {
            stk_text known = {0};
            add_known(class, word[j], &known);
            bool is_it = !strcmp(stk_text_get(&known), name);
            if (names->n) stk_text_add(names, ", ");
            stk_text_add(names, "%s", stk_text_get(&known));
            stk_text_free(&known);
            *size = word[j];
            if (is_it) return class;
        }
    }
    return NULL;
}

stk_status stk_describe_known(const char *name, const stk_safetensors_file *weights, stk_description *out)
{
    stk_text names = {0};
    const char *size = NULL;
    int64_t n_classes = count_classes(weights);
    const stk_model_class *class = find_known(name, &size, &names);
    *out = (stk_description){0};
    stk_status status = STK_OK;
    if (!class)
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
                 "model: {%s: {%s%s%sclasses: %lld}}\nbatch: 1\n",
                 name, class->key.name, size ? "size: " : "", size ? size : "", size ? ", " : "", (long long)n_classes);
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
