/* The script for zsh: _arguments does the work. */
#include <string.h>

#include "complete.h"
#include "help.h"

static const char head[] = "#compdef stoker\n"
                           "# Completions of stoker for zsh, printed by: stoker completion zsh\n"
                           "\n"
                           "_stoker_recipes()\n"
                           "{\n"
                           "    _files -g '*.(yaml|yml)(-.)'\n"
                           "}\n"
                           "\n"
                           "_stoker_runs()\n"
                           "{\n"
                           "    local -a runs=(runs/*/recipe.yaml(N:h))\n"
                           "    (( $#runs )) && compadd -a runs\n"
                           "    _files -/\n"
                           "}\n"
                           "\n"
                           "_stoker()\n"
                           "{\n"
                           "    local verb\n";

/* What is behind the message: ":message:action". */
static void put_action(const char *message, const complete_kind *kind)
{
    printf(":");
    for (const char *p = message; *p; p++)
        printf(*p == ':' ? "\\:" : "%c", *p);
    if (kind->file)
        printf(":_files");
    else if (kind->recipe && kind->dir)
        printf(":_files");
    else if (kind->recipe)
        printf(":_stoker_recipes");
    else if (kind->run)
        printf(":_stoker_runs");
    else if (kind->dir)
        printf(":_files -/");
    else if (kind->command)
        printf(":_normal");
    else
        printf(":(%s)", kind->words);
}

static void put_option(const cli_option *option)
{
    complete_kind kind;
    bool repeats = strstr(option->doc, "may be given often") != NULL;
    printf(" \\\n            %s%s%s'[", repeats ? "\\*" : "", option->name, option->value ? "=" : "");
    for (const char *p = option->doc; *p; p++) {
        if (*p == '\'')
            printf("'\\''");
        else
            printf(strchr("[]:", *p) ? "\\%c" : "%c", *p);
    }
    printf("]");
    if (option->value) {
        complete_find(option->value, strlen(option->value), &kind);
        put_action(option->value, &kind);
    }
    printf("'");
}

static void put_verb(const cli_verb *verb)
{
    complete_kind places[COMPLETE_PLACES];
    int n = complete_places(verb, places);
    printf("    '%s')\n        _arguments", verb->name);
    for (const cli_option *option = verb->options; option->name; option++)
        put_option(option);
    printf(" \\\n            '--help[this text]'");
    for (int i = 0; i < n; i++) {
        char message[32];
        size_t length = strcspn(verb->usage, " ");
        snprintf(message, sizeof(message), "%.*s", (int)(length < 31 ? length : 31), verb->usage);
        if (places[i].command)
            printf(" \\\n            '(-)*:: ");
        else if (places[i].repeats)
            printf(" \\\n            '*");
        else
            printf(" \\\n            '%d", i + 1);
        put_action(i == 0 && !places[i].command ? message : "word", &places[i]);
        printf("'");
    }
    printf("\n        ;;\n");
}

static void put_choice(const cli_verb *group, const char *indent)
{
    const cli_verb *verb;
    printf("%slocal -a verbs=(\n", indent);
    for (int i = 0; (verb = cli_next_of(group, &i));) {
        char text[300];
        snprintf(text, sizeof(text), "%s:%.*s", cli_last_word(verb), help_sentence(verb->about), verb->about);
        printf("%s    ", indent);
        complete_quote(text, "");
        printf("\n");
    }
    printf("%s)\n%s_describe verb verbs\n%sreturn\n", indent, indent, indent);
}

void complete_zsh(void)
{
    fputs(head, stdout);
    printf("    if (( CURRENT == 2 )); then\n");
    put_choice(NULL, "        ");
    printf("    fi\n    shift words\n    (( CURRENT-- ))\n    verb=$words[1]\n    case $verb in\n");
    for (int i = 0; cli_verbs[i]; i++) {
        if (!cli_is_group(cli_verbs[i])) continue;
        printf("    %s)\n        if (( CURRENT == 2 )); then\n", cli_verbs[i]->name);
        put_choice(cli_verbs[i], "            ");
        printf("        fi\n        shift words\n        (( CURRENT-- ))\n        verb+=\" $words[1]\"\n        ;;\n");
    }
    printf("    esac\n    case $verb in\n");
    for (int i = 0; cli_verbs[i]; i++)
        if (!cli_is_group(cli_verbs[i])) put_verb(cli_verbs[i]);
    printf("    esac\n}\n\n"
           "if [[ $funcstack[1] == _stoker ]]; then _stoker \"$@\"; else compdef _stoker stoker; fi\n");
}
