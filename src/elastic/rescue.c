/* See elastic/rescue.h. */
#include "elastic/rescue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/new_folder.h"

enum { PATH_BYTES = 4096, PIECE = 1 << 20 };

/* The step of 'step-N'; -1: the name is another. */
static int64_t step_of(const char *name)
{
    static const char prefix[] = "step-";
    enum { N_PREFIX = sizeof(prefix) - 1, MOST_DIGITS = 18 };
    size_t n = strlen(name);
    if (strncmp(name, prefix, N_PREFIX) != 0 || n == N_PREFIX || n > N_PREFIX + MOST_DIGITS) return -1;
    if (strspn(name + N_PREFIX, "0123456789") != n - N_PREFIX) return -1;
    return strtoll(name + N_PREFIX, NULL, 10);
}

/* The name of the newest checkpoint in a folder; *step -1: there is none. */
static stk_status find_newest(const char *folder, char name[64], int64_t *step)
{
    stk_names names;
    *step = -1;
    if (!stk_path_is_dir(folder)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_dir_list(folder, &names));
    for (size_t i = 0; i < names.n; i++) {
        if (step_of(names.name[i]) <= *step) continue;
        *step = step_of(names.name[i]);
        snprintf(name, 64, "%s", names.name[i]);
    }
    stk_names_free(&names);
    return STK_OK;
}

static stk_status copy_pieces(int from, const char *from_path, int to, const char *to_path)
{
    char *piece = malloc(PIECE);
    stk_status status = piece ? STK_OK : stk_fail_memory(PIECE);
    for (ssize_t n = 1; status == STK_OK && n > 0;) {
        n = read(from, piece, PIECE);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            status = stk_fail(STK_IO, "cannot read '%s': %s", from_path, strerror(errno));
        else
            status = stk_write_all(to, to_path, piece, (size_t)n);
    }
    free(piece);
    return status;
}

static stk_status copy_file(const char *from_folder, const char *to_folder, const char *name)
{
    char from_path[PATH_BYTES], to_path[PATH_BYTES];
    STK_RETURN_IF_ERROR(stk_path_join(from_path, sizeof(from_path), from_folder, name));
    STK_RETURN_IF_ERROR(stk_path_join(to_path, sizeof(to_path), to_folder, name));
    int from = open(from_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (from < 0) return stk_fail(STK_IO, "cannot open '%s': %s", from_path, strerror(errno));
    int to = open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    stk_status status = to < 0 ? stk_fail(STK_IO, "cannot create '%s': %s", to_path, strerror(errno))
                               : copy_pieces(from, from_path, to, to_path);
    close(from);
    if (to >= 0 && close(to) != 0 && status == STK_OK)
        status = stk_fail(STK_IO, "cannot write '%s': %s", to_path, strerror(errno));
    return status;
}

static stk_status copy_folder(const char *from, const char *path)
{
    stk_new_folder to = {.lock_fd = -1};
    stk_names names = {0};
    stk_status status = STK_OK;
    STK_TRY(stk_dir_list(from, &names));
    STK_TRY(stk_new_folder_begin(&to, path));
    for (size_t i = 0; i < names.n; i++)
        STK_TRY(copy_file(from, to.folder, names.name[i]));
    status = stk_new_folder_finish(&to, true);
done:
    stk_new_folder_end(&to, status);
    stk_names_free(&names);
    return status;
}

stk_status stk_rescue_state(const char *states, const char *folder, int64_t *step)
{
    char name[64], other[64], from[PATH_BYTES], path[PATH_BYTES];
    int64_t newest, there;
    *step = -1;
    STK_RETURN_IF_ERROR(find_newest(states, name, &newest));
    STK_RETURN_IF_ERROR(find_newest(folder, other, &there));
    if (newest <= there) return STK_OK;
    STK_RETURN_IF_ERROR(stk_path_join(from, sizeof(from), states, name));
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, name));
    STK_RETURN_IF_ERROR(copy_folder(from, path));
    *step = newest;
    return STK_OK;
}
