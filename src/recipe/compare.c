/* What differs between two recipes in their normal form. See recipe/recipe.h. */
#include <string.h>

#include "base/secret.h"
#include "recipe/recipe.h"

/* A run keeps addresses without their secrets, and another secret makes no other data. */
static bool same_address(const char *a, const char *b)
{
    stk_text x = {0}, y = {0};
    if (!strstr(a, "://") || !strstr(b, "://")) return false;
    (void)stk_text_add_secrets(&x, a, STK_HIDDEN, false);
    (void)stk_text_add_secrets(&y, b, STK_HIDDEN, false);
    bool same = !x.failed && !y.failed && !strcmp(stk_text_get(&x), stk_text_get(&y));
    stk_text_free(&x);
    stk_text_free(&y);
    return same;
}

static bool is_equal(const stk_yaml_node *a, const stk_yaml_node *b)
{
    if (a->kind != b->kind || a->n_children != b->n_children) return false;
    if (a->kind == STK_YAML_SCALAR) return !strcmp(a->text, b->text) || same_address(a->text, b->text);
    for (a = a->child, b = b->child; a && b; a = a->next, b = b->next) {
        if (a->key && strcmp(a->key, b->key)) return false;
        if (!is_equal(a, b)) return false;
    }
    return true;
}

static void print_short(const stk_yaml_node *node, stk_text *out)
{
    stk_text text = {0};
    if (!node) {
        stk_text_add(out, "none");
        return;
    }
    stk_yaml_print_flow(node, &text);
    stk_text_add(out, "%.60s%s", stk_text_get(&text), text.n > 60 ? "..." : "");
    if (text.failed) out->failed = true;
    stk_text_free(&text);
}

static void add_difference(const char *path, const stk_yaml_node *a, const stk_yaml_node *b, stk_text *out)
{
    stk_text_add(out, "%s%s (", out->n ? ", " : "", path);
    print_short(a, out);
    stk_text_add(out, " -> ");
    print_short(b, out);
    stk_text_add(out, ")");
}

static int compare_nodes(const char *path, const stk_key *key, const stk_yaml_node *a, const stk_yaml_node *b,
                         stk_text *out);

static int compare_child(const char *path, const stk_key *parent, const char *name, const stk_yaml_node *a,
                         const stk_yaml_node *b, stk_text *out)
{
    stk_text child = {0};
    const stk_key *key = parent->type == STK_KEY_NAMED ? parent->element : stk_key_find(parent, name);
    if (key->may_change) return 0;
    stk_text_add(&child, "%s%s%s", path, path[0] ? "." : "", name);
    int n = compare_nodes(stk_text_get(&child), key, a, b, out);
    if (child.failed) out->failed = true;
    stk_text_free(&child);
    return n;
}

static int compare_nodes(const char *path, const stk_key *key, const stk_yaml_node *a, const stk_yaml_node *b,
                         stk_text *out)
{
    int n = 0;
    if (a && b && is_equal(a, b)) return 0;
    if (!a || !b || a->kind != STK_YAML_MAP || b->kind != STK_YAML_MAP) {
        add_difference(path, a, b, out);
        return 1;
    }
    for (const stk_yaml_node *child = a->child; child; child = child->next)
        n += compare_child(path, key, child->key, child, stk_yaml_get(b, child->key), out);
    for (const stk_yaml_node *child = b->child; child; child = child->next)
        if (!stk_yaml_get(a, child->key)) n += compare_child(path, key, child->key, NULL, child, out);
    return n;
}

int stk_recipe_compare(const stk_recipe *before, const stk_recipe *now, stk_text *out)
{
    return compare_nodes("", &stk_recipe_key, before->yaml->root, now->yaml->root, out);
}
