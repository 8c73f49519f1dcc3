/* Compressed shards. DEFLATE cannot be entered in its middle, so a file is unpacked once, as a whole, into the cache
 * folder, and read there like any other. What is made of another state of the file has another name.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "data/codec/inflate.h"
#include "data/source/shards.h"
#include "data/source/side_file.h"

static stk_status make_file(const stk_input *file, const char *path)
{
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof(temporary), "%s.tmp-XXXXXX", path);
    int fd = n < (int)sizeof(temporary) ? mkstemp(temporary) : -1;
    if (fd < 0) return stk_fail(STK_IO, "cannot create '%s': %s", path, stk_errno_text(errno));
    stk_status status = stk_inflate_to(file, fd, path, UINT64_MAX);
    if (status == STK_OK && fsync(fd) < 0)
        status = stk_fail(STK_IO, "cannot write '%s': %s", path, stk_errno_text(errno));
    close(fd);
    if (status == STK_OK && rename(temporary, path) < 0)
        status = stk_fail(STK_IO, "cannot write '%s': %s", path, stk_errno_text(errno));
    if (status != STK_OK) unlink(temporary);
    return status;
}

stk_status stk_unpack_to_cache(const stk_input *file, char **path)
{
    char place[PATH_MAX];
    *path = NULL;
    stk_status status = stk_cache_path(file, ".unpacked", place, sizeof(place));
    if (status != STK_OK) return stk_fail_prefix(status, "a compressed file needs a place to be unpacked: ");
    if (!stk_path_exists(place)) STK_RETURN_IF_ERROR(make_file(file, place));
    if (!(*path = strdup(place))) return stk_fail_memory(strlen(place));
    return STK_OK;
}
