#include "data/remote/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef STK_HAS_CRYPTO
#include <openssl/evp.h>
#endif

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/new_file.h"
#include "base/text.h"
#include "base/thread.h"

enum { SUM_BYTES = 8 };

/* Set once, when the first block is asked for. */
static stk_once root_once = STK_ONCE_INIT;
static char root[PATH_MAX - 64]; /* "": there is none */
static uint64_t limit;
static uint64_t started; /* tells this process from others */

/* Guards what follows. */
static stk_mutex lock;
static uint64_t n_written; /* bytes since the cache was last measured; UINT64_MAX: never */

bool stk_cache_parse_limit(const char *text, uint64_t *out)
{
    static const struct {
        const char *name;
        int shift;
    } units[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno || end == text || text[0] == '-') return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (!strcmp(end, units[i].name)) {
            *out = (uint64_t)n << units[i].shift;
            return *out >> units[i].shift == n;
        }
    return false;
}

static void find_root(void)
{
    char folder[PATH_MAX];
    const char *wanted = getenv("STOKER_CACHE_LIMIT");
    limit = (uint64_t)16 << 30;
    if (wanted && wanted[0]) (void)stk_cache_parse_limit(wanted, &limit);
    n_written = UINT64_MAX;
    started = (uint64_t)stk_clock_ns();
    if (stk_mutex_init(&lock) != STK_OK || stk_cache_folder(folder, sizeof(folder)) != STK_OK) return;
    if (snprintf(root, sizeof(root), "%s/remote", folder) >= (int)sizeof(root) || stk_dir_make(root) != STK_OK)
        root[0] = 0;
}

bool stk_cache_is_there(void)
{
    stk_once_run(&root_once, find_root);
    return root[0] != 0;
}

int64_t stk_cache_blocks_ahead(void)
{
    int64_t n = stk_cache_is_there() ? (int64_t)(limit / 4 / STK_BLOCK_BYTES) : 0;
    return n < 16 ? 0 : n;
}

static void block_path(const stk_block_place *place, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s/%016" PRIx64 "%016" PRIx64 "/%" PRIu64, root, place->id[0], place->id[1],
             place->number);
}

static uint64_t sum_of(const stk_block_place *place, const void *data)
{
    return stk_hash64(data, place->n_bytes, place->id[0] ^ place->number);
}

/* --- names --- */

static void add_part(stk_text *out, const char *part)
{
    stk_text_add(out, "%zu:%s\n", strlen(part), part);
}

/* Without libcrypto a block is known to this process alone: no other hash here stands against those who choose a text.
 */
static stk_status hash_names(const stk_text *text, uint64_t id[2])
{
#ifdef STK_HAS_CRYPTO
    unsigned char sum[EVP_MAX_MD_SIZE];
    if (EVP_Digest(text->data, text->n, sum, NULL, EVP_sha256(), NULL) != 1)
        return stk_fail(STK_UNSUPPORTED, "libcrypto makes no SHA-256");
    memcpy(id, sum, 2 * sizeof(*id));
#else
    for (uint64_t i = 0; i < 2; i++)
        id[i] = stk_hash64(text->data, text->n, started ^ ((uint64_t)getpid() << 32) ^ i);
#endif
    return STK_OK;
}

stk_status stk_cache_id(const stk_cache_key *key, uint64_t id[2])
{
    stk_text text = {0};
    stk_once_run(&root_once, find_root);
    add_part(&text, key->store);
    add_part(&text, key->path);
    add_part(&text, key->etag);
    add_part(&text, key->modified);
    stk_text_add(&text, "%" PRIu64, key->n_bytes);
    if (!key->etag[0] && !key->modified[0]) stk_text_add(&text, " %ld %" PRIu64, (long)getpid(), started);
    stk_status status = stk_text_status(&text);
    if (status == STK_OK) status = hash_names(&text, id);
    stk_text_free(&text);
    return status;
}

/* --- reading --- */

static bool read_all(int fd, size_t at, size_t n, void *dst)
{
    for (size_t got = 0; got < n;) {
        ssize_t r = pread(fd, (char *)dst + got, n - got, (off_t)(at + got));
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) return false;
        got += (size_t)r;
    }
    return true;
}

static bool check_block(const stk_block_place *place, int fd)
{
    uint64_t sum;
    uint8_t *data = malloc(place->n_bytes + SUM_BYTES);
    bool ok = data && read_all(fd, 0, place->n_bytes + SUM_BYTES, data);
    if (ok) {
        memcpy(&sum, data + place->n_bytes, SUM_BYTES);
        ok = sum == sum_of(place, data);
    }
    free(data);
    return ok;
}

bool stk_cache_read(const stk_block_place *place, bool check, size_t at, size_t n, void *dst)
{
    char path[PATH_MAX];
    if (!stk_cache_is_there()) return false;
    block_path(place, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool whole = !check || check_block(place, fd);
    /* The time of its last use, once for each process. */
    if (check && whole) (void)futimens(fd, NULL);
    bool ok = whole && read_all(fd, at, n, dst);
    close(fd);
    if (!whole) (void)unlink(path);
    return ok;
}

/* The time of its last use, as far as an hour is near enough: a system call less for most reads. */
static void note_use(int fd)
{
    struct stat info;
    if (fstat(fd, &info) == 0 && time(NULL) - info.st_mtim.tv_sec > 3600) (void)futimens(fd, NULL);
}

bool stk_cache_read_whole(const stk_block_place *place, void *dst)
{
    char path[PATH_MAX];
    uint64_t sum;
    if (!stk_cache_is_there()) return false;
    block_path(place, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool ok = read_all(fd, 0, place->n_bytes, dst) && read_all(fd, place->n_bytes, SUM_BYTES, &sum) &&
              sum == sum_of(place, dst);
    if (ok) note_use(fd);
    close(fd);
    if (!ok) (void)unlink(path);
    return ok;
}

bool stk_cache_has(const stk_block_place *place)
{
    char path[PATH_MAX];
    if (!stk_cache_is_there()) return false;
    block_path(place, path);
    return access(path, R_OK) == 0;
}

/* --- keeping to the limit --- */

typedef struct block_file {
    char *path;
    struct timespec used;
    uint64_t n_bytes;
} block_file;

typedef struct block_list {
    block_file *file;
    size_t n, capacity;
    uint64_t n_bytes;
} block_list;

static bool add_block(block_list *list, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return true; /* gone meanwhile */
    if (list->n == list->capacity) {
        size_t grown = 2 * list->capacity + 256;
        block_file *file = realloc(list->file, grown * sizeof(*file));
        if (!file) return false;
        list->file = file;
        list->capacity = grown;
    }
    block_file *file = &list->file[list->n];
    *file = (block_file){strdup(path), info.st_mtim, (uint64_t)info.st_size};
    if (!file->path) return false;
    list->n++;
    list->n_bytes += file->n_bytes;
    return true;
}

/* The names of what block_path gives, and gave with 16 digits; whatever else somebody put there is not ours to drop. */
static bool is_block(const char *folder, const char *name)
{
    size_t n = strlen(folder);
    return (n == 32 || n == 16) && strspn(folder, "0123456789abcdef") == n && name[0] &&
           strspn(name, "0123456789") == strlen(name);
}

static bool list_blocks(block_list *list)
{
    stk_names folders, names;
    bool ok = true;
    if (stk_dir_list(root, &folders) != STK_OK) return false;
    for (size_t i = 0; i < folders.n && ok; i++) {
        char folder[PATH_MAX], path[PATH_MAX];
        if (stk_path_join(folder, sizeof(folder), root, folders.name[i]) != STK_OK) continue;
        if (stk_dir_list(folder, &names) != STK_OK) continue;
        for (size_t k = 0; k < names.n && ok; k++)
            if (is_block(folders.name[i], names.name[k]) &&
                stk_path_join(path, sizeof(path), folder, names.name[k]) == STK_OK)
                ok = add_block(list, path);
        stk_names_free(&names);
    }
    stk_names_free(&folders);
    return ok;
}

static int compare_use(const void *a, const void *b)
{
    const struct timespec *x = &((const block_file *)a)->used, *y = &((const block_file *)b)->used;
    if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* Down to nine tenths of the limit, so that it is not to be done again soon. Who reads a block meanwhile has it open.
 */
static void drop_oldest(void)
{
    block_list list = {0};
    if (list_blocks(&list) && list.n_bytes > limit) {
        qsort(list.file, list.n, sizeof(*list.file), compare_use);
        for (size_t i = 0; i < list.n && list.n_bytes > limit / 10 * 9; i++)
            if (unlink(list.file[i].path) == 0 || errno == ENOENT) list.n_bytes -= list.file[i].n_bytes;
    }
    for (size_t i = 0; i < list.n; i++)
        free(list.file[i].path);
    free(list.file);
}

/* Before n more bytes: measured at first, and each time a sixteenth of the limit has been added. */
static void make_room(size_t n)
{
    stk_mutex_lock(&lock);
    bool due = n_written == UINT64_MAX || n_written + n > limit / 16;
    n_written = due ? 0 : n_written + n;
    stk_mutex_unlock(&lock);
    if (due) drop_oldest();
}

/* --- writing --- */

void stk_cache_write(const stk_block_place *place, const void *data)
{
    char path[PATH_MAX];
    stk_new_file file;
    uint64_t sum = sum_of(place, data);
    if (!stk_cache_is_there() || place->n_bytes + SUM_BYTES > limit) return;
    make_room(place->n_bytes + SUM_BYTES);
    block_path(place, path);
    char *slash = strrchr(path, '/');
    *slash = 0;
    bool ok = stk_dir_make(path) == STK_OK;
    *slash = '/';
    if (!ok || stk_new_file_begin(&file, path) != STK_OK) return;
    if (stk_write_all(file.fd, path, data, place->n_bytes) == STK_OK &&
        stk_write_all(file.fd, path, &sum, SUM_BYTES) == STK_OK)
        (void)stk_new_file_finish(&file, false);
    stk_new_file_end(&file);
}
