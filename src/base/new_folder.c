/* See base/new_folder.h. */
#include "base/new_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* An empty folder may be there already. */
static stk_status check_absent(const char *path)
{
    stk_names names = {0};
    if (!stk_path_exists(path)) return STK_OK;
    if (!stk_path_is_dir(path)) return stk_fail(STK_BUSY, "'%s' already exists and is no folder", path);
    STK_RETURN_IF_ERROR(stk_dir_list(path, &names));
    size_t n = names.n;
    stk_names_free(&names);
    return n == 0 ? STK_OK : stk_fail(STK_BUSY, "folder '%s' already exists; remove it or name another", path);
}

stk_status stk_new_folder_check(const char *path)
{
    stk_new_folder f;
    STK_RETURN_IF_ERROR(stk_new_folder_begin(&f, path));
    bool good = stk_tree_remove(f.folder) == STK_OK;
    stk_dir_take_back_for(f.path, f.n_there);
    close(f.lock_fd);
    return good ? STK_OK : stk_fail(STK_IO, "cannot remove '%s'", f.folder);
}

stk_status stk_new_folder_begin(stk_new_folder *f, const char *path)
{
    size_t n = strlen(path);
    *f = (stk_new_folder){.lock_fd = -1};
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n == 0 || n >= sizeof(f->path)) return stk_fail(STK_INVALID, "path '%.60s...' is too long or empty", path);
    snprintf(f->path, sizeof(f->path), "%.*s", (int)n, path);
    STK_RETURN_IF_ERROR(check_absent(f->path));
    if (stk_temporary_is_written(f->path)) return stk_fail(STK_BUSY, "another process is writing '%s'", f->path);
    STK_RETURN_IF_ERROR(stk_dir_make_for(f->path, &f->n_there));
    stk_status status = stk_temporary_folder(f->path, f->folder, &f->lock_fd);
    if (status != STK_OK) stk_dir_take_back_for(f->path, f->n_there);
    return status;
}

stk_status stk_new_folder_finish(stk_new_folder *f, bool sync)
{
    if (sync && syncfs(f->lock_fd) < 0)
        return stk_fail(STK_IO, "cannot write '%s': %s", f->folder, stk_errno_text(errno));
    if (rename(f->folder, f->path) < 0) {
        bool taken = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
        return taken ? stk_fail(STK_BUSY, "folder '%s' already exists", f->path)
                     : stk_fail(STK_IO, "cannot give folder '%s' its name: %s", f->path, stk_errno_text(errno));
    }
    return STK_OK;
}

/* The error's text, with the name that was asked for where it names the temporary one. */
static void print_why(const stk_new_folder *f, char *out, size_t n_out)
{
    size_t n_folder = strlen(f->folder), n = 0;
    const char *from = stk_error_text();
    out[0] = 0;
    for (const char *at; (at = strstr(from, f->folder)) && n < n_out; from = at + n_folder)
        n += (size_t)snprintf(out + n, n_out - n, "%.*s%s", (int)(at - from), from, f->path);
    if (n < n_out) snprintf(out + n, n_out - n, "%s", from);
}

void stk_new_folder_end(stk_new_folder *f, stk_status status)
{
    if (f->lock_fd < 0) return;
    if (status != STK_OK) {
        char text[1024];
        print_why(f, text, sizeof(text));
        if (stk_tree_remove(f->folder) == STK_OK)
            stk_fail(status, "%s", text);
        else
            stk_fail(status, "%s; '%s' is left over", text, f->folder);
        stk_dir_take_back_for(f->path, f->n_there);
    }
    close(f->lock_fd);
    f->lock_fd = -1;
}
