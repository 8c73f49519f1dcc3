#include "data/source/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "data/remote/http.h"
#include "data/remote/remote.h"

stk_status stk_source_set_fields(stk_source *source, int64_t n_samples, const stk_array_field *fields, int n_fields)
{
    if (n_samples < 1) return stk_fail(STK_INVALID, "%lld samples: at least 1 is needed", (long long)n_samples);
    if (n_fields < 1 || n_fields > STK_MAX_FIELDS)
        return stk_fail(STK_INVALID, "%d fields: 1 to %d are possible", n_fields, STK_MAX_FIELDS);
    if (!fields) return stk_fail(STK_INVALID, "the fields are missing");
    source->n_records = n_samples;
    source->n_fields = n_fields;
    for (int i = 0; i < n_fields; i++) {
        stk_source_field *field = &source->field[i];
        if (!fields[i].name || !fields[i].name[0] || strlen(fields[i].name) >= sizeof(field->name))
            return stk_fail(STK_INVALID, "field %d needs a name of 1 to %zu characters", i, sizeof(field->name) - 1);
        for (int j = 0; j < i; j++)
            if (!strcmp(fields[j].name, fields[i].name))
                return stk_fail(STK_INVALID, "two fields are named '%s'", fields[i].name);
        snprintf(field->name, sizeof(field->name), "%s", fields[i].name);
        field->type = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(fields[i].dtype, fields[i].sample)};
        STK_RETURN_IF_ERROR(stk_desc_check(field->type.desc));
        if (!stk_shape_known(field->type.desc.shape))
            return stk_fail(STK_INVALID, "field '%s' must have a known shape", fields[i].name);
    }
    return STK_OK;
}

void stk_file_fetch(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    close(fd);
}

/* A file that has gone is a record's error; a folder that has gone is the source's, as a disk that was taken out. */
static bool has_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return true;
    char *folder = strndup(path, (size_t)(slash - path));
    bool is_there = !folder || stk_path_is_dir(folder);
    free(folder);
    return is_there;
}

static stk_status fail_file(const char *path, int error)
{
    if (error == ENOENT && !has_folder(path))
        return stk_fail(STK_IO, "cannot read '%s': its folder is not there", path);
    return stk_fail(error == ENOENT ? STK_NOT_FOUND : STK_IO, "cannot read '%s': %s", path, stk_errno_text(error));
}

stk_status stk_record_open(const char *path, stk_input *out)
{
    stk_status status = stk_open_input(path, true, out);
    if (status != STK_NOT_FOUND || stk_is_remote(path) || has_folder(path)) return status;
    return stk_fail(STK_IO, "cannot read '%s': its folder is not there", path);
}

stk_status stk_file_read_scratch(const char *path, stk_scratch *scratch, size_t *n)
{
    stk_file_times times;
    return stk_file_read_stamped(path, scratch, n, &times);
}

stk_status stk_file_read_stamped(const char *path, stk_scratch *scratch, size_t *n, stk_file_times *times)
{
    struct stat info;
    stk_status status = STK_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: a pipe among the files must not hang. */
    if (fd < 0) return fail_file(path, errno);
    *n = 0;
    if (fstat(fd, &info) < 0) STK_TRY(fail_file(path, errno));
    if (!S_ISREG(info.st_mode)) STK_TRY(stk_fail(STK_IO, "cannot read '%s': not a regular file", path));
    size_t size = (size_t)info.st_size;
    times->mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    times->ctime_ns = (int64_t)info.st_ctim.tv_sec * 1000000000 + info.st_ctim.tv_nsec;
    char *data = stk_scratch_get(scratch, size + 1);
    if (!data) STK_TRY(STK_NO_MEMORY); /* with its limit in the text */
    while (*n < size) {
        ssize_t r = read(fd, data + *n, size - *n);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) STK_TRY(fail_file(path, errno));
        if (r == 0)
            STK_TRY(stk_fail(STK_CORRUPT, "'%s' has become shorter while it was read: it ends at byte %zu of %zu", path,
                             *n, size));
        *n += (size_t)r;
    }
done:
    close(fd);
    return status;
}

bool stk_file_stamp(const char *path, uint64_t *n_bytes, int64_t *stamp)
{
    struct stat info;
    if (stat(path, &info) != 0) return false;
    *n_bytes = (uint64_t)info.st_size;
    *stamp = stk_time_stamp((int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec,
                            (int64_t)info.st_ctim.tv_sec * 1000000000 + info.st_ctim.tv_nsec);
    return true;
}
