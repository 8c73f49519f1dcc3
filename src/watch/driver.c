#include "watch/driver.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"

enum { OPEN_MS = 1000, READ_MS = 250, CLOSE_MS = 100, SILENT_MS = 1000 };

struct stk_watch_driver {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool is_busy, has_answer, is_over, is_left; /* guarded by lock */
    /* The thread's while is_busy, and the caller's otherwise. */
    stk_watch_nvml nvml;
    stk_watch_sample view; /* the job's processes as asked, the GPUs as answered */
    stk_watch_facts facts;
    bool is_slow;
    stk_status status;
    bool is_open; /* guarded by lock; from then on numbers and names of GPUs stay as they are */
    /* The caller's. */
    char *path;
    stk_watch_root root;
    size_t n_facts; /* of those told already */
    int64_t asked_ms;
    bool is_late;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void free_driver(stk_watch_driver *driver)
{
    stk_watch_nvml_close(&driver->nvml);
    stk_watch_sample_free(&driver->view);
    stk_watch_facts_free(&driver->facts);
    pthread_cond_destroy(&driver->changed);
    pthread_mutex_destroy(&driver->lock);
    free(driver->path);
    free((char *)driver->root.over);
    free((char *)driver->root.without);
    free(driver);
}

/* --- the thread --- */

static void *answer(void *user)
{
    stk_watch_driver *driver = user;
    stk_status status = stk_watch_nvml_open(&driver->nvml, driver->path, &driver->root, &driver->facts);
    pthread_mutex_lock(&driver->lock);
    for (;;) {
        driver->is_open = true;
        driver->status = status;
        driver->has_answer = true;
        driver->is_busy = false;
        pthread_cond_broadcast(&driver->changed);
        while (!driver->is_busy && !driver->is_over)
            pthread_cond_wait(&driver->changed, &driver->lock);
        if (driver->is_over) break;
        pthread_mutex_unlock(&driver->lock);
        status = stk_watch_nvml_read(&driver->nvml, driver->is_slow, &driver->view, &driver->facts);
        pthread_mutex_lock(&driver->lock);
    }
    bool is_left = driver->is_left;
    pthread_mutex_unlock(&driver->lock);
    if (is_left) free_driver(driver);
    return NULL;
}

/* Signals are for the thread that waits for the job. */
static int start_thread(stk_watch_driver *driver)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&driver->thread, NULL, answer, driver);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* --- the caller --- */

/* With the lock held: until the thread is done, or that long. */
static void wait_for(stk_watch_driver *driver, int ms)
{
    int64_t end_ms = now_ms() + ms;
    struct timespec end = {end_ms / 1000, end_ms % 1000 * 1000000};
    while (driver->is_busy && pthread_cond_timedwait(&driver->changed, &driver->lock, &end) == 0)
        ;
}

static bool copy_text(const char *text, char **out)
{
    *out = text ? strdup(text) : NULL;
    return !text || *out;
}

static stk_watch_driver *make_driver(const char *path, const stk_watch_root *root)
{
    pthread_condattr_t attributes;
    stk_watch_driver *driver = calloc(1, sizeof(*driver));
    if (!driver) return NULL;
    stk_watch_sample_init(&driver->view);
    pthread_mutex_init(&driver->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&driver->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (copy_text(path, &driver->path) && copy_text(root->over, (char **)&driver->root.over) &&
        copy_text(root->without, (char **)&driver->root.without))
        return driver;
    free_driver(driver);
    return NULL;
}

static void tell_facts(stk_watch_driver *driver, stk_watch_facts *facts)
{
    for (; driver->n_facts < driver->facts.n; driver->n_facts++) {
        const stk_watch_fact *fact = &driver->facts.fact[driver->n_facts];
        (void)stk_watch_facts_add(facts, fact->key, "%s", fact->text);
    }
}

stk_status stk_watch_driver_open(stk_watch_driver **out, const char *path, const stk_watch_root *root,
                                 stk_watch_facts *facts)
{
    *out = NULL;
    stk_watch_driver *driver = make_driver(path, root);
    if (!driver) return stk_fail_memory(sizeof(*driver));
    driver->is_busy = true;
    driver->asked_ms = now_ms();
    int error = start_thread(driver);
    if (error) {
        free_driver(driver);
        return stk_watch_facts_add(facts, "missing", "GPUs: no thread to ask NVIDIA's driver (%s)",
                                   stk_errno_text(error));
    }
    pthread_mutex_lock(&driver->lock);
    wait_for(driver, OPEN_MS);
    driver->is_late = driver->is_busy;
    if (!driver->is_busy) {
        tell_facts(driver, facts);
        driver->has_answer = false;
    }
    pthread_mutex_unlock(&driver->lock);
    *out = driver;
    return STK_OK;
}

/* With the lock held and the thread idle. */
static stk_status ask(stk_watch_driver *driver, bool is_slow, const stk_watch_sample *sample)
{
    driver->is_slow = is_slow;
    driver->asked_ms = now_ms();
    STK_RETURN_IF_ERROR(stk_watch_list_copy(&driver->view.processes, &sample->processes));
    driver->is_busy = true;
    pthread_cond_broadcast(&driver->changed);
    return STK_OK;
}

static stk_status take(stk_watch_driver *driver, stk_watch_sample *sample, stk_watch_facts *facts)
{
    driver->has_answer = false;
    tell_facts(driver, facts);
    if (driver->status != STK_OK) return stk_fail_memory(sizeof(stk_watch_gpu));
    for (size_t i = 0; i < driver->view.processes.n; i++) {
        const stk_watch_process *seen = stk_watch_process_at(&driver->view, i);
        stk_watch_process *own = stk_watch_list_find(&sample->processes, seen->id);
        if (!own) continue;
        if (seen->holds_gpu == 1) own->holds_gpu = 1;
        own->gpu_mb = seen->gpu_mb;
        own->gpu_busy_permille = seen->gpu_busy_permille;
    }
    return stk_watch_list_copy(&sample->gpus, &driver->view.gpus);
}

stk_status stk_watch_driver_read(stk_watch_driver *driver, bool is_slow, stk_watch_sample *sample,
                                 stk_watch_facts *facts)
{
    stk_status status = STK_OK;
    if (!driver) return STK_OK;
    pthread_mutex_lock(&driver->lock);
    /* A late answer is used, though it is old: it may always be late. */
    bool is_idle = !driver->is_busy && !driver->has_answer;
    if (is_idle && driver->nvml.n_gpus > 0) status = ask(driver, is_slow, sample);
    if (!driver->is_late) wait_for(driver, READ_MS);
    driver->is_late = driver->is_busy;
    if (driver->is_busy)
        sample->gpus.n = 0;
    else if (status == STK_OK && driver->has_answer)
        status = take(driver, sample, facts);
    pthread_mutex_unlock(&driver->lock);
    if (status == STK_OK && driver->is_late && now_ms() - driver->asked_ms >= SILENT_MS)
        status = stk_watch_facts_add(facts, "missing",
                                     "GPUs: no answer from NVIDIA's driver (does nvidia-smi hang, too? dmesg tells Xid "
                                     "errors, and a reboot may be needed)");
    return status;
}

int stk_watch_driver_labels(stk_watch_driver *driver, const stk_watch_gpu_label **out)
{
    *out = NULL;
    if (!driver) return 0;
    pthread_mutex_lock(&driver->lock);
    bool is_open = driver->is_open;
    pthread_mutex_unlock(&driver->lock);
    if (!is_open) return 0;
    *out = driver->nvml.label;
    return driver->nvml.n_gpus;
}

void stk_watch_driver_close(stk_watch_driver *driver)
{
    if (!driver) return;
    pthread_mutex_lock(&driver->lock);
    driver->is_over = true;
    pthread_cond_broadcast(&driver->changed);
    wait_for(driver, driver->is_late ? 0 : CLOSE_MS);
    bool is_left = driver->is_left = driver->is_busy;
    pthread_t thread = driver->thread;
    pthread_mutex_unlock(&driver->lock);
    if (is_left) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    free_driver(driver);
}
