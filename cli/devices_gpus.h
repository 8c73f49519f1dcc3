/* See devices_gpus.c. */
#ifndef STK_CLI_DEVICES_GPUS_H
#define STK_CLI_DEVICES_GPUS_H

#include "cli.h"

typedef struct cli_gpus cli_gpus;

/* library: NULL for the driver's own. NULL: there is no memory, or the driver does not answer within
 * seconds, which is warned of; without a driver there are none to print. */
cli_gpus *cli_gpus_open(const char *library);
void cli_gpus_close(cli_gpus *gpus);
void cli_gpus_print(const cli_gpus *gpus);
/* A list. */
void cli_gpus_print_json(const cli_gpus *gpus);

#endif
