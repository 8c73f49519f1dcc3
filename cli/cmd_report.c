/* stoker report */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/new_file.h"
#include "bench/page.h"
#include "bench/table.h"
#include "cli.h"
#include "stoker/observe/report.h"

enum { PATH_BYTES = 4096 };

static const cli_option options[] = {{"--bench", NULL, "the folders are results of 'stoker bench'"},
                                     {"--prices", "FILE",
                                      "with --bench: what the work costs by this file of prices (stoker bench cost), "
                                      "on the page or in Markdown"},
                                     {"--out", "FILE",
                                      "the HTML file, or with --bench a table by the ending .md, .csv or .json; "
                                      "default: report.html in the run's folder, or here for several runs"},
                                     {"--png", "FILE", "a picture of it too, through Chromium where that is installed"},
                                     {"--pdf", "FILE", "the same as PDF"},
                                     {NULL, NULL, NULL}};

/* Runs a command and waits; 127: there is no such program. Its output goes nowhere. */
static int run_quietly(char *const argv[])
{
    int code;
    fflush(NULL); /* or the child would print it again */
    pid_t child = fork();
    if (child < 0) return 127;
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(126);
        execvp(argv[0], argv);
        _exit(127);
    }
    while (waitpid(child, &code, 0) < 0)
        if (errno != EINTR) return 127;
    return WIFEXITED(code) ? WEXITSTATUS(code) : 126;
}

/* A file's address: what is not plain in a path would be a question, a fragment or an escape. False: too long. */
static bool make_url(const char *path, char *out, size_t bytes)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    size_t n = (size_t)snprintf(out, bytes, "file://");
    for (const char *p = path; *p; p++) {
        if (n + 4 > bytes) return false;
        if (strchr(plain, *p))
            out[n++] = *p;
        else
            n += (size_t)snprintf(out + n, bytes - n, "%%%02X", (unsigned)(unsigned char)*p);
    }
    out[n] = 0;
    return true;
}

/* Has the first browser that is there write the file; 127: none is. */
static int run_browser(const char *html, int n_runs, const char *option, const char *file, const char **browser)
{
    static const char *const browsers[] = {"chromium", "chromium-browser", "google-chrome", "chrome"};
    char absolute[PATH_BYTES], url[3 * PATH_BYTES + 8], target[PATH_BYTES + 64], size[64];
    if (!realpath(html, absolute) || !make_url(absolute, url, sizeof(url))) return 126;
    snprintf(target, sizeof(target), "%s=%s", option, file);
    /* Longer than pages are, as Chromium does not tell their length; what is left stays empty. */
    snprintf(size, sizeof(size), "--window-size=1240,%d", 2000 + 4900 * n_runs);
    int code = 127;
    for (size_t i = 0; code == 127 && i < sizeof(browsers) / sizeof(browsers[0]); i++) {
        *browser = browsers[i];
        char *argv[] = {(char *)browsers[i],
                        "--headless",
                        "--no-sandbox",
                        "--disable-gpu",
                        "--disable-dev-shm-usage",
                        "--no-first-run",
                        "--disable-background-networking",
                        "--hide-scrollbars",
                        "--no-pdf-header-footer",
                        size,
                        target,
                        url,
                        NULL};
        code = run_quietly(argv);
    }
    return code;
}

/* Has it written inside the folder, where nothing else is. Chromium tells the format by the ending. */
static int print_inside(const char *folder, const char *html, int n_runs, const char *option, const char *file)
{
    char inside[STK_TEMPORARY_PATH + 16];
    const char *browser = "";
    struct stat info;
    snprintf(inside, sizeof(inside), "%s/page%s", folder, strstr(option, "pdf") ? ".pdf" : ".png");
    /* Made here, or it would have the mode that Chromium likes. */
    int fd = open(inside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        cli_error("cannot write '%s': %s", file, strerror(errno));
        return CLI_FAILED;
    }
    close(fd);
    int code = run_browser(html, n_runs, option, inside, &browser);
    if (code != 127 && stat(inside, &info) == 0 && info.st_size > 0 && rename(inside, file) == 0) return CLI_OK;
    if (code != 127)
        cli_error("'%s' wrote no '%s'", browser, file);
    else
        cli_error("no Chromium to make '%s' with: apt install chromium, or print '%s' from any browser", file, html);
    return CLI_FAILED;
}

/* option: "--screenshot" or "--print-to-pdf". What is at file stays until the new one is whole. */
static int print_page(const char *html, int n_runs, const char *option, const char *file)
{
    char folder[STK_TEMPORARY_PATH];
    int fd;
    bool pdf = strstr(option, "pdf") != NULL;
    if (stk_new_file_check_regular(file) != STK_OK ||
        stk_new_file_check_kind(file, pdf ? "a PDF file" : "a PNG file", 0, pdf ? "%PDF" : "\x89PNG", 4) != STK_OK ||
        stk_temporary_folder(file, folder, &fd) != STK_OK)
        return cli_fail();
    int code = print_inside(folder, html, n_runs, option, file);
    (void)stk_tree_remove(folder);
    close(fd);
    return code;
}

/* The page of results that 'stoker bench' wrote. */
static stk_status write_bench(const cli_args *args, const char *html)
{
    static stk_bench_kept kept[STK_BENCH_MOST_PAGE];
    static stk_bench_prices told;
    const char *path = cli_value(args, "--prices");
    const stk_bench_prices *prices = path ? &told : NULL;
    stk_status status = STK_OK;
    int n = 0;
    if (args->n_words > STK_BENCH_MOST_PAGE)
        return stk_fail(STK_INVALID, "a page is of 1 to %d results, not %d", STK_BENCH_MOST_PAGE, args->n_words);
    for (; n < args->n_words && status == STK_OK; n++)
        status = stk_bench_kept_read(args->word[n], &kept[n]);
    if (status == STK_OK && prices) status = stk_bench_prices_read(path, &told);
    if (status == STK_OK && prices) status = stk_bench_prices_fill(&told, kept, n);
    if (status == STK_OK)
        status = stk_bench_is_table(html) ? stk_bench_table_write(kept, n, prices, html)
                                          : stk_bench_page_write(kept, n, prices, html);
    if (prices) stk_bench_prices_free(&told);
    for (int i = 0; i < n; i++)
        stk_bench_kept_free(&kept[i]);
    return status;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    char html[PATH_BYTES];
    const char *out, *png, *pdf;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words < 1) return cli_usage(verb, "report needs a run's folder: stoker report RUN");
    out = cli_value(&args, "--out");
    png = cli_value(&args, "--png");
    pdf = cli_value(&args, "--pdf");
    int n = out                 ? snprintf(html, sizeof(html), "%s", out)
            : args.n_words == 1 ? snprintf(html, sizeof(html), "%s/report.html", args.word[0])
                                : snprintf(html, sizeof(html), "report.html");
    if (n >= (int)sizeof(html)) return cli_usage(verb, "the file's name is too long");
    if (cli_has(&args, "--bench") && stk_bench_is_table(html) && (png || pdf))
        return cli_usage(verb, "a table is no page: '--png' and '--pdf' go with an HTML file");
    if (cli_value(&args, "--prices") && !cli_has(&args, "--bench"))
        return cli_usage(verb, "option '--prices' goes with '--bench'");
    stk_status status =
        cli_has(&args, "--bench") ? write_bench(&args, html) : stk_report_write(args.word, args.n_words, html);
    if (status != STK_OK) return cli_fail();
    cli_printf("report  %s\n", cli_shown(html));
    int code = CLI_OK;
    if (png) code = print_page(html, args.n_words, "--screenshot", png);
    if (pdf && code == CLI_OK) code = print_page(html, args.n_words, "--print-to-pdf", pdf);
    return code;
}

const cli_verb cli_report = {
    "report",
    "RUN [RUN...] [OPTION...]",
    "Writes what runs came to as one HTML file. It shows curves, where time and memory went, input by stage, kernels "
    "and what to change next, and needs no network.",
    options,
    run,
    .makes_files = true};
