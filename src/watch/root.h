/* Where the kernel's files are read. Tests lay a folder over / and take sources away. Threads: one at a time. */
#ifndef STK_WATCH_ROOT_H
#define STK_WATCH_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct stk_watch_root {
    const char *over;    /* a folder whose files stand before those of /; NULL: none */
    const char *without; /* "pressure,schedstat": paths with these words are not there; NULL: all are */
} stk_watch_root;

/* The text of a file, cut at bytes - 1 and ended by 0. False: not to be had, and out is "". The path's format has no
 * more than 500 characters. Where out has STK_WATCH_SHORT bytes or less the file is one that a single call gives whole.
 */
enum { STK_WATCH_SHORT = 4096 };
bool stk_watch_read(const stk_watch_root *root, char *out, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A file to read, or -1. */
int stk_watch_open_path(const stk_watch_root *root, const char *path);
/* Ends n bytes that were read; zeros among them become blanks. */
void stk_watch_end_text(char *text, size_t n);
/* What a symbolic link says. */
bool stk_watch_read_link(const stk_watch_root *root, char *out, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool stk_watch_is_hidden(const stk_watch_root *root, const char *path);

#endif
