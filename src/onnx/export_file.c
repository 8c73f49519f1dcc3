/* A model's messages to bytes, without a second copy of its weights. See onnx/writer.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/new_file.h"
#include "onnx/writer.h"

enum { PATH_BYTES = 4096, SMALL = 1024, ALIGN = 64 };
/* What the file next to it begins with, since weights alone do not tell whose they are. */
static const char mark[ALIGN] = "Stoker: weights of the ONNX model beside this file\n";
/* Readers of protobuf take no message of 2 GiB and more; the rest is for nodes and names. */
static const int64_t most_inside = (INT64_C(2) << 30) - (64 << 20);

/* protobuf-c appends to this. */
typedef struct sink {
    ProtobufCBuffer base;
    FILE *file;
    bool failed;
} sink;

static void append(ProtobufCBuffer *buffer, size_t n, const uint8_t *data)
{
    sink *s = (sink *)buffer;
    if (!s->failed && n && fwrite(data, 1, n, s->file) != n) s->failed = true;
}

/* Syncs and renames; removes the temporary file after a failure. */
static stk_status finish(FILE *file, bool failed, stk_new_file *new)
{
    int error = failed ? errno : 0;
    if (fclose(file) != 0 && !error) error = errno;
    stk_status status = error ? stk_fail(STK_IO, "cannot write '%s': %s", new->path, stk_errno_text(error))
                              : stk_new_file_finish(new, true);
    stk_new_file_end(new);
    return status;
}

/* The stream has a descriptor of its own. */
static stk_status begin(const char *path, stk_new_file *new, FILE **out)
{
    STK_RETURN_IF_ERROR(stk_new_file_begin(new, path));
    int fd = fcntl(new->fd, F_DUPFD_CLOEXEC, 0);
    *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (*out) return STK_OK;
    int error = errno;
    if (fd >= 0) close(fd);
    stk_new_file_end(new);
    return stk_fail(STK_IO, "cannot create '%s': %s", path, stk_errno_text(error));
}

static Onnx__StringStringEntryProto *entry(stk_writer *w, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = stk_writer_alloc(w, sizeof(*e));
    if (!e) return NULL;
    onnx__string_string_entry_proto__init(e);
    e->key = (char *)key;
    e->value = (char *)value;
    return e;
}

/* The tensor's bytes go to the file next to it, where they begin at a multiple of ALIGN. */
static bool move_out(stk_writer *w, Onnx__TensorProto *t, const char *location, int64_t *at, FILE *file)
{
    static const char zeros[ALIGN];
    size_t padding = (size_t)(-*at & (ALIGN - 1)), n = t->raw_data.len;
    t->external_data = stk_writer_alloc(w, 3 * sizeof(*t->external_data));
    if (!t->external_data || fwrite(zeros, 1, padding, file) != padding || fwrite(t->raw_data.data, 1, n, file) != n)
        return false;
    *at += (int64_t)padding;
    t->external_data[0] = entry(w, "location", location);
    t->external_data[1] = entry(w, "offset", stk_writer_text(w, "%lld", (long long)*at));
    t->external_data[2] = entry(w, "length", stk_writer_text(w, "%zu", n));
    t->n_external_data = 3;
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t->has_raw_data = 0;
    *at += (int64_t)n;
    return stk_writer_ok(w);
}

static stk_status write_data(stk_writer *w, const char *model_path)
{
    char path[PATH_BYTES];
    stk_new_file new;
    const char *slash = strrchr(model_path, '/');
    int64_t at = ALIGN;
    FILE *file;
    if (snprintf(path, sizeof(path), "%s.data", model_path) >= PATH_BYTES)
        return stk_fail(STK_INVALID, "path '%.60s...' is too long", model_path);
    const char *location = stk_writer_text(w, "%s.data", slash ? slash + 1 : model_path);
    STK_RETURN_IF_ERROR(stk_new_file_check_kind(path, "the weights of an ONNX model", 0, mark, sizeof(mark)));
    STK_RETURN_IF_ERROR(begin(path, &new, &file));
    bool failed = fwrite(mark, 1, sizeof(mark), file) != sizeof(mark);
    for (int i = 0; i < w->n_initializers && !failed; i++)
        if (w->initializer[i]->raw_data.len >= SMALL) failed = !move_out(w, w->initializer[i], location, &at, file);
    STK_RETURN_IF_ERROR(finish(file, failed, &new));
    return w->status;
}

stk_status stk_writer_save(stk_writer *w, Onnx__ModelProto *model, const char *path, bool *external)
{
    stk_new_file new;
    sink s = {.base = {append}};
    int64_t inside = w->options->inside_bytes > 0 ? w->options->inside_bytes : INT64_C(1) << 30;
    *external = w->weight_bytes > inside || w->weight_bytes > most_inside;
    if (*external) STK_RETURN_IF_ERROR(write_data(w, path));
    STK_RETURN_IF_ERROR(begin(path, &new, &s.file));
    onnx__model_proto__pack_to_buffer(model, &s.base);
    return finish(s.file, s.failed, &new);
}
