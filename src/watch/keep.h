/* Files of /proc and /sys that are read at every tick: kept open, so that a reading is one call instead of four, for
 * which the kernel writes the text again. Threads: one at a time. */
#ifndef STK_WATCH_KEEP_H
#define STK_WATCH_KEEP_H

#include "watch/root.h"
#include "watch/sample.h"

typedef struct stk_watch_keeper {
    const stk_watch_root *root; /* borrowed */
    stk_watch_list files;       /* by key */
    size_t most;                /* that may be open */
} stk_watch_keeper;

/* The files; process and thread are 0 for those of the machine. */
enum {
    STK_WATCH_FILE_STAT,
    STK_WATCH_FILE_IO,
    STK_WATCH_FILE_WCHAN,
    STK_WATCH_FILE_SCHEDSTAT,
    STK_WATCH_FILE_PRESSURE, /* three of them */
    STK_WATCH_FILE_CALL = 8,
    STK_WATCH_FILE_GROUP = 16,  /* of cores */
    STK_WATCH_FILE_MEMORY = 24, /* the group's */
    STK_WATCH_FILE_OTHERS = 32,
};
static inline int64_t stk_watch_file_key(int64_t process, int64_t thread, int file)
{
    return (process & 0xffffff) << 32 | (thread & 0xffffff) << 8 | file;
}

void stk_watch_keeper_open(stk_watch_keeper *keeper, const stk_watch_root *root);
/* As stk_watch_read, of the file that was opened for key; the path is looked up only where there is none yet. */
bool stk_watch_read_kept(stk_watch_keeper *keeper, int64_t key, char *out, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Closes the files with keys from first to last. */
void stk_watch_keeper_drop(stk_watch_keeper *keeper, int64_t first, int64_t last);
void stk_watch_keeper_close(stk_watch_keeper *keeper);

#endif
