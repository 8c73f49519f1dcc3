/* What the verbs of `stoker data` share. */
#ifndef STOKER_CLI_DATA_H
#define STOKER_CLI_DATA_H

#include "cli.h"
#include "stoker/run.h"

typedef struct data_job {
    const cli_args *args;
    const char *recipe, *split;
    int64_t n_threads, seconds; /* n_threads 0: not given */
    stk_dataset *dataset;
    stk_loader_config config;
} data_job;

/* Each returns an exit code. */
int data_bench(const data_job *job);

#endif
