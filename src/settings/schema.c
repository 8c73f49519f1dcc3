/* See settings/schema.h. The types of scalars are in schema_scalar.c. */
#include "settings/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "settings/schema_scalar.h"

enum { MOST_KEYS = 64, FEW_KEYS = 8 };

const stk_key *stk_key_at(const stk_key *parent, int i)
{
    if (parent->kinds) return parent->kinds[i];
    return parent->keys && parent->keys[i].name ? &parent->keys[i] : NULL;
}

const stk_key *stk_key_find(const stk_key *parent, const char *name)
{
    const stk_key *key;
    for (int i = 0; (key = stk_key_at(parent, i)); i++)
        if (!strcmp(key->name, name)) return key;
    return NULL;
}

/* The keys above the one of that name that is nearest to the top, "optimizer.sgd"; false: there is none. Tables hold
 * each other, as layers hold layers, so depth is bounded. */
static bool find_place(const stk_key *parent, const char *name, int depth, char *out, size_t bytes)
{
    const stk_key *key;
    if (!stk_key_at(parent, 0) && parent->element)
        return depth > 1 && find_place(parent->element, name, depth - 1, out, bytes);
    for (int i = 0; (key = stk_key_at(parent, i)); i++) {
        size_t n = strlen(out);
        if (depth == 1 && !strcmp(key->name, name)) return true;
        if (depth == 1 || n + strlen(key->name) + 2 > bytes) continue;
        snprintf(out + n, bytes - n, "%s%s", n ? "." : "", key->name);
        if (find_place(key, name, depth - 1, out, bytes)) return true;
        out[n] = 0;
    }
    return false;
}

/* For a key in the wrong place: where it belongs. */
static bool add_place(const stk_key *root, stk_text *text, const char *name)
{
    enum { DEEPEST = 6 };
    char place[128] = "";
    for (int depth = 1; depth <= DEEPEST; depth++) {
        if (!find_place(root, name, depth, place, sizeof(place))) continue;
        if (depth == 1)
            stk_text_add(text, "; '%s' belongs to the recipe's top level", name);
        else
            stk_text_add(text, "; '%s' belongs to '%s'", name, place);
        return true;
    }
    return false;
}

/* "no key 'lrr' in 'sgd' (did you mean 'lr'?)", or where it belongs, or the list of what there is. */
static stk_status refuse_key(const stk_yaml *yaml, const stk_yaml_node *node, const char *name, const stk_key *parent)
{
    const char *names[MOST_KEYS + 1] = {NULL};
    stk_text text = {0};
    bool is_choice = parent->type == STK_KEY_CHOICE;
    stk_text_add(&text, "no %s '%.60s'", is_choice ? parent->name : "key", name);
    if (!is_choice && parent->name[0]) stk_text_add(&text, " in '%s'", parent->name);
    int n = 0;
    for (const stk_key *key; n < MOST_KEYS && (key = stk_key_at(parent, n));)
        names[n++] = key->name;
    const char *nearest = add_place(yaml->schema, &text, name) ? name : stk_nearest_name(name, names);
    if (nearest && nearest != name) {
        stk_text_add(&text, " (did you mean '%s'?)", nearest);
    } else if (!nearest || (parent->name[0] && !is_choice && n > 0 && n <= FEW_KEYS)) {
        if (nearest) stk_text_add(&text, "; '%s' has its own", parent->name);
        for (int i = 0; i < n; i++)
            stk_text_add(&text, "%s%s", i ? ", " : nearest ? ": " : "; there are: ", names[i]);
    }
    stk_status status = stk_yaml_fail_key(node, "%s", stk_text_get(&text));
    stk_text_free(&text);
    return status;
}

/* --- maps --- */

/* Puts everything that node was into a map under that name, or with name NULL into a list. */
static stk_status wrap(stk_yaml *yaml, stk_yaml_node *node, const char *name)
{
    stk_yaml_node *inner = stk_yaml_add(yaml, node, name, NULL);
    if (!inner) return stk_fail_memory(sizeof(*inner));
    stk_yaml_remove(node, inner);
    const char *key = inner->key;
    *inner = *node;
    inner->key = key;
    inner->key_line = inner->key_column = 0;
    inner->next = NULL;
    node->kind = name ? STK_YAML_MAP : STK_YAML_SEQUENCE;
    node->text = NULL;
    node->child = inner;
    node->n_children = 1;
    return STK_OK;
}

/* Adds the default under the key's name. Those of maps are always empty: their keys have defaults of their own. */
static stk_status add_default(stk_yaml *yaml, stk_yaml_node *map, const stk_key *key)
{
    if (key->type == STK_KEY_LIST) return stk_yaml_add_parsed(yaml, map, key->name, key->default_value);
    stk_yaml_node *child = stk_yaml_add(yaml, map, key->name, key->type == STK_KEY_MAP ? NULL : key->default_value);
    return child ? STK_OK : stk_fail_memory(sizeof(*child));
}

static stk_status check_map(stk_yaml *yaml, stk_yaml_node *map, const stk_key *key)
{
    /* A key without a value is as good as one that is not there. */
    for (stk_yaml_node *child = map->child, *next; child; child = next) {
        next = child->next;
        if (!stk_key_find(key, child->key)) return refuse_key(yaml, child, child->key, key);
        if (stk_yaml_is_null(child)) stk_yaml_remove(map, child);
    }
    stk_yaml_node *sorted = NULL, **link = &sorted;
    int n = 0;
    const stk_key *k;
    for (int i = 0; (k = stk_key_at(key, i)); i++) {
        stk_yaml_node *child = stk_yaml_get(map, k->name);
        if (!child && k->default_value) {
            STK_RETURN_IF_ERROR(add_default(yaml, map, k));
            child = stk_yaml_get(map, k->name);
        }
        if (!child && k->required) {
            if (!key->name[0]) return stk_yaml_fail(map, "the key '%s' is missing: %s", k->name, k->doc);
            return stk_yaml_fail(map, "'%s' needs the key '%s': %s", key->name, k->name, k->doc);
        }
        if (!child) continue;
        STK_RETURN_IF_ERROR(stk_schema_check(yaml, child, k));
        stk_yaml_remove(map, child);
        *link = child;
        link = &child->next;
        *link = NULL;
        n++;
    }
    /* In the table's order, so that normal trees are equal whatever the order they were written in. */
    map->child = sorted;
    map->n_children = n;
    return STK_OK;
}

/* Two of a choice. Where --set brought the second, it says how to replace the first: by all of what holds them. */
static stk_status refuse_second(const stk_yaml_node *node, const stk_key *key)
{
    const stk_yaml_node *first = node->child, *second = first->next;
    static const char set[] = "--set ";
    const char *whole = strncmp(second->origin, set, sizeof(set) - 1) ? NULL : second->origin + sizeof(set) - 1;
    int n = -1; /* of the path before the second's name */
    size_t n_name = strlen(second->key);
    for (const char *dot = whole ? strchr(whole, '.') : NULL; dot; dot = strchr(dot + 1, '.'))
        if (!strncmp(dot + 1, second->key, n_name) && (!dot[1 + n_name] || dot[1 + n_name] == '.'))
            n = (int)(dot - whole);
    if (n < 0)
        return stk_yaml_fail_key(second, "'%s' can be only one of '%s' and '%s'", key->name, first->key, second->key);
    return stk_yaml_fail_key(
        second, "'%s' can be only one of '%s' and '%s'; to change it, give the whole: --set '%.*s={%s: ...}'",
        key->name, first->key, second->key, n, whole, second->key);
}

static stk_status check_choice(stk_yaml *yaml, stk_yaml_node *node, const stk_key *key)
{
    if (node->kind == STK_YAML_SCALAR) {
        if (stk_yaml_is_null(node)) return stk_yaml_fail_key(node, "'%s' has no value", key->name);
        if (!stk_key_find(key, node->text)) return refuse_key(yaml, node, node->text, key);
        stk_yaml_node *child = stk_yaml_add(yaml, node, node->text, NULL);
        if (!child) return stk_fail_memory(sizeof(*child));
        node->kind = STK_YAML_MAP;
    }
    if (node->kind != STK_YAML_MAP) return stk_yaml_fail(node, "'%s' must be a name or a map, not a list", key->name);
    for (const stk_yaml_node *child = node->child; child; child = child->next)
        if (!stk_key_find(key, child->key)) return refuse_key(yaml, child, child->key, key);
    if (node->n_children == 0) return stk_yaml_fail(node, "'%s' is empty", key->name);
    if (node->n_children > 1) return refuse_second(node, key);
    stk_yaml_node *child = node->child;
    const stk_key *chosen = stk_key_find(key, child->key);
    if (stk_yaml_is_null(child) && chosen->type == STK_KEY_MAP) {
        child->kind = STK_YAML_MAP;
        child->child = NULL;
    }
    return stk_schema_check(yaml, child, chosen);
}

static stk_status check_list(stk_yaml *yaml, stk_yaml_node *node, const stk_key *key)
{
    if (node->kind != STK_YAML_SEQUENCE && key->one_is_list && !stk_yaml_is_null(node))
        STK_RETURN_IF_ERROR(wrap(yaml, node, NULL));
    if (node->kind != STK_YAML_SEQUENCE) return stk_yaml_fail(node, "'%s' must be a list: [a, b]", key->name);
    if (key->one_is_list && !key->may_be_empty && !node->child)
        return stk_yaml_fail(node, "'%s' is an empty list", key->name);
    for (stk_yaml_node *child = node->child; child; child = child->next)
        STK_RETURN_IF_ERROR(stk_schema_check(yaml, child, key->element));
    return STK_OK;
}

static stk_status check_named(stk_yaml *yaml, stk_yaml_node *node, const stk_key *key)
{
    if (node->kind != STK_YAML_MAP && key->alone && !stk_yaml_is_null(node))
        STK_RETURN_IF_ERROR(wrap(yaml, node, key->alone));
    if (node->kind != STK_YAML_MAP || !node->child)
        return stk_yaml_fail(node, "'%s' must be a map of names: {image: ..., label: ...}", key->name);
    for (stk_yaml_node *child = node->child; child; child = child->next) {
        stk_key element = *key->element; /* Messages name what the user named. */
        element.name = child->key;
        STK_RETURN_IF_ERROR(stk_schema_check(yaml, child, &element));
    }
    return STK_OK;
}

static stk_status check_none(stk_yaml_node *node, const stk_key *key)
{
    bool is_empty = node->kind == STK_YAML_SCALAR ? stk_yaml_is_null(node) : node->n_children == 0;
    if (!is_empty) return stk_yaml_fail(node, "'%s' takes no settings", key->name);
    node->kind = STK_YAML_MAP;
    node->child = NULL;
    return STK_OK;
}

stk_status stk_schema_check(stk_yaml *yaml, stk_yaml_node *node, const stk_key *key)
{
    if (!yaml->schema) yaml->schema = key;
    switch (key->type) {
    case STK_KEY_MAP:
        if (node->kind != STK_YAML_MAP) {
            if (key->no_short)
                return stk_yaml_fail(node, key->name[0] ? "'%s' must be a map of keys" : "%sa recipe is a map of keys",
                                     key->name);
            STK_RETURN_IF_ERROR(wrap(yaml, node, stk_key_at(key, 0)->name));
        }
        return check_map(yaml, node, key);
    case STK_KEY_CHOICE: return check_choice(yaml, node, key);
    case STK_KEY_LIST: return check_list(yaml, node, key);
    case STK_KEY_NAMED: return check_named(yaml, node, key);
    case STK_KEY_NONE: return check_none(node, key);
    default: return stk_schema_check_scalar(yaml, node, key);
    }
}
