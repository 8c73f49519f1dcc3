/* The machine's C compiler: which one, and a run of it. See codegen.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cpu/codegen/codegen.h"

extern char **environ;

enum { MOST_OUTPUT = 1 << 16 };

/* --- running a program --- */

/* The child's first three files: nothing to read, both outputs into the pipe; no signal is blocked in it. */
static int spawn(char *const argv[], int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    if ((error = posix_spawnattr_init(&attributes))) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    if (!error) error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, output, 2);
    if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (!error) error = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* All of it is read, so that the child never waits; the beginning is kept. */
static void read_output(int fd, stk_text *out)
{
    char buffer[4096];
    ssize_t n;
    while ((n = read(fd, buffer, sizeof(buffer))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && out->n < MOST_OUTPUT) stk_text_add_bytes(out, buffer, (size_t)n);
}

/* Runs argv[0], found along PATH, to its end. *exit_code: below 0 where a signal ended it. Returns errno's kind of
 * number where it could not be run. */
static int run(char *const argv[], stk_text *output, int *exit_code)
{
    int ends[2], wait_status = 0;
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) < 0) return errno;
    int error = spawn(argv, ends[1], &pid);
    close(ends[1]);
    if (!error) {
        read_output(ends[0], output);
        while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
        }
    }
    close(ends[0]);
    *exit_code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    return error;
}

/* --- finding it --- */

/* Words at spaces, as make takes CC: "ccache gcc". */
static stk_status split(const char *command, stk_compiler *out)
{
    if (strlen(command) >= sizeof(out->text)) return stk_fail(STK_INVALID, "the compiler in CC is too long");
    snprintf(out->text, sizeof(out->text), "%s", command);
    out->n_words = 0;
    char *rest = NULL;
    for (char *word = strtok_r(out->text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (out->n_words == STK_COMPILER_WORDS) return stk_fail(STK_INVALID, "the compiler in CC has too many words");
        out->word[out->n_words++] = word;
    }
    out->word[out->n_words] = NULL;
    return out->n_words ? STK_OK : stk_fail(STK_INVALID, "CC names no compiler");
}

static stk_status try_command(const char *command, stk_compiler *out)
{
    char *argv[STK_COMPILER_WORDS + 2], version[] = "--version";
    int exit_code;
    STK_RETURN_IF_ERROR(split(command, out));
    memcpy(argv, out->word, (size_t)out->n_words * sizeof(*argv));
    argv[out->n_words] = version;
    argv[out->n_words + 1] = NULL;
    stk_text_free(&out->version);
    int error = run(argv, &out->version, &exit_code);
    if (error) return stk_fail(STK_NOT_FOUND, "cannot run the compiler '%s': %s", command, stk_errno_text(error));
    if (exit_code) return stk_fail(STK_NOT_FOUND, "the compiler '%s --version' fails", command);
    return stk_text_status(&out->version);
}

stk_status stk_compiler_find(stk_compiler *out)
{
    static const char *const usual[] = {"cc", "gcc", "clang"};
    const char *wanted = getenv("CC");
    *out = (stk_compiler){0};
    if (wanted && wanted[0]) {
        stk_status status = try_command(wanted, out);
        return status == STK_OK ? status : stk_fail(status, "%s; set CC to a C compiler", stk_error_text());
    }
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        if (try_command(usual[i], out) == STK_OK) return STK_OK;
    return stk_fail(STK_NOT_FOUND, "there is no C compiler: install gcc, or set CC to one");
}

void stk_compiler_free(stk_compiler *compiler)
{
    stk_text_free(&compiler->version);
}

/* --- compiling --- */

/* The first line that says "error" or "failed" (the linker, with the reason), else the first one. */
static void find_complaint(const char *output, char *line, size_t bytes)
{
    const char *error = strstr(output, "error"), *failed = strstr(output, "failed");
    const char *at = error && (!failed || error < failed) ? error : failed ? failed : output;
    while (at > output && at[-1] != '\n')
        at--;
    snprintf(line, bytes, "%.*s", (int)strcspn(at, "\n"), at);
}

stk_status stk_compiler_run(const stk_compiler *compiler, const char *flags, const char *source, const char *object)
{
    enum { MOST = 64 };
    char words[1024], complaint[200], *argv[STK_COMPILER_WORDS + MOST + 4], *rest = NULL;
    int n = compiler->n_words, exit_code;
    stk_text output = {0};
    memcpy(argv, compiler->word, (size_t)n * sizeof(*argv));
    snprintf(words, sizeof(words), "%s", flags);
    for (char *word = strtok_r(words, " ", &rest); word && n < STK_COMPILER_WORDS + MOST;
         word = strtok_r(NULL, " ", &rest))
        argv[n++] = word;
    /* posix_spawn's argv is of char *, though nobody writes there. */
    argv[n++] = (char *)(uintptr_t)source;
    argv[n++] = (char[]){"-o"};
    argv[n++] = (char *)(uintptr_t)object;
    argv[n] = NULL;
    int error = run(argv, &output, &exit_code);
    find_complaint(stk_text_get(&output), complaint, sizeof(complaint));
    stk_text_free(&output);
    if (error) return stk_fail(STK_IO, "cannot run the compiler '%s': %s", argv[0], stk_errno_text(error));
    if (exit_code)
        return stk_fail(STK_UNSUPPORTED, "the compiler '%s' fails on '%s': %s", argv[0], source,
                        complaint[0]    ? complaint
                        : exit_code < 0 ? "a signal ended it"
                                        : "it says nothing");
    return STK_OK;
}
