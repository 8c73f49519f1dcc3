/* stoker train --elastic: this process starts the ranks and watches over them, instead of training. */
#ifndef STOKER_CLI_SUPERVISE_H
#define STOKER_CLI_SUPERVISE_H

#include "cli.h"

/* Ranks get the whole command line as well, and are no supervisors. */
bool cli_wants_supervisor(const cli_args *args);
/* argv: train's. Returns the exit code. */
int cli_supervise(const cli_args *args, int argc, char **argv);

#endif
