/* See archive/cifar.h. */
#include "data/archive/cifar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "data/codec/image.h"

enum { SIDE = 32, N_PIXELS = SIDE * SIDE, N_CHANNELS = 3, MOST_CLASSES = 100, NAME_BYTES = 64, PATH_BYTES = 4096 };

const stk_cifar_form stk_cifar10 = {.train = "data_batch_",
                                    .test = "test_batch.bin",
                                    .names = "batches.meta.txt",
                                    .n_labels = 1,
                                    .i_label = 0,
                                    .n_classes = 10};
/* The first label of CIFAR-100 is one of 20 groups. */
const stk_cifar_form stk_cifar100 = {.train = "train.bin",
                                     .test = "test.bin",
                                     .names = "fine_label_names.txt",
                                     .n_labels = 2,
                                     .i_label = 1,
                                     .n_classes = 100};

typedef struct writer {
    const stk_archive *archive;
    const stk_cifar_form *form;
    const char *folder;
    char name[MOST_CLASSES][NAME_BYTES];
    stk_archive_progress_fn progress;
    void *user;
    size_t n_done, n_all; /* records */
} writer;

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool is_of(const writer *w, size_t i, const char *begin)
{
    const char *name = last_part(stk_archive_at(w->archive, i).name), *end = strrchr(name, '.');
    return !strncmp(name, begin, strlen(begin)) && end && (!strcmp(end, ".bin") || !strcmp(end, ".txt"));
}

static size_t record_bytes(const writer *w)
{
    return (size_t)w->form->n_labels + N_CHANNELS * N_PIXELS;
}

/* One name a line, each good for a folder. */
static stk_status parse_names(writer *w, const char *text, size_t n)
{
    int n_names = 0;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t n_line = end ? (size_t)(end - text) - at : n - at, n_name = n_line;
        if (n_name && text[at + n_name - 1] == '\r') n_name--;
        if (n_name > 0) {
            char safe[STK_ARCHIVE_NAME];
            if (n_names == w->form->n_classes || n_name >= NAME_BYTES)
                return stk_fail(STK_CORRUPT, "its list of %d classes has too many or too long names",
                                w->form->n_classes);
            memcpy(w->name[n_names], text + at, n_name);
            STK_RETURN_IF_ERROR(stk_archive_safe_name(w->name[n_names], 0, safe));
            if (strcmp(safe, w->name[n_names]) || strchr(safe, '/'))
                return stk_fail(STK_CORRUPT, "its class '%s' is no name for a folder", w->name[n_names]);
            n_names++;
        }
        at += n_line + 1;
    }
    if (n_names == w->form->n_classes) return STK_OK;
    return stk_fail(STK_CORRUPT, "it names %d classes, not %d", n_names, w->form->n_classes);
}

static stk_status read_names(writer *w)
{
    for (size_t i = 0; i < stk_archive_count(w->archive); i++) {
        uint8_t *text;
        if (!is_of(w, i, w->form->names)) continue;
        STK_RETURN_IF_ERROR(stk_archive_read(w->archive, i, &text));
        stk_status status = parse_names(w, (const char *)text, stk_archive_at(w->archive, i).n_bytes);
        free(text);
        return status;
    }
    return stk_fail(STK_CORRUPT, "it lacks '%s', which names the classes", w->form->names);
}

/* Channel by channel there, pixel by pixel here. */
static stk_status write_image(const uint8_t *planes, const char *path)
{
    uint8_t pixels[N_CHANNELS * N_PIXELS], *png;
    size_t n;
    for (int i = 0; i < N_PIXELS; i++)
        for (int c = 0; c < N_CHANNELS; c++)
            pixels[i * N_CHANNELS + c] = planes[c * N_PIXELS + i];
    STK_RETURN_IF_ERROR(stk_png_encode(pixels, SIDE, SIDE, N_CHANNELS, &png, &n));
    stk_status status = STK_OK;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        status = stk_fail(STK_IO, "cannot create '%s': %s", path, stk_errno_text(errno));
    else
        status = stk_write_all(fd, path, png, n);
    if (fd >= 0 && close(fd) < 0 && status == STK_OK)
        status = stk_fail(STK_IO, "cannot write '%s': %s", path, stk_errno_text(errno));
    free(png);
    return status;
}

/* Member i's records, the first of which is number *n_before of its part. */
static stk_status write_records(writer *w, size_t i, const char *part, size_t *n_before)
{
    char path[PATH_BYTES];
    uint8_t *bytes;
    stk_archive_member member = stk_archive_at(w->archive, i);
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(stk_archive_read(w->archive, i, &bytes));
    for (size_t at = 0; at < member.n_bytes; at += record_bytes(w)) {
        int label = bytes[at + (size_t)w->form->i_label];
        if (label >= w->form->n_classes)
            STK_TRY(stk_fail(STK_CORRUPT, "record %zu of its '%s' is of class %d, and there are %d",
                             at / record_bytes(w), member.name, label, w->form->n_classes));
        int n = snprintf(path, sizeof(path), "%s/%s/%s/%05zu.png", w->folder, part, w->name[label], *n_before);
        if (n >= PATH_BYTES) STK_TRY(stk_fail(STK_INVALID, "path '%.60s...' is too long", w->folder));
        STK_TRY(write_image(bytes + at + w->form->n_labels, path));
        ++*n_before;
        if (w->progress && w->n_done++ % 64 == 0 && !w->progress(w->user, w->n_done, w->n_all))
            STK_TRY(stk_fail(STK_INTERRUPTED, "it was stopped"));
    }
done:
    free(bytes);
    return status;
}

/* The member after last by name: the archive's own order says nothing. */
static bool find_next(const writer *w, const char *begin, const char *last, size_t *out)
{
    bool found = false;
    for (size_t i = 0; i < stk_archive_count(w->archive); i++) {
        const char *name = last_part(stk_archive_at(w->archive, i).name);
        if (!is_of(w, i, begin) || strcmp(name, last) <= 0) continue;
        if (found && strcmp(name, last_part(stk_archive_at(w->archive, *out).name)) >= 0) continue;
        *out = i;
        found = true;
    }
    return found;
}

static stk_status write_part(writer *w, const char *part, const char *begin)
{
    char path[PATH_BYTES];
    const char *last = "";
    size_t n = 0;
    for (int c = 0; c < w->form->n_classes; c++) {
        if (snprintf(path, sizeof(path), "%s/%s/%s", w->folder, part, w->name[c]) >= PATH_BYTES)
            return stk_fail(STK_INVALID, "path '%.60s...' is too long", w->folder);
        STK_RETURN_IF_ERROR(stk_dir_make(path));
    }
    for (size_t i; find_next(w, begin, last, &i); last = last_part(stk_archive_at(w->archive, i).name))
        STK_RETURN_IF_ERROR(write_records(w, i, part, &n));
    return n > 0 ? STK_OK : stk_fail(STK_CORRUPT, "it has no records for '%s'", part);
}

static stk_status count_records(writer *w)
{
    for (size_t i = 0; i < stk_archive_count(w->archive); i++) {
        stk_archive_member member = stk_archive_at(w->archive, i);
        if (!is_of(w, i, w->form->train) && !is_of(w, i, w->form->test)) continue;
        if (member.n_bytes % record_bytes(w))
            return stk_fail(STK_CORRUPT, "its '%s' has %llu bytes, which are no whole records of %zu", member.name,
                            (unsigned long long)member.n_bytes, record_bytes(w));
        w->n_all += member.n_bytes / record_bytes(w);
    }
    return STK_OK;
}

stk_status stk_cifar_unpack(const stk_archive *archive, const stk_cifar_form *form, const char *folder,
                            stk_archive_progress_fn progress, void *user)
{
    writer w = {.archive = archive, .form = form, .folder = folder, .progress = progress, .user = user};
    STK_RETURN_IF_ERROR(read_names(&w));
    STK_RETURN_IF_ERROR(count_records(&w));
    STK_RETURN_IF_ERROR(write_part(&w, "train", form->train));
    STK_RETURN_IF_ERROR(write_part(&w, "test", form->test));
    if (progress) (void)progress(user, w.n_all, w.n_all);
    return STK_OK;
}
