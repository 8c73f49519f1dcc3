/* Going on behind a step: what event files hold of later ones is cut off, as a run that was killed behind its last
 * checkpoint has left it. Only our own records are understood, which say time and step first; a file of another hand
 * stays as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "events/event_inside.h"

enum { HEADER_BYTES = 12, FRAME_BYTES = 16, TIME_BYTES = 9, MOST_START = HEADER_BYTES + TIME_BYTES + 11 };
enum { TIME_KEY = 1 << 3 | 1, STEP_KEY = 2 << 3 };

static uint64_t get_little(const uint8_t *p, int n)
{
    uint64_t x = 0;
    for (int i = 0; i < n; i++)
        x |= (uint64_t)p[i] << 8 * i;
    return x;
}

/* The step of an event; 0 where it says none. */
static int64_t step_of(const uint8_t *event, size_t n)
{
    uint64_t x = 0;
    if (n <= TIME_BYTES || event[TIME_BYTES] != STEP_KEY) return 0;
    for (size_t i = TIME_BYTES + 1, shift = 0; i < n && shift < 64; i++, shift += 7) {
        x |= (uint64_t)(event[i] & 127) << shift;
        if (event[i] < 128) return (int64_t)x;
    }
    return 0;
}

/* Bytes up to the first record of a later step, or to a torn end. -1: no file of ours. */
static int64_t find_end(int fd, int64_t n_bytes, int64_t step)
{
    uint8_t start[MOST_START];
    int64_t at = 0;
    while (at < n_bytes) {
        ssize_t n = pread(fd, start, sizeof(start), (off_t)at);
        if (n < HEADER_BYTES + TIME_BYTES) return n < 0 ? -1 : at;
        /* Behind sound records, where a machine went down: readers end there, too. */
        if (get_little(start + 8, 4) != stk_crc32c_mask(stk_crc32c(start, 8))) return at > 0 ? at : -1;
        if (start[HEADER_BYTES] != TIME_KEY) return -1;
        uint64_t n_event = get_little(start, 8);
        if (n_event > (uint64_t)(n_bytes - at) || n_event + FRAME_BYTES > (uint64_t)(n_bytes - at)) return at;
        size_t n_seen = (size_t)n - HEADER_BYTES;
        if (step_of(start + HEADER_BYTES, n_event < n_seen ? (size_t)n_event : n_seen) > step) return at;
        at += (int64_t)n_event + FRAME_BYTES;
    }
    return at;
}

static stk_status cut_file(const char *path, int64_t step)
{
    struct stat info;
    stk_status status = STK_OK;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return stk_fail(STK_IO, "cannot open '%s': %s", path, stk_errno_text(errno));
    int64_t end = fstat(fd, &info) == 0 ? find_end(fd, (int64_t)info.st_size, step) : -1;
    if (end >= 0 && end < (int64_t)info.st_size && ftruncate(fd, (off_t)end) < 0)
        status = stk_fail(STK_IO, "cannot shorten '%s': %s", path, stk_errno_text(errno));
    close(fd);
    return status;
}

/* By its name; what else lies there is somebody's. */
static bool is_ours(const char *name)
{
    return !strncmp(name, "events.out.tfevents.", 20);
}

stk_status stk_event_files_cut(const char *folder, int64_t step)
{
    char path[4096];
    stk_names names;
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(stk_dir_list(folder, &names));
    for (size_t i = 0; i < names.n && status == STK_OK; i++) {
        if (!is_ours(names.name[i])) continue;
        status = stk_path_join(path, sizeof(path), folder, names.name[i]);
        if (status == STK_OK) status = cut_file(path, step);
    }
    stk_names_free(&names);
    return status;
}

stk_status stk_event_files_remove(const char *folder)
{
    char path[4096];
    stk_names names;
    stk_status status = STK_OK;
    if (!stk_path_exists(folder)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_dir_list(folder, &names));
    for (size_t i = 0; i < names.n && status == STK_OK; i++) {
        if (!is_ours(names.name[i])) continue;
        status = stk_path_join(path, sizeof(path), folder, names.name[i]);
        if (status == STK_OK && unlink(path) < 0)
            status = stk_fail(STK_IO, "cannot remove '%s': %s", path, stk_errno_text(errno));
    }
    stk_names_free(&names);
    return status;
}
