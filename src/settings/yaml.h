/* Recipes' YAML as a small tree in which each node knows where it came from, so that every error can say so.
 *
 * The part of YAML that a recipe needs: one document of maps, sequences and scalars. Anchors, aliases, tags and
 * duplicate keys are refused, and so is anything too deep or too large. Typing is the schema's work.
 * Threads: one at a time for each document.
 */
#ifndef STK_SETTINGS_YAML_H
#define STK_SETTINGS_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "stoker/status.h"

enum { STK_YAML_MOST_BYTES = 1 << 20, STK_YAML_MOST_NODES = 10000, STK_YAML_MOST_DEPTH = 64 };

typedef enum stk_yaml_kind { STK_YAML_SCALAR, STK_YAML_SEQUENCE, STK_YAML_MAP } stk_yaml_kind;

typedef struct stk_yaml_node {
    stk_yaml_kind kind;
    const char *origin; /* "recipe.yaml"; with line 0 the origin is all that is known: "--set batch" */
    int line, column;   /* of the value, from 1 */
    const char *key;    /* in a map, else NULL */
    int key_line, key_column;
    const char *text; /* scalar: without quotes */
    bool quoted;      /* scalar: 'null' and '5' in quotes are texts */
    struct stk_yaml_node *child, *next;
    int n_children;
    /* What the schema understood. */
    bool truth;
    int64_t integer;
    double real;
} stk_yaml_node;

typedef struct stk_yaml {
    stk_arena *arena;
    stk_yaml_node *root;
    const char *origin;
    int n_nodes;
    const struct stk_key *schema; /* that the root was checked against (settings/schema.h); NULL: not yet */
} stk_yaml;

/* Parses n bytes at data. origin: the name for messages, copied. Free *out with stk_yaml_free. */
stk_status stk_yaml_parse(const char *origin, const void *data, size_t n, stk_yaml **out);
stk_status stk_yaml_read(const char *path, stk_yaml **out);
void stk_yaml_free(stk_yaml *yaml); /* accepts NULL */

/* Sets what a path of keys (and numbers, in sequences) names: "optimizer.sgd.lr=0.1". Missing maps are made; the value
 * is YAML. Nodes made here have the origin "--set optimizer.sgd.lr". */
stk_status stk_yaml_set(stk_yaml *yaml, const char *assignment);

/* The child of that key; NULL when there is none or node is no map. node may be NULL. */
stk_yaml_node *stk_yaml_get(const stk_yaml_node *node, const char *key);
/* What the child of that key holds after stk_schema_check; the default, false or NULL where there is none. */
int64_t stk_yaml_int(const stk_yaml_node *node, const char *key, int64_t default_value);
double stk_yaml_real(const stk_yaml_node *node, const char *key, double default_value);
bool stk_yaml_bool(const stk_yaml_node *node, const char *key);
const char *stk_yaml_text(const stk_yaml_node *node, const char *key);
bool stk_yaml_is(const stk_yaml_node *node, const char *key, const char *word); /* it is that text */
/* Which of words (ended by NULL) it is; 0 where it is none of them, or not there. */
int stk_yaml_word(const stk_yaml_node *node, const char *key, const char *const *words);
/* The two numbers of a list, which must have that many. */
stk_status stk_yaml_range(const stk_yaml_node *node, const char *key, double out[2]);
/* The texts of a list, borrowed. The caller frees *out. */
stk_status stk_yaml_texts(const stk_yaml_node *list, const char ***out, int *n);
/* A new node at the end of parent, with the parent's place. key and text are copied; text NULL: an empty map. Returns
 * NULL when out of memory. */
stk_yaml_node *stk_yaml_add(stk_yaml *yaml, stk_yaml_node *parent, const char *key, const char *text);
/* The same with YAML text, of any kind. */
stk_status stk_yaml_add_parsed(stk_yaml *yaml, stk_yaml_node *parent, const char *key, const char *text);
/* Takes child out of parent's list; its memory stays the document's. */
void stk_yaml_remove(stk_yaml_node *parent, const stk_yaml_node *child);
bool stk_yaml_is_null(const stk_yaml_node *node);

/* "recipe.yaml:12:3: " + text, for the value's place or the key's. Return STK_INVALID. */
stk_status stk_yaml_fail(const stk_yaml_node *node, const char *format, ...) __attribute__((format(printf, 2, 3)));
stk_status stk_yaml_fail_key(const stk_yaml_node *node, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts the node's place before the error that status is, unless it is STK_OK. Returns status. */
stk_status stk_yaml_locate(const stk_yaml_node *node, stk_status status);

/* The tree as YAML that parses to the same tree, but for secrets of addresses (base/secret.h), which are hidden. */
void stk_yaml_print(const stk_yaml_node *node, stk_text *out);
/* The scalar, or the whole node in flow style. */
void stk_yaml_print_flow(const stk_yaml_node *node, stk_text *out);

#endif
