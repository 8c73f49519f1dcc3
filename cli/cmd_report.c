/* stoker report */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "stoker/report.h"

enum { PATH_BYTES = 4096 };

static const cli_option options[] = {
    {"--out", "FILE", "the HTML file; default: report.html in the run's folder, or here for several runs"},
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

/* Only a picture is replaced by a picture. */
static bool can_write(const char *file, const char *magic)
{
    char found[8] = "";
    struct stat info;
    FILE *opened = fopen(file, "ae");
    if (!opened) {
        fprintf(stderr, "stoker: cannot write '%s': %s\n", file, strerror(errno));
        return false;
    }
    fclose(opened);
    opened = stat(file, &info) == 0 && S_ISREG(info.st_mode) ? fopen(file, "re") : NULL;
    size_t n = opened ? fread(found, 1, strlen(magic), opened) : 0;
    if (opened) fclose(opened);
    if (n == 0 || !memcmp(found, magic, strlen(magic))) return true;
    fprintf(stderr, "stoker: '%s' is there and of another kind: it is not replaced; name another file, or remove it\n",
            file);
    return false;
}

/* option: "--screenshot" or "--print-to-pdf". */
static int print_page(const char *html, int n_runs, const char *option, const char *file)
{
    static const char *const browsers[] = {"chromium", "chromium-browser", "google-chrome", "chrome"};
    char absolute[PATH_BYTES], url[PATH_BYTES + 8], target[PATH_BYTES + 32], size[64];
    if (!realpath(html, absolute)) return cli_usage(NULL, "cannot find '%s'", html);
    snprintf(url, sizeof(url), "file://%s", absolute);
    snprintf(target, sizeof(target), "%s=%s", option, file);
    /* Longer than pages are, as Chromium does not tell their length; what is left stays empty. */
    snprintf(size, sizeof(size), "--window-size=1240,%d", 2000 + 3800 * n_runs);
    if (!can_write(file, strstr(option, "pdf") ? "%PDF" : "\x89PNG")) return CLI_FAILED;
    unlink(file);
    for (size_t i = 0; i < sizeof(browsers) / sizeof(browsers[0]); i++) {
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
        if (run_quietly(argv) == 127) continue;
        if (access(file, R_OK) == 0) return CLI_OK;
        fprintf(stderr, "stoker: '%s' wrote no '%s'\n", browsers[i], file);
        return CLI_FAILED;
    }
    fprintf(stderr, "stoker: no Chromium to make '%s' with: apt install chromium, or print '%s' from any browser\n",
            file, html);
    return CLI_FAILED;
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
    if (stk_report_write(args.word, args.n_words, html) != STK_OK) return cli_fail();
    printf("report  %s\n", html);
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
