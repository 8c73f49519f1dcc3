/* stoker pack */
#include <string.h>

#include "cli.h"
#include "stoker/data/pack.h"
#include "stoker/data/sources.h"
#include "stoker/train/run.h"

static const cli_option options[] = {
    {"--out", "DIR", "where to write; needed"},
    {"--shard-size", "MIB", "about so large is a shard, in MiB; default: 256"},
    {"--format", "tar|tfrecord", "of the shards; default: tar"},
    {"--baseline", NULL, "JPEGs that are read slowly, as progressive ones, become baseline; pixels and EXIF stay"},
    {"--shorter", "N", "makes images smaller whose shorter side is longer than N pixels"},
    {"--quality", "Q", "makes all images JPEGs of this quality, 1 to 100; default: as they are, 90 for smaller ones"},
    {"--every", "N", "entry points of JPEGs every N blocks too: crops are read a tenth faster for 4 % more, with 8"},
    {"--split", "train|valid|test", "of a recipe; default: train"},
    {"--set", "KEY=VALUE", "of a recipe: changes a key"},
    {"--verify", "DIR", "reads a pack and compares its checksums, instead of packing"},
    {"--quiet", NULL, "prints errors only"},
    {"--json", NULL, "prints one line of JSON"},
    {NULL, NULL, NULL}};

typedef struct pack_job {
    const cli_args *args;
    bool quiet, json, terminal, verifies;
    double start_s;
} pack_job;

static bool show(void *user, const stk_pack_progress *p)
{
    const pack_job *job = user;
    if (job->terminal && !job->quiet && !job->json)
        cli_bar(job->verifies ? "bytes" : "images", p->n_done, p->n_records, p->n_resumed, job->start_s);
    return !cli_stopped();
}

static void print_bad(void *user, const char *text)
{
    (void)user;
    cli_error("%s", cli_shown(text));
}

static void print_result(const pack_job *job, const char *folder, const stk_pack_progress *p)
{
    char n[CLI_TEXT], bytes[CLI_TEXT], time_text[CLI_TEXT];
    double s = cli_now() - job->start_s;
    if (job->json) {
        printf("{\"folder\": ");
        cli_json_text(stdout, folder);
        printf(", \"shards\": %d, \"bytes\": %lld, \"seconds\": %.3f", p->n_shards, (long long)p->n_bytes, s);
        if (!job->verifies)
            printf(", \"records\": %lld, \"resumed\": %lld", (long long)p->n_records, (long long)p->n_resumed);
        printf("}\n");
    } else if (!job->quiet && job->verifies) {
        cli_printf("%s is whole: %d shard%s, %s in %s\n", folder, p->n_shards, p->n_shards == 1 ? "" : "s",
                   cli_bytes((double)p->n_bytes, bytes), cli_duration(s, time_text));
    } else if (!job->quiet) {
        cli_printf("packed %s images into %d shard%s of %s: %s in %s; use it in place of the folder\n",
                   cli_count(p->n_records, n), p->n_shards, p->n_shards == 1 ? "" : "s", folder,
                   cli_bytes((double)p->n_bytes, bytes), cli_duration(s, time_text));
    }
}

static bool is_recipe(const char *source)
{
    return cli_ends_with(source, ".yaml") || cli_ends_with(source, ".yml");
}

/* A folder of class folders, or any other folder or pattern of images. */
static stk_dataset *open_images(const char *source)
{
    stk_dataset *dataset = stk_dataset_images(source);
    stk_status status = stk_dataset_status(dataset);
    if (status == STK_OK || status == STK_NO_MEMORY) return dataset;
    stk_dataset *files = stk_dataset_files(&source, 1, STK_LABELS_NONE, NULL);
    /* Where neither will do, the folder of classes is what most people mean. */
    stk_dataset *kept = stk_dataset_status(files) == STK_OK ? files : dataset;
    stk_dataset_free(kept == files ? dataset : files);
    return kept;
}

/* NULL: a message is out. */
static stk_dataset *open_source(const cli_args *args)
{
    static char place[CLI_PATH];
    const char *source = cli_find_data(args->word[0], place), *split = cli_value(args, "--split");
    const char *sets[CLI_MOST_ARGS];
    stk_dataset *dataset;
    int n_sets = 0;
    if (!is_recipe(source)) return cli_is_tar(source) ? stk_dataset_tar(&source, 1, NULL, 0) : open_images(source);
    for (int i = 0; i < args->n_found; i++)
        if (!strcmp(args->found[i].option->name, "--set")) sets[n_sets++] = args->found[i].value;
    if (stk_recipe_source(source, sets, n_sets, split ? split : "train", &dataset) == STK_OK) return dataset;
    cli_fail();
    return NULL;
}

/* False: a message is out. */
static bool read_options(const cli_args *args, stk_pack_options *out)
{
    const char *format = cli_value(args, "--format");
    int64_t mib, quality, every;
    if (format && strcmp(format, "tar") && strcmp(format, "tfrecord")) {
        cli_usage(args->verb, "option '--format' must be tar or tfrecord, not '%s'", format);
        return false;
    }
    if (!cli_number(args, "--shard-size", 1, 1 << 20, 256, &mib) ||
        !cli_number(args, "--shorter", 1, 65500, 0, &out->shorter) ||
        !cli_number(args, "--quality", 1, 100, 0, &quality) || !cli_number(args, "--every", 1, 65535, 0, &every))
        return false;
    out->shard_bytes = mib << 20;
    out->quality = (int)quality;
    out->index_every = (int)every;
    out->tfrecord = format && !strcmp(format, "tfrecord");
    out->baseline = cli_has(args, "--baseline");
    if (is_recipe(args->word[0]) || (!cli_has(args, "--set") && !cli_has(args, "--split"))) return true;
    cli_usage(args->verb, "'--set' and '--split' are for recipes, and '%s' is none", args->word[0]);
    return false;
}

static int finish(const pack_job *job, stk_status status, const char *folder, const stk_pack_progress *progress)
{
    if (job->terminal && !job->quiet && !job->json) cli_clear_bar();
    if (status == STK_OK) {
        print_result(job, folder, progress);
        return CLI_OK;
    }
    if (status != STK_INTERRUPTED) return cli_fail();
    if (!job->quiet && !job->verifies)
        cli_printf("stopped; the same command goes on after %d whole shards\n", progress->n_shards);
    return cli_stop_code();
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    const char *out = cli_value(&args, "--out"), *verify = cli_value(&args, "--verify");
    if (verify ? args.n_words != 0 || out : args.n_words != 1 || !out)
        return cli_usage(verb, "pack takes one source and --out DIR, or --verify DIR alone");
    pack_job job = {.args = &args,
                    .quiet = cli_has(&args, "--quiet"),
                    .json = cli_has(&args, "--json"),
                    .terminal = cli_is_terminal(stdout),
                    .verifies = verify != NULL,
                    .start_s = cli_now()};
    stk_pack_options pack = {.on_progress = show, .on_bad = print_bad, .user = &job};
    stk_pack_progress progress;
    static char place[CLI_PATH];
    if (!verify && !read_options(&args, &pack)) return CLI_USAGE;
    cli_catch_stop();
    if (verify) {
        cli_only_prints();
        verify = cli_find_data(verify, place);
        return finish(&job, stk_pack_verify(verify, &pack, &progress), verify, &progress);
    }
    stk_dataset *dataset = open_source(&args);
    if (!dataset) return CLI_FAILED;
    int code = finish(&job, stk_pack_write(dataset, out, &pack, &progress), out, &progress);
    stk_dataset_free(dataset);
    return code;
}

const cli_verb cli_pack = {
    "pack",
    "SOURCE --out DIR [OPTION...], or --verify DIR",
    "Packs images into shards that read faster. The source is a folder of class folders, a folder "
    "or pattern of images, a tar file, or a recipe: what a part of it reads, without its order "
    "and stages, as TFRecord shards. The pack takes the folder's place in a recipe.",
    options,
    run,
    .makes_files = true};
