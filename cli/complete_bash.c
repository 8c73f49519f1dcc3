/* The script for bash. It needs no package: of bash-completion it uses one function, where that is there. */
#include <string.h>

#include "complete.h"

static const char head[] =
    "# Completions of stoker for bash, printed by: stoker completion bash\n"
    "\n"
    "# What a word may be: file, dir, recipe, run, or words to choose from. `cur` is what is typed of it.\n"
    "_stoker_offer()\n"
    "{\n"
    "    local kind found\n"
    "    for kind in \"$@\"; do\n"
    "        found=()\n"
    "        case $kind in\n"
    "        =file) compopt -o filenames; mapfile -t found < <(compgen -f -- \"$cur\") ;;\n"
    "        =dir) compopt -o filenames; mapfile -t found < <(compgen -d -- \"$cur\") ;;\n"
    "        =recipe)\n"
    "            compopt -o filenames\n"
    "            mapfile -t found < <(compgen -f -X '!*.yaml' -- \"$cur\"; compgen -f -X '!*.yml' -- \"$cur\"\n"
    "                compgen -d -- \"$cur\") ;;\n"
    "        =run)\n"
    "            compopt -o filenames\n"
    "            mapfile -t found < <(compgen -d -- \"$cur\"\n"
    "                [[ -n $cur ]] || compgen -G 'runs/*/recipe.yaml' | sed 's|/recipe\\.yaml$||') ;;\n"
    "        *) mapfile -t found < <(compgen -W \"$kind\" -- \"$cur\") ;;\n"
    "        esac\n"
    "        COMPREPLY+=(\"${found[@]}\")\n"
    "    done\n"
    "}\n"
    "\n"
    "_stoker()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} first=2 i word option= n=0\n"
    "    local flags= valued= places=()\n"
    "    COMPREPLY=()\n";

static const char walk[] =
    "    # Which option the word is the value of, or the how manieth word it is; `--out=x` comes as three words.\n"
    "    for ((i = first; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ $word == = ]]; then\n"
    "            [[ -n $option ]] || ((i++))\n"
    "        elif [[ -n $option ]]; then\n"
    "            option=\n"
    "        elif [[ $word == -- && $verb == watch ]]; then\n"
    "            if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); return; fi\n"
    "            ((i + 1 < COMP_CWORD)) && _stoker_offer =file || mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
    "            return\n"
    "        elif [[ \" $valued \" == *\" $word \"* ]]; then\n"
    "            option=$word\n"
    "        elif [[ $word != -* ]]; then\n"
    "            ((n++))\n"
    "        fi\n"
    "    done\n"
    "    [[ $cur == = ]] && cur=\n";

static const char tail[] = "    *)\n"
                           "        if [[ -z $option && $cur == -* ]]; then\n"
                           "            _stoker_offer \"$flags $valued --help\"\n"
                           "        elif [[ -z $option && ${#places[@]} -gt 0 ]]; then\n"
                           "            ((n < ${#places[@]})) || n=$((${#places[@]} - 1))\n"
                           "            eval \"_stoker_offer ${places[n]}\"\n"
                           "        fi\n"
                           "        ;;\n"
                           "    esac\n"
                           "} && complete -F _stoker stoker\n";

/* =file, or 'words' in quotes. */
static void put_kind(const complete_kind *kind)
{
    if (kind->file)
        printf("=file");
    else
        printf("%s%s%s", kind->recipe ? "=recipe " : "", kind->run ? "=run " : "", kind->dir ? "=dir" : "");
    if (kind->words[0]) printf(" \\\"%s\\\"", kind->words);
}

static bool offers(const complete_kind *kind)
{
    return kind->file || kind->dir || kind->recipe || kind->run || kind->words[0];
}

static void put_group(const cli_verb *group)
{
    const cli_verb *verb;
    printf("    %s)\n        ((COMP_CWORD > 2)) || { _stoker_offer \"--help", group->name);
    for (int i = 0; (verb = cli_next_of(group, &i));)
        printf(" %s", cli_last_word(verb));
    printf("\"; return; }\n        verb+=\" ${COMP_WORDS[2]}\" first=3\n        ;;\n");
}

/* Sets the lists of one verb. */
static void put_lists(const cli_verb *verb)
{
    complete_kind places[COMPLETE_PLACES];
    int n = complete_places(verb, places);
    printf("    '%s')\n        flags='", verb->name);
    for (const cli_option *o = verb->options; o->name; o++)
        if (!o->value) printf("%s ", o->name);
    printf("' valued='");
    for (const cli_option *o = verb->options; o->name; o++)
        if (o->value) printf("%s ", o->name);
    printf("'\n        places=(");
    for (int i = 0; i < n; i++) {
        printf("%s\"", i ? " " : "");
        put_kind(&places[i]);
        printf("\"");
    }
    /* Behind the last there is nothing to offer, unless it repeats. */
    if (n > 0 && !places[n - 1].repeats) printf(" \"\"");
    printf(")\n        ;;\n");
}

static void put_values(const cli_verb *verb)
{
    for (const cli_option *o = verb->options; o->name; o++) {
        complete_kind kind;
        if (!o->value) continue;
        complete_find(o->value, strlen(o->value), &kind);
        if (!offers(&kind)) continue;
        printf("    '%s %s') eval \"_stoker_offer ", verb->name, o->name);
        put_kind(&kind);
        printf("\" ;;\n");
    }
}

void complete_bash(void)
{
    const cli_verb *verb;
    fputs(head, stdout);
    printf("    ((COMP_CWORD > 1)) || { _stoker_offer \"--help --version");
    for (int i = 0; (verb = cli_next_of(NULL, &i));)
        printf(" %s", verb->name);
    printf("\"; return; }\n    case $verb in\n");
    for (int i = 0; cli_verbs[i]; i++)
        if (cli_is_group(cli_verbs[i])) put_group(cli_verbs[i]);
    printf("    esac\n    case $verb in\n");
    for (int i = 0; cli_verbs[i]; i++)
        if (!cli_is_group(cli_verbs[i])) put_lists(cli_verbs[i]);
    printf("    *) return ;;\n    esac\n");
    fputs(walk, stdout);
    printf("    case \"$verb $option\" in\n");
    for (int i = 0; cli_verbs[i]; i++)
        put_values(cli_verbs[i]);
    fputs(tail, stdout);
}
