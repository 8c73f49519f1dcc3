/* What is made of the verbs' tables: lists, help, man pages. All goes to standard output. */
#ifndef STOKER_CLI_HELP_H
#define STOKER_CLI_HELP_H

#include "cli.h"

/* verb NULL: the list of all. */
void help_print(const cli_verb *verb);
/* stoker.1, or stoker-VERB.1, in roff's macros `man`. */
void man_print(const cli_verb *verb);
/* How long the first sentence is, without its full stop. */
int help_sentence(const char *text);

#endif
