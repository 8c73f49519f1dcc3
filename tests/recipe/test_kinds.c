/* The lists of models and layers: descriptors are whole, names come once, and every size that a key names can be built.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "nn/layer_list.h"
#include "nn/model_list.h"
#include "recipe/build.h"
#include "stoker/nn/models.h"

static void check_key(const stk_key *key)
{
    assert_true(key->name && key->name[0] && key->doc && key->doc[0]);
    if (key->type == STK_KEY_MAP) assert_non_null(key->keys);
}

static void models_are_whole(void **state)
{
    (void)state;
    const stk_model_class *class;
    int n = 0;
    for (; (class = stk_model_class_at(n)); n++) {
        check_key(&class->key);
        assert_ptr_equal(stk_model_class_find(class->key.name), class);
        assert_true(class->build || class->build_loss);
        assert_int_equal(class->has_classes, stk_key_find(&class->key, "classes") != NULL);
        if (class->generates) assert_non_null(class->configure);
        if (class->configure) assert_non_null(stk_key_find(&class->key, "vocabulary"));
        for (int i = 0; i < STK_MODEL_MOST_SAMPLES; i++) {
            const char *name = class->sample[i].name;
            if (name) assert_int_equal(strncmp(name, class->key.name, strlen(class->key.name)), 0);
        }
    }
    assert_true(n >= 18);
    assert_null(stk_model_class_find("resnet"));
    assert_null(stk_model_class_find("vit: {size: base}"));
}

static void layers_are_whole(void **state)
{
    (void)state;
#define X(layer) &stk_layer_class_##layer,
    static const stk_layer_class *const classes[] = {STK_LAYER_LIST(X)};
#undef X
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        const stk_layer_class *class = classes[i];
        check_key(&class->key);
        assert_ptr_equal(stk_layer_class_find(class->key.name), class);
        assert_int_equal((class->apply != NULL) + (class->build != NULL) + (class->build_in != NULL), 1);
        assert_int_equal(class->apply != NULL, class->key.type == STK_KEY_NONE);
        if (class->reads_file) assert_non_null(stk_key_find(&class->key, "file"));
    }
    assert_null(stk_layer_class_find("conv"));
}

static void keep_count(void *user, const stk_model_line *line)
{
    *(int64_t *)user = line->n_parameters;
}

/* Each of another number of parameters, so that no two names are one size. */
static void every_size_builds(void **state)
{
    (void)state;
    const stk_model_class *class;
    int n_sizes = 0;
    for (int i = 0; (class = stk_model_class_at(i)); i++) {
        const stk_key *size = stk_key_find(&class->key, "size");
        int64_t n[8] = {0};
        for (int j = 0; size && size->words[j]; j++, n_sizes++) {
            char text[64];
            snprintf(text, sizeof(text), "%s: {size: %s}", class->key.name, size->words[j]);
            if (stk_known_model_show(text, false, keep_count, &n[j]) != STK_OK)
                fail_msg("%s: %s", text, stk_error_text());
            for (int k = 0; k < j; k++)
                assert_int_not_equal(n[k], n[j]);
        }
    }
    assert_true(n_sizes >= 8);
    int64_t none;
    assert_int_not_equal(stk_known_model_show("vit: {size: smal}", false, keep_count, &none), STK_OK);
    assert_non_null(strstr(stk_error_text(), "did you mean 'small'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_are_whole), cmocka_unit_test(layers_are_whole),
                                       cmocka_unit_test(every_size_builds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
