/* stoker get */
#include <string.h>
#include <unistd.h>

#include "get.h"
#include "stoker/data/digits.h"
#include "stoker/data/synthetic.h"

static const cli_option options[] = {{"--out", "DIR", "where to write; default: data/NAME"},
                                     {"--mirror", "WHERE", "an address or folder that has the files by their names"},
                                     {"--checksum", "SUM", "of an address: sha256:..., md5:..., or none"},
                                     {"--train", "N", "made here: samples to learn from; default: as the list says"},
                                     {"--test", "N", "made here: samples to test with; likewise"},
                                     {"--seed", "N", "made here: of every random choice; default: 0, of digits 1"},
                                     {"--size", "N", "digits: pixels of a side; default: 28"},
                                     {"--threads", "N", "digits: 0, the default: as many as cores"},
                                     {"--cuda", "12|13", "cuda-libs: of that CUDA; default: as the driver here"},
                                     {"--yes", NULL, "cuda-libs: downloads without asking"},
                                     {"--list", NULL, "lists what there is to get"},
                                     {NULL, NULL, NULL}};

/* What is shown while files are made or come in, where there is a terminal to see it. */
typedef struct get_view {
    bool terminal;
    const char *name; /* of the file that comes */
    int64_t n_before; /* what there was of it when it began */
    double start_s;
} get_view;

static bool show(void *user, int64_t done, int64_t total)
{
    const get_view *view = user;
    if (view->terminal) cli_bar("pictures", done, total, 0, view->start_s);
    return !cli_stopped();
}

static bool goes_on(void *user)
{
    (void)user;
    return !cli_stopped();
}

/* After what makes a folder here has failed, perhaps because it was stopped. */
static int fail_made(const char *out, stk_status status)
{
    if (status != STK_INTERRUPTED) return cli_fail();
    if (strstr(stk_error_text(), "is left over")) cli_warn("%s", stk_error_text());
    cli_printf("stopped; nothing is kept of '%s', and the same command makes it again\n", cli_shown(out));
    return cli_stop_code();
}

/* After a download. Archives come to a folder of their own first. */
static int fail_download(const stk_download_set *set, const char *out, stk_status status)
{
    char kept[CLI_PATH + 16];
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/')
        n--;
    if (status != STK_INTERRUPTED) return cli_fail();
    snprintf(kept, sizeof(kept), "%.*s%s", (int)n, out, set->form == STK_DOWNLOAD_FILES ? "" : ".download");
    if (access(kept, F_OK) == 0)
        cli_printf("stopped; what has come is kept in '%s', and the same command goes on from there\n",
                   cli_shown(kept));
    else
        cli_printf("stopped; nothing has come yet, and the same command begins again\n");
    return cli_stop_code();
}

static int get_digits(const cli_args *args)
{
    stk_digits_config config = stk_digits_config_default();
    int64_t seed, size, threads;
    const char *out = cli_value(args, "--out");
    get_view view = {.terminal = cli_is_terminal(stdout), .start_s = cli_now()};
    char a[CLI_TEXT], b[CLI_TEXT];
    if (!cli_number(args, "--train", 1, 10000000, config.n_train, &config.n_train) ||
        !cli_number(args, "--test", 0, 10000000, config.n_test, &config.n_test) ||
        !cli_number(args, "--seed", 0, INT64_MAX, (int64_t)config.seed, &seed) ||
        !cli_number(args, "--size", 16, 512, config.size, &size) ||
        !cli_number(args, "--threads", 0, 4096, config.n_threads, &threads))
        return CLI_USAGE;
    config.seed = (uint64_t)seed;
    config.size = (int)size;
    config.n_threads = (int)threads;
    if (!out) out = "data/digits";
    cli_catch_stop();
    stk_status status = stk_digits_generate(out, &config, show, &view);
    if (view.terminal) cli_clear_bar();
    if (status != STK_OK) return fail_made(out, status);
    cli_printf("wrote %s + %s pictures to %s\n", cli_count(config.n_train, a), cli_count(config.n_test, b), out);
    return CLI_OK;
}

/* The set of that name among those that are made here; false: there is none. */
static bool is_made(const char *name)
{
    const char *other;
    for (int i = 0; (other = stk_synthetic_name(i, NULL, NULL)); i++)
        if (!strcmp(name, other)) return true;
    return false;
}

static int get_made(const cli_args *args)
{
    char default_value[CLI_PATH];
    int64_t seed;
    stk_synthetic_config config = {0};
    const char *name = args->word[0], *out = cli_value(args, "--out");
    if (cli_value(args, "--size") || cli_value(args, "--threads") || cli_value(args, "--mirror") ||
        cli_value(args, "--checksum"))
        return cli_usage(args->verb, "'%s' takes --out, --train, --test and --seed only", name);
    if (!cli_number(args, "--train", 1, 10000000, 0, &config.n_train) ||
        !cli_number(args, "--test", 1, 10000000, 0, &config.n_test) ||
        !cli_number(args, "--seed", 0, INT64_MAX, 0, &seed))
        return CLI_USAGE;
    config.seed = (uint64_t)seed;
    snprintf(default_value, sizeof(default_value), "data/%s", name);
    if (!out) out = default_value;
    config.goes_on = goes_on;
    cli_catch_stop();
    stk_status status = stk_synthetic_write(name, out, &config);
    if (status != STK_OK) return fail_made(out, status);
    cli_printf("wrote '%s' to %s; README.txt there says what can be learned from it\n", name, out);
    return CLI_OK;
}

static void print_made(void)
{
    char a[CLI_TEXT], b[CLI_TEXT];
    const char *name, *about;
    stk_synthetic_config default_value;
    for (int i = 0; (name = stk_synthetic_name(i, &about, &default_value)); i++)
        cli_printf("%s: %s; made here: %s + %s samples\n", name, about, cli_count(default_value.n_train, a),
                   cli_count(default_value.n_test, b));
}

static void print_set(const stk_download_set *set)
{
    char bytes[CLI_TEXT];
    int64_t sum = 0;
    for (int k = 0; k < set->n_files; k++)
        sum += set->file[k].n_bytes;
    cli_printf("\n%s: %s\n", set->name, set->about);
    cli_printf("  download  %s; licence: %s\n", sum ? cli_bytes((double)sum, bytes) : "size not known", set->licence);
    if (set->recipe) cli_printf("  read by   source: %s\n", set->recipe);
    for (int k = 0; k < set->n_files; k++)
        cli_printf("  from      %s\n            %s\n", set->file[k].url, set->file[k].checksum);
}

static void print_list(void)
{
    const stk_download_set *set;
    cli_only_prints();
    cli_printf("digits: handwritten-like digits, made here: 60,000 + 10,000 grey JPEG files of 28 x 28 pixels\n"
               "  read by   source: {images: digits/train}\n");
    print_made();
    for (int i = 0; (set = stk_download_at(i)); i++)
        print_set(set);
    cli_printf("\ncuda-libs: NVIDIA's libraries that the device 'cuda' lacks here, from PyPI, to Stoker's cache\n");
    cli_printf(
        "\nRecipes look for data in their folder, the working folder, $STOKER_DATA and data/, where get writes.\n"
        "Any other file or archive: stoker get ADDRESS --checksum sha256:...\n");
}

/* A line that moves for each file, and one that stays when it is there. */
static bool show_bytes(void *user, const char *name, int64_t done, int64_t total)
{
    get_view *view = user;
    bool unpacking = !strcmp(name, "unpacking");
    char text[CLI_TEXT], parts[2][256 + 3 * CLI_TEXT], a[CLI_TEXT], b[CLI_TEXT];
    const char *part[2] = {parts[0], parts[1]};
    if (!view->name || strcmp(view->name, name)) *view = (get_view){view->terminal, name, done, cli_now()};
    if (done >= total) {
        if (view->terminal) cli_clear_bar();
        cli_printf("%s  %s%s\n", name, unpacking ? cli_count(total, text) : cli_bytes((double)total, text),
                   unpacking ? " files" : "");
        fflush(stdout);
        return !cli_stopped();
    }
    if (!view->terminal) return !cli_stopped();
    snprintf(parts[0], sizeof(parts[0]), "%.250s  %s of %s%s", name,
             unpacking ? cli_count(done, a) : cli_bytes((double)done, a),
             unpacking ? cli_count(total, b) : cli_bytes((double)total, b), unpacking ? " files" : "");
    int64_t n_new = done - view->n_before;
    if (n_new > 0)
        snprintf(parts[1], sizeof(parts[1]), "  %s left",
                 cli_duration((cli_now() - view->start_s) * (double)(total - done) / (double)n_new, text));
    cli_draw(part, n_new > 0 ? 2 : 1, total > 0 ? (double)done / (double)total : 1);
    return !cli_stopped();
}

int get_fetch(const stk_download_set *set, const char *out, const char *mirror)
{
    get_view view = {.terminal = cli_is_terminal(stdout)};
    cli_printf("%s: %s; licence: %s\n", set->name, set->about, set->licence);
    cli_catch_stop();
    stk_status status = stk_download(set, out, mirror, show_bytes, &view);
    if (status == STK_INTERRUPTED && view.terminal) cli_clear_bar();
    if (status != STK_OK) return fail_download(set, out, status);
    cli_printf("%s is in %s\n", set->name, out);
    return CLI_OK;
}

static int get_files(const cli_args *args, const stk_download_set *set)
{
    char default_value[CLI_PATH];
    const char *out = cli_value(args, "--out");
    snprintf(default_value, sizeof(default_value), "data/%s", set->name);
    int code = get_fetch(set, out ? out : default_value, cli_value(args, "--mirror"));
    if (code == CLI_OK && set->recipe) cli_printf("recipes read it by   source: %s\n", set->recipe);
    return code;
}

/* The last part of an address without its query, and how long it is without the ending of an archive; 0: none. */
static bool split_address(const char *address, char file[256], size_t *n_stem, bool *is_archive)
{
    static const char *const endings[] = {".tar.gz", ".tgz", ".tar", ".zip"};
    size_t n_path = strcspn(address, "?#"), n = 0;
    while (n < n_path && address[n_path - n - 1] != '/')
        n++;
    if (n == 0 || n > 200 || address[n_path - n] == '.' || !strstr(address, "://")) return false;
    snprintf(file, 256, "%.*s", (int)n, address + n_path - n);
    *n_stem = n;
    *is_archive = false;
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]) && !*is_archive; i++) {
        size_t n_end = strlen(endings[i]);
        *is_archive = n > n_end && !strcmp(file + n - n_end, endings[i]);
        if (*is_archive) *n_stem = n - n_end;
    }
    return true;
}

static bool is_checksum(const char *text)
{
    size_t n = !strncmp(text, "sha256:", 7) ? 64 : !strncmp(text, "md5:", 4) ? 32 : 0;
    const char *digits = strchr(text, ':');
    return n && strlen(digits + 1) == n && strspn(digits + 1, "0123456789abcdef") == n;
}

/* Any file, or an archive, which is unpacked. */
static int get_address(const cli_verb *verb, const cli_args *args, const char *address)
{
    char file[256], name[256];
    size_t n_stem;
    bool is_archive;
    const char *checksum = cli_value(args, "--checksum");
    if (strncmp(address, "http://", 7) && strncmp(address, "https://", 8) && strncmp(address, "s3://", 5) &&
        strncmp(address, "gs://", 5))
        return cli_usage(verb, "'%s' is no address: they begin with http://, https://, s3:// or gs://", address);
    if (!split_address(address, file, &n_stem, &is_archive))
        return cli_usage(verb, "'%s' does not end in the name of a file", address);
    if (!checksum)
        return cli_usage(verb, "an address needs --checksum sha256:..., md5:..., or none where nobody tells one");
    if (strcmp(checksum, "none") && !is_checksum(checksum))
        return cli_usage(verb, "--checksum is sha256: and 64 digits, md5: and 32, in lower case, or none; not '%s'",
                         checksum);
    snprintf(name, sizeof(name), "%.*s", (int)n_stem, file);
    stk_download_file from = {.name = file, .url = address, .checksum = strcmp(checksum, "none") ? checksum : NULL};
    stk_download_set set = {.name = name,
                            .about = is_archive ? "an archive, which is unpacked" : "a file",
                            .licence = "its publisher's",
                            .file = &from,
                            .n_files = 1,
                            .form = is_archive ? STK_DOWNLOAD_ARCHIVE : STK_DOWNLOAD_FILES};
    return get_files(args, &set);
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    enum { MOST = 64 };
    static cli_args args;
    const char *names[MOST] = {"digits", "cuda-libs"};
    const stk_download_set *set;
    int n = 2;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (cli_has(&args, "--list")) {
        print_list();
        return CLI_OK;
    }
    if (args.n_words != 1) return cli_usage(verb, "get takes one name, and there are %d", args.n_words);
    if (strstr(args.word[0], "://")) return get_address(verb, &args, args.word[0]);
    if (!strcmp(args.word[0], "digits")) return get_digits(&args);
    if (!strcmp(args.word[0], "cuda-libs")) return get_cuda_libs(&args);
    if (is_made(args.word[0])) return get_made(&args);
    for (int i = 0; n < MOST && (names[n] = stk_synthetic_name(i, NULL, NULL)); i++)
        n++;
    for (int i = 0; (set = stk_download_at(i)) && n < MOST; i++) {
        if (!strcmp(args.word[0], set->name)) return get_files(&args, set);
        names[n++] = set->name;
    }
    const char *nearest = cli_nearest(args.word[0], names, n);
    if (nearest) return cli_usage(verb, "no data set '%s' (did you mean '%s'?)", args.word[0], nearest);
    return cli_usage(verb, "no data set '%s'; stoker get --list names them", args.word[0]);
}

const cli_verb cli_get = {
    "get",
    "DATASET|ADDRESS [OPTION...]",
    "Makes or downloads a data set, or 'cuda-libs': what GPUs of NVIDIA need. Downloads go on where they were cut off, "
    "and are checked; "
    "archives (.tar.gz, .tgz, .tar, .zip) are unpacked, to a folder that appears when it is whole.",
    options,
    run,
    .makes_files = true};
