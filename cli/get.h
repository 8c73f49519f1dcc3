/* What the parts of stoker get share. */
#ifndef STOKER_CLI_GET_H
#define STOKER_CLI_GET_H

#include "cli.h"
#include "stoker/data/download.h"

/* cmd_get.c: fetches it and shows how far it is; returns an exit code, and what went wrong is said. */
int get_fetch(const stk_download_set *set, const char *out, const char *mirror);
/* get_cuda.c: the libraries that the device 'cuda' lacks. */
int get_cuda_libs(const cli_args *args);

#endif
