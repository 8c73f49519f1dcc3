/* The reference of all keys, docs/recipe.md, written from the tables in keys_*.c. See stoker/train/run.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "recipe/recipe.h"
#include "stoker/train/run.h"

static const char intro[] =
    "# Recipes\n"
    "\n"
    "Written by `stoker new --keys`; a test checks that this page is in step with the program.\n"
    "\n"
    "A recipe is one YAML file. `stoker new NAME` writes one to start from, and `recipes/` holds whole ones. Unknown "
    "keys are\n"
    "errors that name the nearest known key, and an error in the file has its line and column. On the command line\n"
    "`--set optimizer.sgd.lr=0.2` changes a value (numbers reach into lists: `data.train.stages.1.random_crop.pad`), "
    "and\n"
    "`--device`, `--memory`, `--precision`, `--batch`, `--epochs`, `--threads` and `--seed` are short for `--set`.\n"
    "\n"
    "- Where one of several kinds is wanted, write `{kind: {key: value}}`, or the name alone where the defaults will "
    "do:\n"
    "  `schedule: cosine`.\n"
    "- Where a map is wanted and something else stands, it is taken for the map's first key: `{dense: 10}` is\n"
    "  `{dense: {units: 10}}`.\n"
    "- Paths of data are looked up from the recipe's folder, then the working folder, `$STOKER_DATA`, and `data/`.\n"
    "- A data set's order is made in this sequence, whatever the order of the keys: the share for `valid`, "
    "`filter`,\n"
    "  `skip`, `take`, `shard`, `unbatch`, `windows`, `pack`, `shuffle`, `repeat`, batch. A shard by file comes before "
    "`skip`.\n"
    "- A run keeps its recipe in full, defaults included, as `recipe.yaml` in its folder. `--resume` refuses another "
    "one, but\n"
    "  `epochs`, `device`, `threads`, `replicas`, `overlap`, `shard`, `memory`, `recompute`, `checkpoint`, `log`, "
    "`prometheus`, "
    "`tensorboard` and "
    "`expect` may change,\n"
    "  as may `on_error` and `cache` of data and `data.memory`.\n"
    "  There must be as many samples to train on as before. With another device or number of threads sums are\n"
    "  formed in another order, so the losses then agree only to "
    "rounding.\n";

enum { MOST_SECTIONS = 256 };

typedef struct section {
    const char *title;
    const stk_key *key;
} section;

typedef struct sections {
    section list[MOST_SECTIONS];
    int n;
    bool lacks_some;
    char titles[MOST_SECTIONS][96];
} sections;

/* A table that has been described once is not described again: residual layers hold layers. */
static void add_section(sections *all, const char *parent, const stk_key *key)
{
    if (key->type == STK_KEY_LIST && (key->element->type == STK_KEY_CHOICE || key->element->type == STK_KEY_MAP)) {
        parent = "";
        key = key->element;
    }
    bool is_named_map = key->type == STK_KEY_NAMED && key->element->type == STK_KEY_MAP;
    if (key->type != STK_KEY_MAP && key->type != STK_KEY_CHOICE && !is_named_map) return;
    const stk_key *named = key;
    if (is_named_map) key = key->element;
    for (int i = 0; i < all->n; i++)
        if (stk_key_at(all->list[i].key, 0) == stk_key_at(key, 0)) return;
    all->lacks_some |= all->n == MOST_SECTIONS;
    if (all->n == MOST_SECTIONS) return;
    char *title = all->titles[all->n];
    size_t n = strlen(parent), m = strlen(named->name);
    if (n + m + 2 > sizeof(all->titles[0])) return;
    memcpy(title, parent, n);
    if (n) title[n++] = '.';
    memcpy(title + n, named->name, m + 1);
    all->list[all->n++] = (section){title, key};
}

static void print_default(const stk_key *key, stk_text *out)
{
    if (key->required)
        stk_text_add(out, "needed");
    else if (key->default_value && key->default_value[0])
        stk_text_add(out, "`%s`", key->default_value);
}

static void print_value(const stk_key *key, stk_text *out)
{
    const stk_key *element = key->element;
    if (key->type == STK_KEY_NAMED) {
        stk_text_add(out, "a map of names, each ");
        stk_schema_describe(element, out);
    } else if (key->type != STK_KEY_LIST) {
        stk_schema_describe(key, out);
    } else if (element->type == STK_KEY_CHOICE || element->type == STK_KEY_MAP) {
        stk_text_add(out, "a list of %ss", element->name);
    } else {
        if (key->one_is_list) {
            stk_schema_describe(element, out);
            stk_text_add(out, ", or a list, each ");
        } else {
            stk_text_add(out, "a list, each ");
        }
        stk_schema_describe(element, out);
    }
}

/* The last cell of a row, which a bar would end, and in which <pad> would be a tag that nobody sees. */
static void print_meaning(const stk_key *key, stk_text *out)
{
    stk_text_add(out, " | ");
    for (const char *c = key->doc; c && *c; c++) {
        if (strchr("|<", *c)) stk_text_add_bytes(out, "\\", 1);
        stk_text_add_bytes(out, c, 1);
    }
    stk_text_add(out, " |\n");
}

static void print_keys(const stk_key *parent, stk_text *out)
{
    stk_text_add(out, "\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n");
    const stk_key *key;
    for (int i = 0; (key = stk_key_at(parent, i)); i++) {
        stk_text_add(out, "| `%s` | ", key->name);
        print_value(key, out);
        stk_text_add(out, " | ");
        print_default(key, out);
        print_meaning(key, out);
    }
}

static void print_kinds(const section *s, stk_text *out)
{
    stk_text_add(out, "\nOne of:\n\n| Kind | Settings | Meaning |\n|---|---|---|\n");
    const stk_key *key, *k;
    for (int i = 0; (key = stk_key_at(s->key, i)); i++) {
        stk_text_add(out, "| `%s` | ", key->name);
        if (key->type == STK_KEY_MAP) {
            for (int j = 0; (k = stk_key_at(key, j)); j++)
                stk_text_add(out, "%s`%s`", j ? ", " : "", k->name);
        } else {
            print_value(key, out);
        }
        print_meaning(key, out);
    }
}

stk_status stk_recipe_reference(char **out)
{
    STK_NEED(out);
    const stk_key *key;
    stk_text text = {0};
    sections *all = calloc(1, sizeof(*all));
    *out = NULL;
    if (!all) return stk_fail_memory(sizeof(*all));
    stk_text_add(&text, "%s\n## The whole\n", intro);
    print_keys(&stk_recipe_key, &text);
    for (int i = 0; (key = stk_key_at(&stk_recipe_key, i)); i++)
        add_section(all, "", key);
    for (int i = 0; i < all->n; i++) {
        const section *s = &all->list[i];
        stk_text_add(&text, "\n## %s\n", s->title);
        if (s->key->doc) stk_text_add(&text, "\n%s\n", s->key->doc);
        if (s->key->type == STK_KEY_CHOICE)
            print_kinds(s, &text);
        else
            print_keys(s->key, &text);
        for (int j = 0; (key = stk_key_at(s->key, j)); j++)
            add_section(all, s->title, key);
    }
    bool lacks_some = all->lacks_some;
    free(all);
    if (lacks_some) {
        stk_text_free(&text);
        return stk_fail(STK_INTERNAL, "the reference has more than %d tables", MOST_SECTIONS);
    }
    if (stk_text_status(&text) != STK_OK) {
        stk_text_free(&text);
        return STK_NO_MEMORY;
    }
    *out = text.data;
    return STK_OK;
}
