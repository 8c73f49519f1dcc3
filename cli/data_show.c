/* stoker data show: a sheet of samples as the network would get them. */
#include "data.h"
#include "stoker/data/sheet.h"

int data_show(data_job *job)
{
    char n[CLI_TEXT], epoch[CLI_TEXT];
    stk_sheet_info info;
    stk_sheet_config sheet = {.n_rows = (int)job->n_rows, .n_columns = (int)job->n_columns};
    stk_loader_config config = job->config;
    const char *out = cli_value(job->args, "--out");
    if (!out) return cli_usage(job->verb, "data show needs --out FILE, the PNG file to write");
    config.i_epoch = job->i_epoch;
    if (stk_dataset_sheet(job->dataset, &config, &sheet, out, &info) != STK_OK) return cli_fail();
    cli_printf("%s: %s samples of epoch %s, %lld x %lld pixels%s\n", cli_shown(out), cli_count(info.n_samples, n),
               cli_count(job->i_epoch, epoch), (long long)info.width, (long long)info.height,
               info.undone ? ""
                           : "; their values are spread from black to white, as the stages do not tell their range");
    return CLI_OK;
}
