/* What the verbs of `stoker data` share. */
#ifndef STOKER_CLI_DATA_H
#define STOKER_CLI_DATA_H

#include "cli.h"
#include "stoker/train/run.h"

typedef struct data_job {
    const cli_verb *verb;
    const cli_args *args;
    const char *recipe, *split;
    int64_t n_threads, seconds; /* n_threads 0: not given */
    int64_t n_rows, n_columns, i_epoch;
    const char *sets[CLI_MOST_ARGS + 1]; /* and one of our own */
    int n_sets;
    stk_dataset *dataset; /* NULL for verbs that open none or their own */
    stk_loader_config config;
} data_job;

/* Each returns an exit code. */
int data_bench(data_job *job);
int data_show(data_job *job);
int data_verify(data_job *job);
int data_explain(data_job *job);
int data_lint(data_job *job);

/* Opens the recipe's data set into the job. False: a message is out. */
bool data_open(data_job *job);

/* How full the ring was. */
void data_print_ring(const stk_loader_stats *stats);

#endif
