/* The list of generated sets, and their folders. */
#include "data/synthetic/synthetic.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/new_folder.h"

enum { MOST_SAMPLES = 10000000 };

const char *const stk_synthetic_part[2] = {"train", "test"};

static const struct {
    const char *name, *about;
    int64_t n_train, n_test;
    stk_status (*write)(stk_synthetic *made);
} sets[] = {
    {"shapes", "pictures of discs, boxes and triangles with masks, for segmentation", 800, 200, stk_synthetic_shapes},
    {"solids", "volumes with a ball, a box, a rod or a shell in noise, for 3-D networks", 1200, 300,
     stk_synthetic_solids},
    {"clicks", "a table of users, items and numbers with clicks of known chances", 40000, 10000, stk_synthetic_clicks},
    {"notes", "a table of numbers with three labels of known chances, several a row", 8000, 2000, stk_synthetic_notes},
    {"prices", "a table of numbers with a price and noise of a known size", 8000, 2000, stk_synthetic_prices},
};
enum { N_SETS = sizeof(sets) / sizeof(sets[0]) };

const char *stk_synthetic_name(int i, const char **about, stk_synthetic_config *default_value)
{
    if (i < 0 || i >= N_SETS) return NULL;
    if (about) *about = sets[i].about;
    if (default_value) *default_value = (stk_synthetic_config){.n_train = sets[i].n_train, .n_test = sets[i].n_test};
    return sets[i].name;
}

stk_rng stk_synthetic_rng(const stk_synthetic *made, int part, int64_t i)
{
    return stk_rng_make(made->seed, (uint64_t)part, (uint64_t)i, 0);
}

stk_status stk_synthetic_ask(const stk_synthetic *made)
{
    if (!made->goes_on || made->goes_on(made->user)) return STK_OK;
    return stk_fail(STK_INTERRUPTED, "making '%s' was stopped", made->folder);
}

stk_status stk_synthetic_file(const stk_synthetic *made, const char *name, const void *data, size_t n)
{
    char path[STK_NEW_FOLDER_PATH + 64];
    STK_RETURN_IF_ERROR(stk_synthetic_ask(made));
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), made->folder, name));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return stk_fail(STK_IO, "cannot create '%s': %s", path, stk_errno_text(errno));
    stk_status status = stk_write_all(fd, path, data, n);
    if (close(fd) < 0 && status == STK_OK)
        status = stk_fail(STK_IO, "cannot write '%s': %s", path, stk_errno_text(errno));
    return status;
}

static stk_status check_count(const char *name, const char *part, int64_t n)
{
    if (n >= 1 && n <= MOST_SAMPLES) return STK_OK;
    return stk_fail(STK_INVALID, "cannot make %lld samples of '%s' (%s): 1 to 10,000,000 are possible", (long long)n,
                    name, part);
}

stk_status stk_synthetic_write(const char *name, const char *out_dir, const stk_synthetic_config *config)
{
    STK_NEED(name);
    STK_NEED(out_dir);
    int i = 0;
    stk_status status;
    stk_new_folder folder = {.lock_fd = -1};
    stk_synthetic made = {.folder = folder.folder, .seed = config ? config->seed : 0};
    while (i < N_SETS && strcmp(sets[i].name, name))
        i++;
    if (i == N_SETS) return stk_fail(STK_NOT_FOUND, "no generated data set is called '%.60s'", name);
    if (config) made.goes_on = config->goes_on, made.user = config->user;
    made.n[0] = config && config->n_train ? config->n_train : sets[i].n_train;
    made.n[1] = config && config->n_test ? config->n_test : sets[i].n_test;
    STK_RETURN_IF_ERROR(check_count(name, "train", made.n[0]));
    STK_RETURN_IF_ERROR(check_count(name, "test", made.n[1]));
    STK_TRY(stk_new_folder_begin(&folder, out_dir));
    stk_text_add(&made.note, "%s: %s.\n%lld samples to learn from, %lld to test with, seed %llu.\n", sets[i].name,
                 sets[i].about, (long long)made.n[0], (long long)made.n[1], (unsigned long long)made.seed);
    STK_TRY(sets[i].write(&made));
    STK_TRY(stk_text_status(&made.note));
    STK_TRY(stk_synthetic_file(&made, "README.txt", made.note.data, made.note.n));
    STK_TRY(stk_new_folder_finish(&folder, false));
done:
    stk_text_free(&made.note);
    stk_new_folder_end(&folder, status);
    return status;
}
