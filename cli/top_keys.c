#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "stoker/printable.h"
#include "top.h"

enum { LINE_BYTES = 512 };

char top_read_key(int ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char key;
    if (cli_stopped()) return 'q';
    if (poll(&input, 1, ms) <= 0) return cli_stopped() ? 'q' : 0;
    return read(STDIN_FILENO, &key, 1) <= 0 || key == 3 ? 'q' : key;
}

void top_ask(const char *question, const char *answer)
{
    struct winsize size = {.ws_row = 24};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    printf("\033[%d;1H\033[K%s%s", size.ws_row > 2 ? size.ws_row : 24, question, answer);
    fflush(stdout);
}

void top_end_process(const stk_watch_sample *sample, char out[CLI_TEXT])
{
    char digits[12] = "", question[LINE_BYTES], shown[LINE_BYTES], name[32];
    size_t n = 0;
    snprintf(out, CLI_TEXT, "nothing was ended");
    for (char key = 0; key != '\n' && key != '\r';) {
        top_ask("end which process of the job (its number, Enter; Esc: none)? ", digits);
        while (!(key = top_read_key(60000)) && !cli_stopped())
            ;
        if (key == 27 || key == 'q') return;
        if (key >= '0' && key <= '9' && n + 1 < sizeof(digits)) digits[n++] = key;
        if ((key == 127 || key == 8) && n > 0) n--;
        digits[n] = 0;
    }
    int64_t id = strtoll(digits, NULL, 10);
    if (id <= 0 || !stk_watch_list_find(&sample->processes, id)) {
        snprintf(out, CLI_TEXT, "no process '%s' in this job", digits);
        return;
    }
    top_read_name(id, name);
    snprintf(question, sizeof(question), "end %" PRId64 " (%.16s)? y: yes, by SIGTERM; else not ", id, name);
    stk_printable(question, shown, sizeof(shown)); /* its name is what it says of itself */
    top_ask(shown, "");
    char key = top_read_key(60000);
    if (key != 'y' && key != 'Y') return;
    if (kill((pid_t)id, SIGTERM) == 0)
        snprintf(out, CLI_TEXT, "asked process %" PRId64 " to end", id);
    else
        snprintf(out, CLI_TEXT, "process %" PRId64 ": %s", id, strerror(errno));
}
