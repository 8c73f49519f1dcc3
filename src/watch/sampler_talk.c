/* Which processes of the job are connected with each other by TCP, as ranks are that sum gradients: the two ends of a
 * connection are two lines of one table of the kernel's, with the addresses exchanged. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/parse.h"
#include "watch/sampler.h"

enum { MOST_PROCESSES = 32, MOST_FILES = 256, MOST_SOCKETS = 1024, TABLE_BYTES = 1 << 20 };

typedef struct end_of_talk {
    int64_t inode, process;
    stk_watch_connection connection;
} end_of_talk;

static int by_inode(const void *a, const void *b)
{
    int64_t x = ((const end_of_talk *)a)->inode, y = ((const end_of_talk *)b)->inode;
    return (x > y) - (x < y);
}

/* The sockets that a process has open. */
static size_t list_sockets(stk_watch_sampler *sampler, int64_t process, end_of_talk *out, size_t room)
{
    char path[STK_WATCH_PATH];
    size_t n = 0;
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/fd", process);
    DIR *folder = stk_watch_is_hidden(&sampler->config.root, path) ? NULL : opendir(path);
    struct dirent *file;
    for (int i = 0; folder && i < MOST_FILES && n < room && (file = readdir(folder)); i++) {
        if (file->d_name[0] == '.' ||
            !stk_watch_read_link(&sampler->config.root, path, sizeof(path), "/proc/%" PRId64 "/fd/%.16s", process,
                                 file->d_name) ||
            strncmp(path, "socket:[", 8) != 0)
            continue;
        out[n++] = (end_of_talk){.inode = strtoll(path + 8, NULL, 10), .process = process};
    }
    if (folder) closedir(folder);
    return n;
}

/* Fills the connections of sockets that are in the table. */
static void read_table(stk_watch_sampler *sampler, const char *name, char *text, end_of_talk *list, size_t n)
{
    stk_watch_connection connection;
    if (!stk_watch_read(&sampler->config.root, text, TABLE_BYTES, "/proc/%" PRId64 "/net/%s", list[0].process, name))
        return;
    for (const char *line = text; (line = strchr(line, '\n'));) {
        end_of_talk key = {.inode = 0};
        if (!stk_watch_parse_connection(++line, &key.inode, &connection)) continue;
        end_of_talk *found = bsearch(&key, list, n, sizeof(*list), by_inode);
        if (found) found->connection = connection;
    }
}

static void mark(stk_watch_sampler *sampler, int64_t process)
{
    stk_watch_process *p = stk_watch_list_find(&sampler->sample.processes, process);
    if (p) p->talks = 1;
}

void stk_watch_read_talks(stk_watch_sampler *sampler)
{
    const stk_watch_list *processes = &sampler->sample.processes;
    end_of_talk *list = processes->n > 1 ? calloc(MOST_SOCKETS, sizeof(*list)) : NULL;
    char *text = list ? malloc(TABLE_BYTES) : NULL;
    size_t n = 0;
    for (size_t i = 0; text && i < processes->n && i < MOST_PROCESSES; i++)
        n += list_sockets(sampler, stk_watch_process_at(&sampler->sample, i)->id, list + n, MOST_SOCKETS - n);
    if (n > 1) {
        qsort(list, n, sizeof(*list), by_inode);
        read_table(sampler, "tcp", text, list, n);
        read_table(sampler, "tcp6", text, list, n);
    }
    for (size_t a = 0; a < n; a++)
        for (size_t b = a + 1; b < n && list[a].connection.here; b++) {
            const stk_watch_connection *x = &list[a].connection, *y = &list[b].connection;
            if (list[a].process == list[b].process || x->here != y->there || x->there != y->here) continue;
            mark(sampler, list[a].process);
            mark(sampler, list[b].process);
        }
    free(text);
    free(list);
}
