/* What the verbs share: arguments, texts, numbers. Only include/stoker is known here, and base for texts. */
#ifndef STOKER_CLI_H
#define STOKER_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "stoker/status.h"
#include "stoker/train/trainer.h"
#include "verb_list.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_MOST_ARGS = 4096 };

/* The word for a value tells completions what to offer: FILE, PATH, DIR, RECIPE, RUN, DEVICE, MODEL, DATASET, or what
 * it may be: "tar|tfrecord", where words in capitals stand for anything. */
typedef struct cli_option {
    const char *name;  /* "--out" */
    const char *value; /* "DIR"; NULL: takes none */
    const char *doc;
} cli_option;

/* From these tables come parsing, --help, man pages and completions. usage begins with what are no options, in words
 * like those for values; about's first sentence stands in lists. */
typedef struct cli_verb {
    const char *name, *usage, *about;
    const cli_option *options; /* ended by a name of NULL */
    int (*run)(const struct cli_verb *verb, int argc, char **argv);
    bool makes_files; /* its work is in files: that what it prints reaches nobody is no reason to end */
} cli_verb;

#define X(verb) extern const cli_verb cli_##verb;
CLI_VERB_LIST(X)
#undef X

/* --- verbs.c --- */
/* Ended by NULL. A verb's name may have two words, "data show"; "data" is their group then. */
extern const cli_verb *const cli_verbs[];
/* The verb that these words begin with, the inner one where both its words are there; NULL: none. */
const cli_verb *cli_find_verb(int n_words, char *const *words);
int cli_count_words(const cli_verb *verb);
/* The next verb from *i on: of a group, or for NULL of those that are in none; NULL: that was the last. */
const cli_verb *cli_next_of(const cli_verb *group, int *i);
bool cli_is_group(const cli_verb *verb);
/* "show" of "data show". */
const char *cli_last_word(const cli_verb *verb);
/* Says that there is no such verb, and returns CLI_USAGE. group NULL: among all. */
int cli_refuse_verb(const cli_verb *group, const char *word);

/* --- args.c --- */
typedef struct cli_args {
    const cli_verb *verb;
    struct {
        const cli_option *option;
        const char *value;
    } found[CLI_MOST_ARGS];
    int n_found;
    const char *word[CLI_MOST_ARGS]; /* what is no option */
    int n_words;
} cli_args;

/* argv from the verb's first argument on. False: a message is out, and the exit code is CLI_USAGE. */
bool cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *out);
bool cli_has(const cli_args *args, const char *name);
/* The last value given; NULL when there is none. */
const char *cli_value(const cli_args *args, const char *name);
/* A whole number from least to most; default_value when not given. False: a message is out. */
bool cli_number(const cli_args *args, const char *name, int64_t least, int64_t most, int64_t default_value,
                int64_t *out);
/* What stands between "stoker" and a verb: ' ', or '-' in a program of that verb alone. */
extern char cli_joint;
/* Prints "stoker: ..." and returns CLI_USAGE. */
int cli_usage(const cli_verb *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the library's error and returns CLI_FAILED. */
int cli_fail(void);
void cli_help(const cli_verb *verb);
/* Words in lines of the screen's width, the first of which begins at column `at`, others at `indent`; and a newline. */
void cli_put_wrapped(const char *text, int at, int indent);
/* The entry of names (n of them) that is nearest to word; NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *names, int n);

/* --- text.c --- */
enum { CLI_TEXT = 64 };
/* "50,000"; the others are as in base/plain_number.h: "1.31 GiB", "3:09:02", "12.3 ms", "1.11 GFLOP", "14.2", "3,450",
 * "0.7131". */
const char *cli_count(int64_t n, char out[CLI_TEXT]);
const char *cli_bytes(double bytes, char out[CLI_TEXT]);
const char *cli_duration(double s, char out[CLI_TEXT]);
const char *cli_time(double s, char out[CLI_TEXT]);
const char *cli_flops(double flops, char out[CLI_TEXT]);
const char *cli_rate(double x, char out[CLI_TEXT]);
const char *cli_number_text(double x, char out[CLI_TEXT]);
const char *cli_loss(double x, char out[CLI_TEXT]);
/* A name or text that somebody else has chosen, as it may stand in a line of the terminal, and without the secrets of
 * addresses (stoker/printable.h). Borrowed until the eighth call from now. */
const char *cli_shown(const char *text);
/* Text in JSON's quotes. */
void cli_json_text(FILE *file, const char *text);
/* The same for a text with paths or addresses, whose secrets are hidden. */
void cli_json_place(FILE *file, const char *text);
/* A number, or null where it is none. */
void cli_json_number(FILE *file, double x);
/* Prints ', "<prefix>f1": 0.9' for each further metric. */
void cli_json_values(const char *prefix, const stk_metrics *metrics);
/* A word for a shell. */
void cli_shell_word(FILE *file, const char *word);

/* --- screen.c --- */
/* Whether somebody looks at it: a terminal that is not dumb. */
bool cli_is_terminal(FILE *file);
/* Columns of $COLUMNS or the terminal behind file, 80 where there is none, and at most that many. */
int cli_width(FILE *file, int most);
/* Whether the user's locale has UTF-8. */
bool cli_shows_utf8(void);
/* Columns that a text takes, without escape sequences. */
int cli_columns(const char *text);
/* How many bytes of text fit into N columns. */
size_t cli_fit(const char *text, int columns);
typedef enum cli_mark { CLI_PLAIN, CLI_BOLD, CLI_RED, CLI_YELLOW } cli_mark;
/* The sequence that begins or, PLAIN, ends a colour; "" where file shall have none (NO_COLOR, CLICOLOR_FORCE). */
const char *cli_mark_text(FILE *file, cli_mark mark);
/* Standard output for people. On a terminal, lines that are too long go on below, at a blank between two words; in a
 * file they stay whole. Goes out with the newline. */
void cli_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line that ends in a command for the user. Where that does not fit behind it, it stands below, whole: half a command
 * must not be there to be copied, also where memory is short. print writes the command, twice at times. */
typedef void (*cli_print_command)(FILE *file, const void *user);
void cli_put_command(const char *line, cli_print_command print, const void *user);
/* "stoker: ..." and "stoker: warning: ..." with a newline, to standard error, in the same way. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- bar.c --- */
/* Seconds on a clock that only goes forward. */
double cli_now(void);
/* A bar of that many columns, whose filled part is share. Returns out. */
enum { CLI_BAR = 256 };
const char *cli_bar_text(double share, int columns, char out[CLI_BAR]);
/* The line that moves, in place of the one before: the first part, as many of the others as fit next to a bar, in order
 * of importance, and the bar. */
void cli_draw(const char *const *part, int n_parts, double share);
/* "7 of 20 records  3 s left" and the bar; n_before of n_done were there at start_s. "bytes" get their units. */
void cli_bar(const char *what, int64_t n_done, int64_t n_all, int64_t n_before, double start_s);
void cli_clear_bar(void);

/* --- stop.c --- */
/* From here on the first n of Ctrl-C, SIGTERM, SIGHUP, SIGXCPU and SIGUSR1 are only noted, and the next ends the
 * program; those within a second of one count as that one. call: in the handler, with 1 for the first; may be NULL. */
void cli_catch_stops(int n, void (*call)(int i_stop));
/* For verbs that stop between two pieces of work: the first is noted, the second ends. */
void cli_catch_stop(void);
/* Async-signal-safe: the parts, ended by NULL, on standard error, where that takes them at once. */
void cli_say_in_handler(const char *const *parts);
bool cli_stopped(void);
/* The exit code of a program that was stopped so. */
int cli_stop_code(void);

/* --- source.c --- */
enum { CLI_PATH = 4096 };
/* path, or out with path in $STOKER_DATA where it is only there. */
const char *cli_find_data(const char *path, char out[CLI_PATH]);
/* By its name. */
bool cli_is_tar(const char *path);
bool cli_ends_with(const char *text, const char *end);

/* --- crash.c --- */
/* What is said when loaded code of others crashes. */
void cli_settle_crashes(void);

/* --- environment.c --- */
/* False: a variable that the library reads is not what it can be; a message is out. */
bool cli_check_environment(void);

/* --- output.c --- */
/* First of all: opens /dev/null in place of closed standard descriptors, or files would get their numbers and prints.
 */
void cli_settle_descriptors(void);
/* What happens when the reader of a pipe has gone, or a file may not grow. */
void cli_settle_output(const cli_verb *verb);
/* From a verb that makes files, where it is asked to print alone: from here on it is as those that make none. */
void cli_only_prints(void);
/* A text of many lines, as it is, to standard output. */
void cli_put_text(const char *text);
/* The exit code, when not all of the output may have been written. verb: NULL for what only prints. */
int cli_finish_output(const cli_verb *verb, int code);

/* Starts the program again with OpenMP threads that spin less, unless the user has set how they wait. */
void cli_settle_threads(char **argv);

#endif
