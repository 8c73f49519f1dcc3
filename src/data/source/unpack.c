/* Compressed shards. DEFLATE cannot be entered in its middle, so a file is unpacked once, as a whole, into the cache
 * folder, and read there like any other. What is made of another state of the file has another name.
 */
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/new_file.h"
#include "data/codec/inflate.h"
#include "data/common/side_file.h"
#include "data/source/shards.h"

static stk_status make_file(const stk_input *file, const char *path)
{
    stk_new_file new;
    STK_RETURN_IF_ERROR(stk_new_file_begin(&new, path));
    stk_status status = stk_inflate_to(file, new.fd, path, UINT64_MAX);
    if (status == STK_OK) status = stk_new_file_finish(&new, true);
    stk_new_file_end(&new);
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
