/* Trainings that this process starts elsewhere, by mpirun or srun, instead of training itself. */
#ifndef STOKER_CLI_SUPERVISE_H
#define STOKER_CLI_SUPERVISE_H

#include "cli.h"

/* --elastic: it watches over them. Ranks get the whole command line as well, and are no supervisors. */
bool cli_wants_supervisor(const cli_args *args);
/* argv: train's. Returns the exit code. */
int cli_supervise(const cli_args *args, int argc, char **argv);
/* --hosts without that: the launcher takes the place of this process. */
bool cli_wants_hosts(const cli_args *args);
/* Returns an exit code, after a message, only where that fails. */
int cli_train_on_hosts(const cli_args *args, int argc, char **argv);

#endif
