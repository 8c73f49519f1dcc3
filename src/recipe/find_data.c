/* Looks for a recipe's data: from the recipe's folder, the working folder, $STOKER_DATA, then the working folder's
 * `data`. See recipe/recipe.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/neighbour.h"
#include "base/secret.h"
#include "data/remote/http.h"
#include "data/source/paths.h"
#include "nn/layer_list.h"
#include "recipe/build.h"
#include "stoker/data/cache.h"
#include "stoker/data/download.h"
#include "stoker/data/synthetic.h"

/* Whether a folder or a file on the way has this name: 'data/mnist', not 'mnist200k.tfrecord'. */
static bool names_part(const char *path, const char *part)
{
    size_t n = strlen(part);
    for (const char *at = path; (at = strstr(at, part)); at += n)
        if ((at == path || at[-1] == '/') && (at[n] == '/' || at[n] == 0)) return true;
    return false;
}

/* How to get the data sets that `stoker get` knows. */
static void explain_known(const char *path, stk_text *out)
{
    const stk_download_set *set;
    const char *name = names_part(path, "digits") ? "digits" : NULL, *made;
    for (int i = 0; !name && (made = stk_synthetic_name(i, NULL, NULL)); i++)
        if (names_part(path, made)) name = made;
    for (int i = 0; !name && (set = stk_download_at(i)); i++)
        if (names_part(path, set->name)) name = set->name;
    if (name)
        stk_text_add(out, "get it with: stoker get %s", name);
    else
        stk_text_add(out, "set STOKER_DATA to the folder that holds it");
}

/* Where an array of a .npz file is named, "a.npz:x", the colon; else the end. */
static const char *end_of_path(const char *text)
{
    const char *colon = strstr(text, ".npz:");
    return colon ? colon + 4 : strchr(text, 0);
}

/* A pattern that matches something, or braces of which the first path is there, as an absolute path. */
static bool find_pattern(const char *path, char found[PATH_MAX])
{
    stk_names names;
    char here[PATH_MAX];
    if (!stk_path_is_pattern(path) && !strchr(path, '{')) return false;
    if (stk_paths_expand(&path, 1, false, &names) != STK_OK) return false;
    bool is_there = stk_path_is_pattern(path) || (names.n > 0 && stk_path_exists(names.name[0]));
    stk_names_free(&names);
    return is_there && getcwd(here, sizeof(here)) && stk_path_join(found, PATH_MAX, here, path) == STK_OK;
}

static stk_status try_folder(const char *folder, const char *name, char found[PATH_MAX], stk_text *tried, stk_text *how)
{
    char path[PATH_MAX], part[PATH_MAX];
    size_t n = (size_t)(end_of_path(name) - name);
    if (n >= sizeof(part)) return stk_fail(STK_INVALID, "path '%.60s...' is too long", name);
    memcpy(part, name, n);
    part[n] = 0;
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, part));
    if ((stk_path_exists(path) && realpath(path, found)) || find_pattern(path, found)) return STK_OK;
    stk_text_add(tried, "%s'%s'", tried->n ? ", " : "", path);
    if (how->n == 0 && !stk_path_is_pattern(path) && stk_path_neighbour(path, part, sizeof(part)))
        stk_text_add(how, "did you mean '%s'?", part);
    found[0] = 0;
    return STK_OK;
}

/* An address as a run keeps it, without its secrets, gets them from the environment. */
static stk_status reveal(stk_recipe *recipe, stk_yaml_node *node)
{
    const char *secret = getenv("STOKER_ADDRESS_SECRET");
    stk_text text = {0};
    stk_status status = STK_OK;
    if (stk_text_add_secrets(&text, node->text, secret ? secret : STK_HIDDEN, true) == 0) goto done;
    if (!secret || !secret[0])
        STK_TRY(stk_yaml_fail(node,
                              "the address '%s' is kept here without its secret: go on with the recipe that has it, or "
                              "set STOKER_ADDRESS_SECRET to what stands for %s",
                              node->text, STK_HIDDEN));
    STK_TRY(stk_text_status(&text));
    if (!(node->text = stk_arena_text(recipe->yaml->arena, stk_text_get(&text)))) STK_TRY(stk_fail_memory(text.n));
done:
    stk_text_free(&text);
    return status;
}

/* Replaces the text of node by an absolute path. */
static stk_status find_path(stk_recipe *recipe, stk_yaml_node *node)
{
    stk_status status = STK_OK;
    char folder[PATH_MAX] = ".", found[PATH_MAX] = "";
    const char *slash = strrchr(recipe->path, '/'), *variable = getenv("STOKER_DATA");
    stk_text tried = {0}, how = {0};
    bool is_absolute = node->text[0] == '/';
    size_t n = slash ? (size_t)(slash - recipe->path) : 0;
    if (stk_is_remote(node->text)) return reveal(recipe, node); /* it is looked for when it is opened */
    if (slash && n < sizeof(folder)) {
        memcpy(folder, n ? recipe->path : "/", n ? n : 1);
        folder[n ? n : 1] = 0;
    }
    if (slash && !is_absolute) STK_TRY(try_folder(folder, node->text, found, &tried, &how));
    if (!found[0]) STK_TRY(try_folder("", node->text, found, &tried, &how));
    if (!found[0] && !is_absolute && variable && variable[0])
        STK_TRY(try_folder(variable, node->text, found, &tried, &how));
    if (!found[0] && !is_absolute)
        STK_TRY(try_folder("data", node->text, found, &tried, &how)); /* where `stoker get` writes */
    if (!found[0]) {
        bool has_variable = variable && variable[0];
        if (how.n == 0) explain_known(node->text, &how);
        stk_yaml_fail(node, "no such data: '%.200s'; looked at %s%s; %s", node->text, stk_text_get(&tried),
                      has_variable || is_absolute ? "" : " (STOKER_DATA is not set)", stk_text_get(&how));
        status = STK_NOT_FOUND;
        goto done;
    }
    if (strlen(found) + strlen(end_of_path(node->text)) >= sizeof(found))
        STK_TRY(stk_yaml_fail(node, "the path is too long"));
    strcat(found, end_of_path(node->text));
    if (!(node->text = stk_arena_text(recipe->yaml->arena, found))) STK_TRY(stk_fail_memory(strlen(found)));
done:
    stk_text_free(&tried);
    stk_text_free(&how);
    return status;
}

/* Wherever the tables of keys say that a text is a path. */
static stk_status find_paths(stk_recipe *recipe, stk_yaml_node *node, const stk_key *key)
{
    bool is_named = key->type == STK_KEY_MAP || key->type == STK_KEY_CHOICE;
    if (is_named || key->type == STK_KEY_LIST || key->type == STK_KEY_NAMED) {
        for (stk_yaml_node *child = node->child; child; child = child->next)
            STK_RETURN_IF_ERROR(find_paths(recipe, child, is_named ? stk_key_find(key, child->key) : key->element));
        return STK_OK;
    }
    for (const char *const *word = key->is_path ? key->words : NULL; word && *word; word++)
        if (!strcmp(*word, node->text)) return STK_OK;
    return key->is_path ? find_path(recipe, node) : STK_OK;
}

/* Files of layers, wherever in the lists they are. */
static stk_status find_layers(stk_recipe *recipe, const stk_yaml_node *node)
{
    for (const stk_yaml_node *child = node ? node->child : NULL; child; child = child->next) {
        const stk_layer_class *class = child->key ? stk_layer_class_find(child->key) : NULL;
        stk_yaml_node *file = class && class->reads_file ? stk_yaml_get(child, "file") : NULL;
        if (file) STK_RETURN_IF_ERROR(find_path(recipe, file));
        STK_RETURN_IF_ERROR(find_layers(recipe, child));
    }
    return STK_OK;
}

stk_status stk_recipe_find_data(stk_recipe *recipe)
{
    STK_RETURN_IF_ERROR(find_layers(recipe, recipe->model));
    STK_RETURN_IF_ERROR(find_paths(recipe, recipe->yaml->root, &stk_recipe_key));
    const char *ca = stk_yaml_text(stk_yaml_get(recipe->yaml->root, "data"), "ca");
    if (ca) STK_RETURN_IF_ERROR(stk_addresses_trust(ca));
    recipe->init_weights = stk_yaml_text(stk_yaml_get(recipe->yaml->root, "init"), "weights");
    return STK_OK;
}
