/* See base/new_folder.h. */
#include "base/new_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
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

/* Makes the folder and locks it, so that its content is ours to clear. */
static stk_status lock_folder(stk_new_folder *f)
{
    struct stat ours, there;
    STK_RETURN_IF_ERROR(stk_dir_make(f->folder));
    int fd = open(f->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return stk_fail(STK_IO, "cannot open folder '%s': %s", f->folder, stk_errno_text(errno));
    /* Between opening and locking the other process may have renamed the folder: then it is not ours. A file system
     * without locks is used without. */
    bool busy = flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    busy = busy || fstat(fd, &ours) < 0 || stat(f->folder, &there) < 0 || ours.st_ino != there.st_ino;
    if (busy) {
        close(fd);
        return stk_fail(STK_BUSY, "another process is writing '%s'", f->folder);
    }
    f->lock_fd = fd;
    return STK_OK;
}

/* What an earlier writer left, without the locked folder itself. */
static stk_status clear_folder(const char *folder)
{
    stk_names names;
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(stk_dir_list(folder, &names));
    for (size_t i = 0; i < names.n; i++) {
        char path[STK_NEW_FOLDER_PATH];
        STK_TRY(stk_path_join(path, sizeof(path), folder, names.name[i]));
        STK_TRY(stk_tree_remove(path));
    }
done:
    stk_names_free(&names);
    return status;
}

stk_status stk_new_folder_begin(stk_new_folder *f, const char *path)
{
    size_t n = strlen(path);
    stk_status status;
    *f = (stk_new_folder){.lock_fd = -1};
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n == 0 || n + 8 >= sizeof(f->folder))
        return stk_fail(STK_INVALID, "path '%.60s...' is too long or empty", path);
    snprintf(f->path, sizeof(f->path), "%.*s", (int)n, path);
    snprintf(f->folder, sizeof(f->folder), "%.*s.tmp", (int)n, path);
    STK_RETURN_IF_ERROR(check_absent(f->path));
    STK_RETURN_IF_ERROR(lock_folder(f));
    status = clear_folder(f->folder);
    if (status != STK_OK) stk_new_folder_end(f, status);
    return status;
}

stk_status stk_new_folder_finish(stk_new_folder *f, bool sync)
{
    if (sync && syncfs(f->lock_fd) < 0)
        return stk_fail(STK_IO, "cannot write '%s': %s", f->folder, stk_errno_text(errno));
    if (rename(f->folder, f->path) < 0) {
        bool taken = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
        return taken ? stk_fail(STK_BUSY, "folder '%s' already exists", f->path)
                     : stk_fail(STK_IO, "cannot rename '%s' to '%s': %s", f->folder, f->path, stk_errno_text(errno));
    }
    return STK_OK;
}

void stk_new_folder_end(stk_new_folder *f, stk_status status)
{
    if (f->lock_fd < 0) return;
    if (status != STK_OK) {
        char text[1024];
        snprintf(text, sizeof(text), "%s", stk_error_text());
        if (stk_tree_remove(f->folder) == STK_OK)
            stk_fail(status, "%s", text);
        else
            stk_fail(status, "%s; '%s' is left over", text, f->folder);
    }
    close(f->lock_fd);
    f->lock_fd = -1;
}
