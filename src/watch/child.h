/* The command that is watched. Threads: one at a time. */
#ifndef STK_WATCH_CHILD_H
#define STK_WATCH_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "stoker/status.h"

/* Starts argv (ended by NULL), found by PATH, in this process's group, so that Ctrl-C on the terminal reaches it;
 * without_stdout: its standard output goes where standard error does. From then on signals that would end this process
 * are noted, those that did not come from the terminal are sent on to the command, and orphans of the command become
 * children of this process. Errors: STK_NOT_FOUND, STK_IO. */
stk_status stk_watch_child_start(char *const *argv, bool without_stdout, pid_t *out);

/* The same for a process that is not ours: signals are noted, none is sent on. */
void stk_watch_child_attach(void);

/* Waits at most us microseconds; sooner where a child ends or a signal comes. */
void stk_watch_child_wait(long us);

/* True: the command has ended, with the exit code that a shell would give (128 + signal), and by the signal that killed
 * it; 0: it ended by itself. Reaps orphans, too. */
bool stk_watch_child_ended(pid_t pid, int *exit_code, int *by_signal);

/* How often this process was asked to stop: by SIGINT and SIGTERM, where there is no command of ours by SIGHUP and
 * SIGQUIT, too. */
int stk_watch_child_stops(void);

#endif
