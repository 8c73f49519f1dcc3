/* See stoker/data/digits.h. Threads claim pictures in blocks and write one file each; the calling thread waits and
 * reports. The folder appears whole (base/new_folder.h). Files are not synced: they can be made again.
 */
#include "stoker/data/digits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/new_folder.h"
#include "base/rng.h"
#include "base/thread.h"
#include "data/codec/image.h"
#include "data/synthetic/digits_draw.h"

enum { N_CLASSES = 10, N_SPLITS = 2, BLOCK = 64, MAX_THREADS = 256, MAX_PATH = 4096, REPORT_MS = 100 };

static const char *const split_name[N_SPLITS] = {"train", "test"};

typedef struct writer {
    stk_digits_config config;
    int64_t total;
    const char *folder;                /* OUT.tmp */
    int class_fd[N_SPLITS][N_CLASSES]; /* -1 while not open */
    atomic_llong next, done;           /* pictures, train before test */
    atomic_bool stop;

    stk_mutex lock;
    stk_cond changed;     /* a thread ended */
    int n_running;        /* guarded by lock */
    stk_status status;    /* guarded by lock; the first failure */
    char error_text[512]; /* guarded by lock */
} writer;

stk_digits_config stk_digits_config_default(void)
{
    return (stk_digits_config){.n_train = 60000, .n_test = 10000, .seed = 1, .size = 28, .quality = 90};
}

static stk_status check_config(const char *out_dir, const stk_digits_config *c)
{
    const int64_t most = 10000000;
    if (!out_dir || !out_dir[0]) return stk_fail(STK_INVALID, "no folder given for the digits");
    if (c->n_train < 0 || c->n_test < 0 || c->n_train > most || c->n_test > most || c->n_train + c->n_test == 0)
        return stk_fail(STK_INVALID, "cannot make %lld + %lld digits: 1 to 10,000,000 are possible",
                        (long long)c->n_train, (long long)c->n_test);
    if (c->size < 16 || c->size > 512)
        return stk_fail(STK_INVALID, "cannot make digits of %d x %d pixels: 16 to 512 are possible", c->size, c->size);
    if (c->quality < 1 || c->quality > 100)
        return stk_fail(STK_INVALID, "JPEG quality %d is not in 1 to 100", c->quality);
    if (c->n_threads < 0 || c->n_threads > MAX_THREADS)
        return stk_fail(STK_INVALID, "%d threads are not in 1 to %d (0: as many as cores)", c->n_threads, MAX_THREADS);
    return STK_OK;
}

/* --- writing --- */

static stk_status fail_picture(const writer *w, const char *doing, int split, int digit, const char *name)
{
    return stk_fail(STK_IO, "cannot %s '%s/%s/%d/%s': %s", doing, w->folder, split_name[split], digit, name,
                    stk_errno_text(errno));
}

/* Writes an encoded picture. */
static stk_status write_picture(const writer *w, int split, int64_t i, const uint8_t *bytes, size_t n)
{
    char name[32];
    int digit = (int)(i % N_CLASSES);
    snprintf(name, sizeof(name), "%05lld.jpg", (long long)i);
    int fd = openat(w->class_fd[split][digit], name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return fail_picture(w, "create", split, digit, name);
    stk_status status = STK_OK;
    while (n > 0 && status == STK_OK) {
        ssize_t r = write(fd, bytes, n);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) {
            status = fail_picture(w, "write", split, digit, name);
        } else {
            bytes += r;
            n -= (size_t)r;
        }
    }
    if (close(fd) < 0 && status == STK_OK) status = fail_picture(w, "write", split, digit, name);
    return status;
}

/* Draws, encodes and writes number i of train and test together. */
static stk_status make_picture(const writer *w, int64_t i, uint8_t *pixels, float *scratch)
{
    int split = i >= w->config.n_train, size = w->config.size;
    uint8_t *encoded = NULL;
    size_t n_bytes = 0;
    if (split) i -= w->config.n_train;
    stk_rng rng = stk_rng_make(w->config.seed, (uint64_t)split, (uint64_t)i, 0);
    stk_digit_draw((int)(i % N_CLASSES), &rng, size, pixels, scratch);
    stk_status status = stk_jpeg_encode(pixels, size, size, 1, w->config.quality, &encoded, &n_bytes);
    if (status == STK_OK) status = write_picture(w, split, i, encoded, n_bytes);
    free(encoded);
    return status;
}

static void run_thread(void *arg)
{
    writer *w = arg;
    size_t n_pixels = (size_t)w->config.size * (size_t)w->config.size;
    uint8_t *pixels = malloc(n_pixels);
    float *scratch = malloc(2 * n_pixels * sizeof(*scratch));
    stk_status status = pixels && scratch ? STK_OK : stk_fail_memory(9 * n_pixels);
    while (status == STK_OK && !atomic_load(&w->stop)) {
        int64_t first = atomic_fetch_add(&w->next, BLOCK), end = first + BLOCK;
        if (first >= w->total) break;
        if (end > w->total) end = w->total;
        for (int64_t i = first; i < end && status == STK_OK; i++)
            status = make_picture(w, i, pixels, scratch);
        if (status == STK_OK) atomic_fetch_add(&w->done, end - first);
    }
    free(pixels);
    free(scratch);
    stk_mutex_lock(&w->lock);
    if (status != STK_OK) {
        atomic_store(&w->stop, true);
        if (w->status == STK_OK) {
            w->status = status;
            snprintf(w->error_text, sizeof(w->error_text), "%s", stk_error_text());
        }
    }
    w->n_running--;
    stk_cond_signal(&w->changed);
    stk_mutex_unlock(&w->lock);
}

/* Starts the threads, reports until they end, and gives their first failure. */
static stk_status run_all(writer *w, stk_digits_progress_fn progress, void *user)
{
    stk_thread thread[MAX_THREADS] = {0};
    stk_status status = STK_OK;
    int n = w->config.n_threads ? w->config.n_threads : stk_n_cores();
    if (n > MAX_THREADS) n = MAX_THREADS;
    for (int i = 0; i < n && status == STK_OK; i++) {
        stk_mutex_lock(&w->lock);
        w->n_running++;
        stk_mutex_unlock(&w->lock);
        status = stk_thread_start(&thread[i], "stk-digits", false, run_thread, w);
        if (status == STK_OK) continue;
        atomic_store(&w->stop, true);
        stk_mutex_lock(&w->lock);
        w->n_running--;
        stk_mutex_unlock(&w->lock);
    }
    for (bool running = true; running;) {
        stk_mutex_lock(&w->lock);
        if (w->n_running > 0) stk_cond_wait_ms(&w->changed, &w->lock, REPORT_MS);
        running = w->n_running > 0;
        stk_mutex_unlock(&w->lock);
        if (progress && running && !progress(user, atomic_load(&w->done), w->total) && status == STK_OK) {
            status = stk_fail(STK_INTERRUPTED, "making '%s' was stopped", w->folder);
            atomic_store(&w->stop, true);
        }
    }
    for (int i = 0; i < n; i++)
        stk_thread_join(&thread[i]);
    if (status == STK_OK && w->status != STK_OK) status = stk_fail(w->status, "%s", w->error_text);
    return status;
}

/* --- folders --- */

/* Makes and opens the class folders of w->folder. */
static stk_status open_classes(writer *w)
{
    for (int s = 0; s < N_SPLITS; s++)
        for (int c = 0; c < N_CLASSES; c++) {
            char path[MAX_PATH + 16];
            snprintf(path, sizeof(path), "%s/%s/%d", w->folder, split_name[s], c);
            STK_RETURN_IF_ERROR(stk_dir_make(path));
            w->class_fd[s][c] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (w->class_fd[s][c] < 0)
                return stk_fail(STK_IO, "cannot open folder '%s': %s", path, stk_errno_text(errno));
        }
    return STK_OK;
}

static void close_classes(writer *w)
{
    for (int s = 0; s < N_SPLITS; s++)
        for (int c = 0; c < N_CLASSES; c++)
            if (w->class_fd[s][c] >= 0) close(w->class_fd[s][c]);
}

stk_status stk_digits_generate(const char *out_dir, const stk_digits_config *config, stk_digits_progress_fn progress,
                               void *user)
{
    stk_new_folder out = {.lock_fd = -1};
    bool have_lock = false, have_cond = false;
    writer w = {.config = config ? *config : stk_digits_config_default(), .folder = out.folder};
    stk_status status;
    memset(w.class_fd, -1, sizeof(w.class_fd));
    w.total = w.config.n_train + w.config.n_test;
    STK_RETURN_IF_ERROR(check_config(out_dir, &w.config));
    STK_TRY(stk_new_folder_begin(&out, out_dir));
    STK_TRY(stk_mutex_init(&w.lock));
    have_lock = true;
    STK_TRY(stk_cond_init(&w.changed));
    have_cond = true;
    STK_TRY(open_classes(&w));
    STK_TRY(run_all(&w, progress, user));
    STK_TRY(stk_new_folder_finish(&out, false));
done:
    close_classes(&w);
    stk_new_folder_end(&out, status);
    if (have_cond) stk_cond_destroy(&w.changed);
    if (have_lock) stk_mutex_destroy(&w.lock);
    if (status == STK_OK && progress) (void)progress(user, w.total, w.total);
    return status;
}
