/* Tensors whose numbers lie in another file, as exporters write them above 2 GB, and PyTorch's newer one always:
 * "location", "offset" and "length" of onnx.proto's external_data. A location is a name next to the model or below it;
 * it cannot lead elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "onnx/model.h"

static const char *entry_of(const Onnx__TensorProto *proto, const char *key)
{
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const Onnx__StringStringEntryProto *e = proto->external_data[i];
        if (e->key && e->value && !strcmp(e->key, key)) return e->value;
    }
    return NULL;
}

static stk_status read_number(const Onnx__TensorProto *proto, const char *key, size_t default_value, size_t *out)
{
    const char *text = entry_of(proto, key);
    char *end;
    *out = default_value;
    if (!text) return STK_OK;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value > INT64_MAX)
        return stk_fail(STK_CORRUPT, "the %s of its numbers in another file is '%.40s'", key, text);
    *out = (size_t)value;
    return STK_OK;
}

/* No absolute path, and no part that is "..". */
static bool stays_below(const char *location)
{
    if (location[0] == '/') return false;
    for (const char *part = location; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (!strncmp(part, "..", 2) && (part[2] == '/' || !part[2])) return false;
    }
    return location[0] != 0;
}

/* The memory is taken when the file is known to have the bytes. */
static stk_status read_at(stk_arena *arena, const char *path, size_t offset, size_t n, void **out)
{
    struct stat info;
    stk_status status = STK_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return stk_fail(STK_NOT_FOUND, "its numbers lie in '%s': %s; move that file along with the model", path,
                        stk_errno_text(errno));
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        STK_TRY(stk_fail(STK_CORRUPT, "its numbers lie in '%s', which is no file", path));
    if ((size_t)info.st_size < offset || (size_t)info.st_size - offset < n)
        STK_TRY(stk_fail(STK_CORRUPT, "its numbers are bytes %zu to %zu of '%s', which has %lld", offset, offset + n,
                         path, (long long)info.st_size));
    if (!(*out = stk_arena_alloc(arena, n + 1))) STK_TRY(stk_fail_memory(n));
    for (size_t done_bytes = 0; done_bytes < n;) {
        ssize_t got = pread(fd, (char *)*out + done_bytes, n - done_bytes, (off_t)(offset + done_bytes));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            STK_TRY(stk_fail(STK_IO, "cannot read '%s': %s", path, got < 0 ? stk_errno_text(errno) : "it ended"));
        done_bytes += (size_t)got;
    }
done:
    close(fd);
    return status;
}

stk_status stk_onnx_read_external(stk_arena *arena, const char *folder, const Onnx__TensorProto *proto, size_t n,
                                  void **out)
{
    char path[4096];
    size_t offset, length;
    const char *location = entry_of(proto, "location");
    if (!location) return stk_fail(STK_CORRUPT, "its numbers lie in another file, which is not named");
    if (!folder)
        return stk_fail(STK_UNSUPPORTED, "its numbers lie in another file, '%.200s'; open the model by its path",
                        location);
    if (!stays_below(location))
        return stk_fail(STK_CORRUPT, "its numbers lie in '%.200s', which is not next to the model", location);
    STK_RETURN_IF_ERROR(read_number(proto, "offset", 0, &offset));
    STK_RETURN_IF_ERROR(read_number(proto, "length", n, &length));
    if (length != n) return stk_fail(STK_CORRUPT, "a tensor of %zu bytes has %zu in another file", n, length);
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, location));
    return read_at(arena, path, offset, n, out);
}
