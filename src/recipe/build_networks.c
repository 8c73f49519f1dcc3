/* Networks by name from a recipe. See recipe/build.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "recipe/build.h"
#include "stoker/nn/networks.h"
#include "stoker/nn/vit.h"
#include "tensor/shape.h"

enum { MOST_WIDTHS = 64 };

static stk_status read_widths(const stk_yaml_node *list, int64_t widths[MOST_WIDTHS], int *n)
{
    *n = 0;
    for (const stk_yaml_node *width = list->child; width; width = width->next) {
        if (*n == MOST_WIDTHS) return stk_yaml_fail(list, "more than %d widths", MOST_WIDTHS);
        widths[(*n)++] = width->integer;
    }
    return STK_OK;
}

static stk_resnet_stem get_stem(const stk_yaml_node *settings)
{
    return !strcmp(stk_yaml_get(settings, "stem")->text, "cifar") ? STK_STEM_CIFAR : STK_STEM_IMAGENET;
}

/* --- one for each --- */

static stk_status build_vgg16(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value *x)
{
    int64_t classes;
    (void)model;
    STK_RETURN_IF_ERROR(stk_build_n_classes(recipe, train, &classes));
    *x = stk_vgg16(*x, stk_yaml_int(recipe->model, "hidden", 4096), classes);
    return STK_OK;
}

static stk_status build_mobilenet(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value *x)
{
    int64_t classes;
    (void)model;
    STK_RETURN_IF_ERROR(stk_build_n_classes(recipe, train, &classes));
    *x = stk_mobilenet_v2(*x, classes, get_stem(recipe->model));
    return STK_OK;
}

static stk_status build_vit(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value *x)
{
    int64_t classes;
    const stk_yaml_node *s = recipe->model;
    stk_vit_config c = {0};
    (void)model;
    STK_RETURN_IF_ERROR(stk_build_n_classes(recipe, train, &classes));
    (void)stk_vit_size(stk_yaml_get(s, "size")->text, &c);
    c.layers = (int)stk_yaml_int(s, "layers", c.layers);
    c.heads = (int)stk_yaml_int(s, "heads", c.heads);
    c.patch = (int)stk_yaml_int(s, "patch", c.patch);
    c.width = stk_yaml_int(s, "width", c.width);
    c.hidden = stk_yaml_int(s, "hidden", c.hidden);
    c.dropout = stk_yaml_get(s, "dropout")->real;
    c.eps = stk_yaml_get(s, "eps")->real;
    *x = stk_vit(*x, &c, classes);
    return STK_OK;
}

/* Networks of a list of widths. */
static stk_status build_widths(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value *x)
{
    int64_t widths[MOST_WIDTHS], classes;
    int n;
    const stk_yaml_node *list = stk_yaml_get(recipe->model, "widths");
    (void)model;
    STK_RETURN_IF_ERROR(read_widths(list, widths, &n));
    if (n == 0) return stk_yaml_fail(list, "'widths' is empty");
    if (!strcmp(recipe->model_kind, "autoencoder")) {
        *x = stk_autoencoder(*x, widths, n, stk_yaml_int(recipe->model, "code", 32));
        return STK_OK;
    }
    STK_RETURN_IF_ERROR(stk_build_n_classes(recipe, train, &classes));
    *x = !strcmp(recipe->model_kind, "unet") ? stk_unet(*x, widths, n, classes) : stk_cnn3d(*x, widths, n, classes);
    return STK_OK;
}

/* A field of whole numbers as i32 [N]. */
static stk_status add_category(const stk_yaml_node *node, const stk_dataset *train, stk_model *model, stk_value *out)
{
    STK_RETURN_IF_ERROR(stk_build_field(node, train, model, node->key, out));
    stk_dtype dtype = stk_value_dtype(*out);
    if (stk_dtype_is_float(dtype) || stk_value_shape(*out).rank != 1)
        return stk_yaml_fail_key(node, "field '%s' is no whole number", node->key);
    if (dtype != STK_I32) *out = stk_cast_to(*out, STK_I32);
    return STK_OK;
}

static stk_status build_wide_and_deep(const stk_recipe *recipe, const stk_dataset *train, stk_model *model,
                                      stk_value *x)
{
    stk_value ids[MOST_WIDTHS], numbers = {stk_model_graph(model), -1};
    int64_t rows[MOST_WIDTHS], hidden[MOST_WIDTHS];
    int n = 0, n_hidden;
    const stk_yaml_node *s = recipe->model, *categories = stk_yaml_get(s, "categories");
    const stk_yaml_node *field = stk_yaml_get(s, "numbers");
    for (const stk_yaml_node *node = categories ? categories->child : NULL; node; node = node->next, n++) {
        if (n == MOST_WIDTHS) return stk_yaml_fail(categories, "more than %d categories", MOST_WIDTHS);
        STK_RETURN_IF_ERROR(add_category(node, train, model, &ids[n]));
        rows[n] = node->integer;
    }
    if (field) STK_RETURN_IF_ERROR(stk_build_field(field, train, model, field->text, &numbers));
    if (field && stk_value_shape(numbers).rank == 1) numbers = stk_reshape(numbers, STK_SHAPE(STK_ANY, 1));
    if (n == 0 && !field)
        return stk_yaml_fail(s, "'wide_and_deep' needs 'categories' or 'numbers': fields of the data");
    STK_RETURN_IF_ERROR(read_widths(stk_yaml_get(s, "hidden"), hidden, &n_hidden));
    *x = stk_wide_and_deep(ids, rows, n, numbers, stk_yaml_int(s, "width", 8), hidden, n_hidden,
                           stk_yaml_int(s, "outputs", 1));
    return STK_OK;
}

/* --- all --- */

typedef stk_status build_fn(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value *x);
static const struct {
    const char *kind;
    build_fn *build;
} networks[] = {{"vgg16", build_vgg16},
                {"mobilenet_v2", build_mobilenet},
                {"vit", build_vit},
                {"unet", build_widths},
                {"cnn3d", build_widths},
                {"autoencoder", build_widths},
                {"wide_and_deep", build_wide_and_deep}};

static build_fn *find_network(const char *kind)
{
    for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++)
        if (!strcmp(networks[i].kind, kind)) return networks[i].build;
    return NULL;
}

bool stk_build_is_network(const char *kind)
{
    return find_network(kind) != NULL;
}

stk_status stk_build_named(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value *out)
{
    return find_network(recipe->model_kind)(recipe, train, model, out);
}
