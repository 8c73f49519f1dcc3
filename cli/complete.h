/* Scripts for shells, made of the verbs' tables: verbs, options, and what their values and the other words may be. */
#ifndef STOKER_CLI_COMPLETE_H
#define STOKER_CLI_COMPLETE_H

#include "cli.h"

/* What one word may be, found from how help names it (cli.h). */
typedef struct complete_kind {
    bool file, dir, recipe, run, command, repeats;
    char words[2048]; /* with blanks between; "": any */
} complete_kind;

enum { COMPLETE_PLACES = 8 };

/* value: a word of a table, as "DIR", "RUN|PID" or "[MODEL]"; n: its length. */
void complete_find(const char *value, size_t n, complete_kind *out);
/* The words of a verb that are no options, in their order; returns how many. The last may repeat. */
int complete_places(const cli_verb *verb, complete_kind out[COMPLETE_PLACES]);
/* A text in quotes for a shell, with a backslash before each of `marks`. */
void complete_quote(const char *text, const char *marks);

void complete_bash(void);
void complete_zsh(void);
void complete_fish(void);

#endif
