/* stoker pack */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "stoker/pack.h"
#include "stoker/sources.h"

static const cli_option options[] = {{"--out", "DIR", "where to write; needed"},
                                     {"--shard-size", "MIB", "about so large is a shard, in MiB; default: 256"},
                                     {"--verify", "DIR", "reads a pack and compares its checksums, instead of packing"},
                                     {"--quiet", NULL, "prints errors only"},
                                     {"--json", NULL, "prints one line of JSON"},
                                     {NULL, NULL, NULL}};

typedef struct pack_job {
    const cli_args *args;
    bool quiet, json, terminal, verifies;
    double start_s;
} pack_job;

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    stopped = number;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool show(void *user, const stk_pack_progress *p)
{
    const pack_job *job = user;
    char done[CLI_TEXT], all[CLI_TEXT], bytes[CLI_TEXT], left[CLI_TEXT];
    int64_t n_new = p->n_done - p->n_resumed;
    double share = p->n_records ? (double)p->n_done / (double)p->n_records : 1, s = seconds_now() - job->start_s;
    if (job->terminal && !job->quiet && !job->json) {
        double left_s = n_new > 0 ? s * (double)(p->n_records - p->n_done) / (double)n_new : 0;
        if (job->verifies)
            printf("\r%3.0f %%  %s of %s", 100 * share, cli_bytes((double)p->n_done, done),
                   cli_bytes((double)p->n_records, all));
        else
            printf("\r%3.0f %%  %s of %s images, %s", 100 * share, cli_count(p->n_done, done),
                   cli_count(p->n_records, all), cli_bytes((double)p->n_bytes, bytes));
        printf("  %s left\033[K%s", cli_duration(left_s, left), p->n_done == p->n_records ? "\n" : "");
        fflush(stdout);
    }
    return !stopped;
}

static void print_bad(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "stoker: %s\n", text);
}

static void print_result(const pack_job *job, const char *folder, const stk_pack_progress *p)
{
    char n[CLI_TEXT], bytes[CLI_TEXT], time_text[CLI_TEXT];
    double s = seconds_now() - job->start_s;
    if (job->json) {
        printf("{\"folder\": ");
        cli_json_text(stdout, folder);
        printf(", \"shards\": %d, \"bytes\": %lld, \"seconds\": %.3f", p->n_shards, (long long)p->n_bytes, s);
        if (!job->verifies)
            printf(", \"records\": %lld, \"resumed\": %lld", (long long)p->n_records, (long long)p->n_resumed);
        printf("}\n");
    } else if (!job->quiet && job->verifies) {
        printf("%s is whole: %d shard%s, %s in %s\n", folder, p->n_shards, p->n_shards == 1 ? "" : "s",
               cli_bytes((double)p->n_bytes, bytes), cli_duration(s, time_text));
    } else if (!job->quiet) {
        printf("packed %s images into %d shard%s of %s: %s in %s; use it in place of the folder\n",
               cli_count(p->n_records, n), p->n_shards, p->n_shards == 1 ? "" : "s", folder,
               cli_bytes((double)p->n_bytes, bytes), cli_duration(s, time_text));
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* A folder of class folders, any other folder or pattern of images, or tar shards. */
static stk_dataset *open_source(const char *source)
{
    if (ends_with(source, ".tar") || ends_with(source, ".tar.gz") || ends_with(source, ".tgz"))
        return stk_dataset_tar(&source, 1, NULL, 0);
    stk_dataset *dataset = stk_dataset_images(source);
    if (stk_dataset_status(dataset) == STK_OK) return dataset;
    stk_dataset *files = stk_dataset_files(&source, 1, STK_LABELS_NONE, NULL);
    /* Where neither will do, the folder of classes is what most people mean. */
    stk_dataset *kept = stk_dataset_status(files) == STK_OK ? files : dataset;
    stk_dataset_free(kept == files ? dataset : files);
    return kept;
}

static int finish(const pack_job *job, stk_status status, const char *folder, const stk_pack_progress *progress)
{
    if (status == STK_OK) {
        print_result(job, folder, progress);
        return CLI_OK;
    }
    if (job->terminal && !job->quiet && !job->json) printf("\n");
    if (status != STK_INTERRUPTED) return cli_fail();
    if (!job->quiet && !job->verifies)
        printf("stopped; the same command goes on after %d whole shards\n", progress->n_shards);
    return 128 + (stopped ? (int)stopped : SIGINT);
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    int64_t mib;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    const char *out = cli_value(&args, "--out"), *verify = cli_value(&args, "--verify");
    if (verify ? args.n_words != 0 || out : args.n_words != 1 || !out)
        return cli_usage(verb, "pack takes one source and --out DIR, or --verify DIR alone");
    if (!cli_number(&args, "--shard-size", 1, 1 << 20, 256, &mib)) return CLI_USAGE;
    pack_job job = {.args = &args,
                    .quiet = cli_has(&args, "--quiet"),
                    .json = cli_has(&args, "--json"),
                    .terminal = isatty(STDOUT_FILENO),
                    .verifies = verify != NULL,
                    .start_s = seconds_now()};
    stk_pack_options pack = {.shard_bytes = mib << 20, .on_progress = show, .on_bad = print_bad, .user = &job};
    stk_pack_progress progress;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (verify) return finish(&job, stk_pack_verify(verify, &pack, &progress), verify, &progress);
    stk_dataset *dataset = open_source(args.word[0]);
    int code = finish(&job, stk_pack_write(dataset, out, &pack, &progress), out, &progress);
    stk_dataset_free(dataset);
    return code;
}

const cli_verb cli_pack = {"pack", "SOURCE --out DIR [OPTION...], or --verify DIR",
                           "Packs image files into shards that read faster. The source is a folder of class folders, a "
                           "folder or pattern of images, or a tar file; the pack takes its place in a recipe.",
                           options, run};
