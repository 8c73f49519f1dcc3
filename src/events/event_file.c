/* See events/event_file.h: the file and its records. What values look like is in event_values.c. */
#include "events/event_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"

enum { HEADER_BYTES = 12, FOOTER_BYTES = 4 };
/* Fields of Event and of SessionLog. */
enum { WALL_TIME = 1, STEP = 2, FILE_VERSION = 3, GRAPH_DEF = 4, SUMMARY = 5, SESSION_LOG = 7 };
enum { SESSION_STATUS = 1, SESSION_START = 1 };

static void put_little(uint8_t *out, uint64_t x, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = (uint8_t)(x >> 8 * i);
}

static double wall_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- records --- */

static void begin_record(stk_event_file *file, int64_t step)
{
    static const char header[HEADER_BYTES] = {0};
    stk_text *out = &file->record;
    out->n = 0;
    out->failed = false;
    stk_text_add_bytes(out, header, HEADER_BYTES);
    stk_proto_add_double(out, WALL_TIME, wall_time());
    if (step != 0) stk_proto_add_int(out, STEP, step);
}

/* Half a record in the middle would end the file for its readers. */
static stk_status take_back(stk_event_file *file, stk_status status)
{
    if (ftruncate(file->fd, (off_t)file->n_bytes) < 0) return status;
    return status;
}

static stk_status write_record(stk_event_file *file)
{
    stk_text *out = &file->record;
    uint8_t footer[FOOTER_BYTES];
    STK_RETURN_IF_ERROR(stk_text_status(out));
    size_t n = out->n - HEADER_BYTES;
    uint8_t *header = (uint8_t *)out->data;
    put_little(header, n, 8);
    put_little(header + 8, stk_crc32c_mask(stk_crc32c(header, 8)), 4);
    put_little(footer, stk_crc32c_mask(stk_crc32c(header + HEADER_BYTES, n)), FOOTER_BYTES);
    stk_text_add_bytes(out, footer, FOOTER_BYTES);
    STK_RETURN_IF_ERROR(stk_text_status(out));
    stk_status status = stk_write_all(file->fd, file->path, out->data, out->n);
    if (status != STK_OK) return take_back(file, status);
    file->n_bytes += (int64_t)out->n;
    return STK_OK;
}

void stk_event_begin(stk_event_file *file, int64_t step)
{
    begin_record(file, step);
    file->summary = stk_proto_begin(&file->record, SUMMARY);
}

stk_status stk_event_end(stk_event_file *file)
{
    if (!file->record.failed && file->record.n == file->summary) return STK_OK;
    stk_proto_end(&file->record, file->summary);
    return write_record(file);
}

stk_status stk_event_write_graph(stk_event_file *file, const stk_event_node *node, int n)
{
    begin_record(file, 0);
    size_t graph = stk_proto_begin(&file->record, GRAPH_DEF);
    stk_event_add_nodes(&file->record, node, n);
    stk_proto_end(&file->record, graph);
    return write_record(file);
}

/* --- the file --- */

/* "events.out.tfevents.1700000000.host.17": names sort by their second, so that this one's is behind all others'. */
static int64_t next_second(const char *folder)
{
    static const char prefix[] = "events.out.tfevents.";
    stk_names names;
    int64_t second = (int64_t)time(NULL);
    if (stk_dir_list(folder, &names) != STK_OK) return second;
    for (size_t i = 0; i < names.n; i++) {
        if (strncmp(names.name[i], prefix, sizeof(prefix) - 1)) continue;
        int64_t other = strtoll(names.name[i] + sizeof(prefix) - 1, NULL, 10);
        if (other >= second && other < INT64_MAX) second = other + 1;
    }
    stk_names_free(&names);
    return second;
}

static stk_status make_path(stk_event_file *file, const char *folder)
{
    char host[65], name[160];
    if (gethostname(host, sizeof(host)) < 0) snprintf(host, sizeof(host), "localhost");
    host[sizeof(host) - 1] = 0;
    snprintf(name, sizeof(name), "events.out.tfevents.%010" PRId64 ".%s.%ld", next_second(folder), host,
             (long)getpid());
    return stk_path_join(file->path, sizeof(file->path), folder, name);
}

static stk_status write_start(stk_event_file *file, int64_t step)
{
    begin_record(file, 0);
    stk_proto_add_text(&file->record, FILE_VERSION, "brain.Event:2");
    STK_RETURN_IF_ERROR(write_record(file));
    /* A reader that has seen later steps of files that were cut since forgets them at the second start that it meets.
     */
    begin_record(file, step > 0 ? step + 1 : 0);
    size_t session = stk_proto_begin(&file->record, SESSION_LOG);
    stk_proto_add_int(&file->record, SESSION_STATUS, SESSION_START);
    stk_proto_end(&file->record, session);
    return write_record(file);
}

stk_status stk_event_file_open(const char *folder, int64_t step, stk_event_file **out)
{
    stk_status status;
    *out = NULL;
    stk_event_file *file = calloc(1, sizeof(*file));
    if (!file) return stk_fail_memory(sizeof(*file));
    file->fd = -1;
    STK_TRY(stk_dir_make(folder));
    if (step > 0) STK_TRY(stk_event_files_cut(folder, step));
    STK_TRY(make_path(file, folder));
    file->fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (file->fd < 0) STK_TRY(stk_fail(STK_IO, "cannot open '%s': %s", file->path, stk_errno_text(errno)));
    STK_TRY(write_start(file, step));
    *out = file;
    return STK_OK;
done:
    stk_event_file_close(file);
    return status;
}

void stk_event_file_close(stk_event_file *file)
{
    if (!file) return;
    if (file->fd >= 0) close(file->fd);
    stk_text_free(&file->record);
    free(file);
}

const char *stk_event_file_path(const stk_event_file *file)
{
    return file->path;
}
