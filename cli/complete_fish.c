/* The script for fish: a line for each option of each verb. */
#include <string.h>

#include "complete.h"
#include "help.h"

static const char head[] = "# Completions of stoker for fish, printed by: stoker completion fish\n"
                           "\n"
                           "# Whether the words typed so far begin with these.\n"
                           "function __stoker_is\n"
                           "    set -l typed (commandline -opc)\n"
                           "    set -e typed[1]\n"
                           "    test (count $typed) -ge (count $argv); or return 1\n"
                           "    for i in (seq (count $argv))\n"
                           "        test \"$typed[$i]\" = \"$argv[$i]\"; or return 1\n"
                           "    end\n"
                           "end\n"
                           "\n"
                           "# Whether a verb is to come, behind these words.\n"
                           "function __stoker_wants_verb\n"
                           "    set -l typed (commandline -opc)\n"
                           "    test (count $typed) -eq (math (count $argv) + 1); or return 1\n"
                           "    test (count $argv) -eq 0; or __stoker_is $argv\n"
                           "end\n"
                           "\n"
                           "function __stoker_runs\n"
                           "    for file in runs/*/recipe.yaml\n"
                           "        string replace -r '/recipe.yaml$' '' $file\n"
                           "    end\n"
                           "    __fish_complete_directories (commandline -ct)\n"
                           "end\n"
                           "\n"
                           "complete -c stoker -f\n"
                           "complete -c stoker -n __stoker_wants_verb -l version -d 'prints the version'\n";

/* What to offer: " -F" for any file, or " -a '...'". */
static void put_kind(const complete_kind *kind)
{
    if (kind->file || (kind->recipe && kind->dir)) {
        printf(" -F");
        return;
    }
    if (kind->recipe) printf(" -a '(__fish_complete_suffix .yaml)'");
    if (kind->run) printf(" -a '(__stoker_runs)'");
    if (kind->dir) printf(" -a '(__fish_complete_directories (commandline -ct))'");
    if (kind->command) printf(" -a '(__fish_complete_subcommand)'");
    if (kind->words[0]) printf(" -a '%s'", kind->words);
}

static void put_verb(const cli_verb *verb)
{
    complete_kind places[COMPLETE_PLACES];
    int n = complete_places(verb, places);
    printf("\n");
    for (const cli_option *option = verb->options; option->name; option++) {
        complete_kind kind;
        printf("complete -c stoker -n '__stoker_is %s' -l %s", verb->name, option->name + 2);
        if (option->value) {
            complete_find(option->value, strlen(option->value), &kind);
            printf(kind.file || (kind.recipe && kind.dir) ? " -r" : " -x");
            put_kind(&kind);
        }
        printf(" -d ");
        complete_quote(option->doc, "\\");
        printf("\n");
    }
    printf("complete -c stoker -n '__stoker_is %s' -l help -d 'this text'\n", verb->name);
    for (int i = 0; i < n; i++) {
        if (!places[i].file && !places[i].dir && !places[i].recipe && !places[i].run && !places[i].command &&
            !places[i].words[0])
            continue;
        printf("complete -c stoker -n '__stoker_is %s'", verb->name);
        put_kind(&places[i]);
        printf("\n");
    }
}

static void put_choice(const cli_verb *group)
{
    const cli_verb *verb;
    for (int i = 0; (verb = cli_next_of(group, &i));) {
        char sentence[256];
        snprintf(sentence, sizeof(sentence), "%.*s", help_sentence(verb->about), verb->about);
        printf("complete -c stoker -n '__stoker_wants_verb%s%s' -a %s -d ", group ? " " : "", group ? group->name : "",
               cli_last_word(verb));
        complete_quote(sentence, "\\");
        printf("\n");
    }
}

void complete_fish(void)
{
    fputs(head, stdout);
    put_choice(NULL);
    for (int i = 0; cli_verbs[i]; i++) {
        if (cli_is_group(cli_verbs[i]))
            put_choice(cli_verbs[i]);
        else
            put_verb(cli_verbs[i]);
    }
}
