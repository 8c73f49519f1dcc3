/* stoker index */
#include "cli.h"
#include "stoker/data/index.h"

static const cli_option options[] = {
    {"--threads", "N", "0, the default: as many as cores"},
    {"--every", "N",
     "entry points every N blocks of a row, too, and not only where it starts: crops "
     "are read a tenth faster, and the index takes 4 % of the files' size, with 8"},
    {"--memory", "MIB", "that files and entry points may take; default: a quarter of what is free"},
    {"--quiet", NULL, "prints errors only"},
    {"--json", NULL, "prints one line of JSON"},
    {NULL, NULL, NULL}};

typedef struct index_job {
    bool quiet, json, terminal;
    double start_s;
} index_job;

static bool show(void *user, const stk_index_progress *p)
{
    const index_job *job = user;
    if (job->terminal) cli_bar("files", p->n_done, p->n_files, p->n_kept, job->start_s);
    return !cli_stopped();
}

static void print_result(const index_job *job, const stk_index_progress *p)
{
    char n[CLI_TEXT], kept[CLI_TEXT], without[CLI_TEXT], bytes[CLI_TEXT], time_text[CLI_TEXT];
    double s = cli_now() - job->start_s;
    if (job->json) {
        printf("{\"index\": ");
        cli_json_text(stdout, p->path);
        printf(", \"files\": %lld, \"kept\": %lld, \"without\": %lld, \"bytes\": %lld, \"seconds\": %.3f}\n",
               (long long)p->n_files, (long long)p->n_kept, (long long)p->n_without, (long long)p->n_bytes, s);
        return;
    }
    if (job->quiet) return;
    cli_printf("%s: %s files, %s in %s", cli_shown(p->path), cli_count(p->n_files, n),
               cli_bytes((double)p->n_bytes, bytes), cli_duration(s, time_text));
    if (p->n_kept) cli_printf("; %s were in it already", cli_count(p->n_kept, kept));
    if (p->n_without) cli_printf("; %s have no entry points", cli_count(p->n_without, without));
    cli_printf("\n");
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static stk_index_progress progress;
    static char place[CLI_PATH];
    int64_t n_threads, every, memory_mib;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words != 1) return cli_usage(verb, "index takes one folder, and there are %d", args.n_words);
    if (!cli_number(&args, "--threads", 0, 256, 0, &n_threads)) return CLI_USAGE;
    if (!cli_number(&args, "--every", 1, 65535, 0, &every)) return CLI_USAGE;
    if (!cli_number(&args, "--memory", 1, 1 << 30, 0, &memory_mib)) return CLI_USAGE;
    index_job job = {.quiet = cli_has(&args, "--quiet"), .json = cli_has(&args, "--json"), .start_s = cli_now()};
    job.terminal = !job.quiet && !job.json && cli_is_terminal(stdout);
    cli_catch_stop();
    stk_index_options how = {.n_threads = (int)n_threads,
                             .every = (int)every,
                             .memory_bytes = (size_t)memory_mib << 20,
                             .on_progress = show,
                             .user = &job};
    stk_status status = stk_index_folder(cli_find_data(args.word[0], place), &how, &progress);
    if (job.terminal) cli_clear_bar();
    if (status == STK_OK) {
        print_result(&job, &progress);
        return CLI_OK;
    }
    if (status != STK_INTERRUPTED) return cli_fail();
    char n[CLI_TEXT];
    if (!job.quiet && !job.json)
        cli_printf("stopped; the same command goes on after %s files\n", cli_count(progress.n_done, n));
    return cli_stop_code();
}

const cli_verb cli_index = {"index",
                            "DIR [OPTION...]",
                            "Makes an index of JPEG files, so that crops of them are read faster. The files stay as "
                            "they are, and so does every pixel; recipes use the index that lies in a folder.",
                            options,
                            run,
                            .makes_files = true};
