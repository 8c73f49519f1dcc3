/* See data/download/unpack.h. */
#include "data/download/unpack.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/new_folder.h"
#include "base/secret.h"
#include "base/text.h"
#include "data/archive/cifar.h"
#include "data/text/text_parts.h"

enum { PATH_BYTES = 4096 };
#define SOURCE_NAME "stoker-source.txt"

/* What the folder says about itself; compared byte by byte, so that another version of a set is another one. */
static void print_source(const stk_download_set *set, stk_text *out)
{
    stk_text_add(out, "%s: %s\nlicence: %s\n", set->name, set->about, set->licence);
    for (int i = 0; i < set->n_files; i++) {
        stk_text_add(out, "from ");
        (void)stk_text_add_secrets(out, set->file[i].url, STK_HIDDEN, false);
        stk_text_add(out, ", %s\n", set->file[i].checksum ? set->file[i].checksum : "whose checksum was not asked for");
    }
}

stk_status stk_download_is_unpacked(const stk_download_set *set, const char *folder, bool *out)
{
    char path[PATH_BYTES];
    stk_text now = {0};
    stk_names names = {0};
    uint8_t *before = NULL;
    size_t capacity = 0, n = 0;
    stk_status status;
    *out = false;
    if (!stk_path_is_dir(folder)) return STK_OK;
    STK_TRY(stk_dir_list(folder, &names));
    if (names.n == 0) goto done;
    print_source(set, &now);
    STK_TRY(stk_text_status(&now));
    STK_TRY(stk_path_join(path, sizeof(path), folder, SOURCE_NAME));
    if (stk_path_exists(path)) STK_TRY(stk_file_read(path, &before, &capacity, &n));
    *out = n == now.n && !memcmp(before, now.data, n);
    if (!*out)
        status = stk_fail(STK_BUSY, "folder '%s' is there and is not what '%s' gives; remove it or name another",
                          folder, set->name);
done:
    free(before);
    stk_text_free(&now);
    stk_names_free(&names);
    return status;
}

/* --- one archive --- */

typedef struct report {
    stk_download_fn progress;
    void *user;
} report;

static bool show(void *user, size_t n_done, size_t n_all)
{
    const report *r = user;
    return r->progress(r->user, "unpacking", (int64_t)n_done, (int64_t)n_all);
}

static stk_status unpack(const stk_download_set *set, const stk_archive *archive, const char *folder,
                         stk_archive_limits limits, report *r)
{
    stk_archive_written written;
    stk_archive_progress_fn fn = r->progress ? show : NULL;
    if (set->form == STK_DOWNLOAD_CIFAR10) return stk_cifar_unpack(archive, &stk_cifar10, folder, fn, r);
    if (set->form == STK_DOWNLOAD_CIFAR100) return stk_cifar_unpack(archive, &stk_cifar100, folder, fn, r);
    return stk_archive_unpack(archive, folder, set->n_strip, limits, fn, r, &written);
}

static stk_status unpack_file(const stk_download_set *set, const char *path, const char *folder, report *r)
{
    stk_input input;
    stk_archive *archive = NULL;
    if (set->form == STK_DOWNLOAD_TEXT) return stk_text_parts_write(path, folder);
    STK_RETURN_IF_ERROR(stk_input_open(path, true, &input));
    stk_archive_limits limits = {
        .most_bytes = 16 * input.n_bytes + (64 << 20), .most_files = 4000000, .keep = set->keep};
    stk_status status = stk_archive_open(&input, folder, limits, &archive);
    if (status == STK_OK) status = unpack(set, archive, folder, limits, r);
    stk_archive_close(archive);
    stk_input_close(&input);
    return status == STK_OK ? status : stk_fail_prefix(status, "cannot unpack '%s': ", path);
}

stk_status stk_download_unpack(const stk_download_set *set, const char *fetched, const char *folder,
                               stk_download_fn progress, void *user)
{
    char path[PATH_BYTES];
    report r = {.progress = progress, .user = user};
    stk_new_folder new = {.lock_fd = -1};
    stk_text source = {0};
    stk_status status;
    STK_TRY(stk_new_folder_begin(&new, folder));
    for (int i = 0; i < set->n_files; i++) {
        STK_TRY(stk_path_join(path, sizeof(path), fetched, set->file[i].name));
        STK_TRY(unpack_file(set, path, new.folder, &r));
    }
    print_source(set, &source);
    STK_TRY(stk_text_status(&source));
    STK_TRY(stk_path_join(path, sizeof(path), new.folder, SOURCE_NAME));
    STK_TRY(stk_file_write_durably(path, source.data, source.n));
    STK_TRY(stk_new_folder_finish(&new, true));
done:
    stk_new_folder_end(&new, status);
    stk_text_free(&source);
    return status;
}
