/* stoker report */
#include <errno.h>
#include <fcntl.h>
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
static bool may_replace(const char *file, const char *magic)
{
    char found[8] = "";
    struct stat info;
    if (stat(file, &info) != 0 || info.st_size == 0) return true;
    FILE *opened = S_ISREG(info.st_mode) ? fopen(file, "re") : NULL;
    size_t n = opened ? fread(found, 1, strlen(magic), opened) : 0;
    if (opened) fclose(opened);
    if (n > 0 && !memcmp(found, magic, strlen(magic))) return true;
    cli_error("'%s' is there and of another kind: it is not replaced; name another file, or remove it", file);
    return false;
}

/* Has the first browser that is there write the file; 127: none is. */
static int run_browser(const char *html, int n_runs, const char *option, const char *file, const char **browser)
{
    static const char *const browsers[] = {"chromium", "chromium-browser", "google-chrome", "chrome"};
    char absolute[PATH_BYTES], url[PATH_BYTES + 8], target[PATH_BYTES + 64], size[64];
    if (!realpath(html, absolute)) return 126;
    snprintf(url, sizeof(url), "file://%s", absolute);
    snprintf(target, sizeof(target), "%s=%s", option, file);
    /* Longer than pages are, as Chromium does not tell their length; what is left stays empty. */
    snprintf(size, sizeof(size), "--window-size=1240,%d", 2000 + 3800 * n_runs);
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

/* option: "--screenshot" or "--print-to-pdf". What is at file stays until the new one is whole. */
static int print_page(const char *html, int n_runs, const char *option, const char *file)
{
    char temporary[PATH_BYTES + 16];
    const char *browser = "";
    struct stat info;
    mode_t mask = umask(0);
    (void)umask(mask);
    if (!may_replace(file, strstr(option, "pdf") ? "%PDF" : "\x89PNG")) return CLI_FAILED;
    /* Chromium tells the format by the ending. */
    int n = snprintf(temporary, sizeof(temporary), "%s.XXXXXX%s", file, strstr(option, "pdf") ? ".pdf" : ".png");
    int fd = n < (int)sizeof(temporary) ? mkostemps(temporary, 4, O_CLOEXEC) : -1;
    if (fd < 0) {
        cli_error("cannot write '%s': %s", file, strerror(errno));
        return CLI_FAILED;
    }
    close(fd);
    int code = run_browser(html, n_runs, option, temporary, &browser);
    bool ok = code != 127 && stat(temporary, &info) == 0 && info.st_size > 0 && chmod(temporary, 0666 & ~mask) == 0 &&
              rename(temporary, file) == 0;
    if (ok) return CLI_OK;
    unlink(temporary);
    if (code != 127)
        cli_error("'%s' wrote no '%s'", browser, file);
    else
        cli_error("no Chromium to make '%s' with: apt install chromium, or print '%s' from any browser", file, html);
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
