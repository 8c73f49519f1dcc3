/* All verbs: what the program runs, lists, completes and makes man pages of. */
#include <string.h>

#include "cli.h"

const cli_verb *const cli_verbs[] = {
#define X(verb) &cli_##verb,
    CLI_VERB_LIST(X)
#undef X
        NULL};

int cli_count_words(const cli_verb *verb)
{
    return strchr(verb->name, ' ') ? 2 : 1;
}

const cli_verb *cli_find_verb(int n_words, char *const *words)
{
    const cli_verb *found = NULL;
    for (int i = 0; cli_verbs[i] && n_words > 0; i++) {
        const char *name = cli_verbs[i]->name;
        size_t n = strcspn(name, " ");
        if (strlen(words[0]) != n || strncmp(name, words[0], n)) continue;
        if (!name[n]) found = cli_verbs[i];
        if (name[n] && n_words > 1 && !strcmp(name + n + 1, words[1])) return cli_verbs[i];
    }
    return found;
}

const cli_verb *cli_next_of(const cli_verb *group, int *i)
{
    size_t n = group ? strlen(group->name) : 0;
    for (; cli_verbs[*i]; (*i)++) {
        const char *name = cli_verbs[*i]->name;
        bool is_inner = strchr(name, ' ') != NULL;
        if (group ? is_inner && !strncmp(name, group->name, n) && name[n] == ' ' : !is_inner) return cli_verbs[(*i)++];
    }
    return NULL;
}

bool cli_is_group(const cli_verb *verb)
{
    int i = 0;
    return cli_next_of(verb, &i) != NULL;
}

const char *cli_last_word(const cli_verb *verb)
{
    const char *space = strchr(verb->name, ' ');
    return space ? space + 1 : verb->name;
}

int cli_refuse_verb(const cli_verb *group, const char *word)
{
    const char *names[64];
    const cli_verb *verb;
    int n = 0;
    for (int i = 0; n < 64 && (verb = cli_next_of(group, &i));)
        names[n++] = cli_last_word(verb);
    const char *nearest = cli_nearest(word, names, n), *name = group ? group->name : "", *blank = group ? " " : "";
    if (nearest) return cli_usage(group, "no verb '%s%s%s' (did you mean '%s'?)", name, blank, word, nearest);
    return cli_usage(group, "no verb '%s%s%s'", name, blank, word);
}
