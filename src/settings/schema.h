/* Tables of keys: name, type, range, default and meaning. One table checks a tree, fills in what is left out, brings
 * short forms into one form, and writes the reference (docs/recipe.md).
 *
 * After stk_schema_check a tree is normal: every key with a default is there, {dense: 10} has become
 * {dense: {units: 10}}, numbers are spelled in one way, and integer, real and truth are set in the nodes. So two
 * recipes that mean the same compare equal, key by key. Threads: any; tables are constant.
 */
#ifndef STK_SETTINGS_SCHEMA_H
#define STK_SETTINGS_SCHEMA_H

#include "settings/yaml.h"

typedef enum stk_key_type {
    STK_KEY_BOOL,
    STK_KEY_INT,
    STK_KEY_REAL, /* "1/255" too */
    STK_KEY_TEXT,
    STK_KEY_WORD,   /* one of words */
    STK_KEY_SHARE,  /* "10%" or 0.1; real is the share */
    STK_KEY_MEMORY, /* "auto", "8GiB", "60%", bytes; integer: bytes, or -1 for auto, or -percent * 1000 - 2 */
    STK_KEY_EVERY,  /* "50 steps", "1 epoch", 2 (epochs, or steps where words is {"steps"}); integer, truth: epochs */
    STK_KEY_MAP,    /* keys; anything but a map is taken for the first key */
    STK_KEY_CHOICE, /* exactly one of keys; a name alone is short for {name: {}} */
    STK_KEY_LIST,   /* of element; with one_is_list a single element stands for a list of it */
    STK_KEY_NAMED,  /* names that the user chooses, each with an element; alone: the name of a single element */
    STK_KEY_NONE    /* takes no settings: a member of a choice like relu */
} stk_key_type;

typedef struct stk_key stk_key;
struct stk_key {
    const char *name;
    stk_key_type type;
    const char *default_value; /* YAML; NULL: left out means not there */
    const char *doc;           /* one sentence or two, without the default and the range */
    double least, most;        /* INT, REAL, SHARE; both 0: any */
    bool required, above;      /* above: least itself is not allowed */
    bool no_short;             /* MAP: nothing but a map will do */
    bool one_is_list;          /* LIST */
    bool may_be_empty;         /* LIST with one_is_list: [] says none */
    bool may_change;           /* when a run goes on, without making it another run */
    bool is_path;              /* TEXT: of data, which are looked for in several folders; not if it is one of words */
    const char *alone;         /* NAMED: NULL: nothing but a map will do */
    const stk_key *keys;       /* MAP, CHOICE: ended by a name of NULL */
    const stk_key *const
        *kinds; /* CHOICE, instead of keys: the keys of descriptors in files of their own; NULL at the end */
    const stk_key *element;   /* LIST, NAMED */
    const char *const *words; /* WORD: ended by NULL */
};
/* Of a table. */
#define STK_KEY_END                                                                                                    \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }

/* Key number i of a map or choice; NULL past the end, and of other types. */
const stk_key *stk_key_at(const stk_key *parent, int i);
/* NULL: there is none of that name. */
const stk_key *stk_key_find(const stk_key *parent, const char *name);

/* Checks node against key and makes it normal. Errors name file, line and column, and the nearest key. */
stk_status stk_schema_check(stk_yaml *yaml, stk_yaml_node *node, const stk_key *key);

/* "any number above 0" and the like, for messages and the reference. */
void stk_schema_describe(const stk_key *key, stk_text *out);

/* A number in its shortest spelling that reads back the same. */
enum { STK_NUMBER_BYTES = 32 };
void stk_number_text(double value, char out[STK_NUMBER_BYTES]);

#endif
