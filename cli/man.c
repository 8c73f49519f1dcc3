/* Man pages out of the verbs' tables, in the macros of man(7). The date is left out, so that pages depend on nothing
 * but the program. */
#include <ctype.h>
#include <string.h>

#include "help.h"

/* Text in which nothing is a command of roff's, and minus signs are those one types. */
static void put_roff(const char *text)
{
    bool starts = true;
    for (; *text; text++) {
        if (starts && (*text == '.' || *text == '\'')) printf("\\&");
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else
            putchar(*text);
        starts = *text == '\n';
    }
}

/* Paragraphs; lines that begin with blanks, as examples do, stay as they are. */
static void put_paragraphs(const char *text)
{
    bool is_example = false;
    while (*text) {
        char line[1024];
        size_t n = strcspn(text, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)n, text);
        text += n + (text[n] == '\n');
        if (!line[0] || (line[0] == ' ') != is_example) printf(is_example ? ".EE\n.RE\n" : ".PP\n");
        if (!is_example && line[0] == ' ') printf(".RS\n.EX\n");
        if (!line[0]) {
            is_example = false;
            continue;
        }
        is_example = line[0] == ' ';
        put_roff(line + strspn(line, " "));
        printf("\n");
    }
    if (is_example) printf(".EE\n.RE\n");
}

/* "train" as "stoker\-train", the page's name. */
static void put_page_name(const cli_verb *verb, bool in_capitals)
{
    printf(in_capitals ? "STOKER" : "stoker");
    for (const char *p = verb ? verb->name : ""; *p; p++) {
        if (p == verb->name || *p == ' ') printf("\\-");
        if (*p != ' ') putchar(in_capitals ? toupper((unsigned char)*p) : *p);
    }
}

/* The name section, from which `man -k` makes its index. */
static void put_name(const cli_verb *verb, const char *about)
{
    printf(".SH NAME\n");
    put_page_name(verb, false);
    printf(" \\- %c%.*s\n", tolower((unsigned char)about[0]), help_sentence(about) - 1, about + 1);
}

static void put_options(const cli_verb *verb)
{
    printf(".SH OPTIONS\n");
    for (const cli_option *option = verb->options; option->name; option++) {
        printf(".TP\n.B ");
        put_roff(option->name);
        if (option->value) printf(" ");
        if (option->value) put_roff(option->value);
        printf("\n");
        put_roff(option->doc);
        printf("\n");
    }
    printf(".TP\n.B \\-\\-help\nprints this help in short\n");
}

static void put_verbs(const cli_verb *group)
{
    char sentence[256];
    const cli_verb *verb;
    printf(".SH VERBS\n");
    for (int i = 0; (verb = cli_next_of(group, &i));) {
        printf(".TP\n.BR ");
        put_page_name(verb, false);
        printf(" (1)\n");
        snprintf(sentence, sizeof(sentence), "%.*s.", help_sentence(verb->about), verb->about);
        put_roff(sentence);
        printf("\n");
    }
}

void man_print(const cli_verb *verb)
{
    static const char about[] = "Trains deep networks from files on disk.";
    printf(".TH ");
    put_page_name(verb, true);
    printf(" 1 \"\" \"stoker %s\" \"Stoker\"\n", stk_version());
    put_name(verb, verb ? verb->about : about);
    printf(".SH SYNOPSIS\n.B stoker");
    if (verb) printf(" %s", verb->name);
    printf("\n");
    put_roff(verb ? verb->usage : "VERB ...");
    printf("\n.SH DESCRIPTION\n");
    put_paragraphs(verb ? verb->about : about);
    bool is_group = !verb || cli_is_group(verb);
    if (is_group) put_verbs(verb);
    if (!is_group || (verb && verb->options[0].name)) put_options(verb);
    if (!verb) printf(".SH EXIT STATUS\n0: well; 1: it failed; 2: wrong usage.\n");
    if (verb) printf(".SH SEE ALSO\n.BR stoker (1)\n");
}
