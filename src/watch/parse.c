#include "watch/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole number at *p, which goes behind it; false: none, or out of range. */
static bool take(const char **p, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(*p, &end, 10);
    if (end == *p || errno != 0) return false;
    *p = end;
    *out = value;
    return true;
}

static const char *next_line(const char *p)
{
    p += strcspn(p, "\n");
    return *p ? p + 1 : p;
}

static int64_t add(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

bool stk_watch_parse_stat(const char *text, stk_watch_stat *out)
{
    /* The name may hold blanks and brackets: it ends with the last bracket. */
    enum { FIRST = 4, LAST = 39 };
    const char *open = strchr(text, '('), *close = strrchr(text, ')'), *p = text;
    int64_t field[LAST + 1] = {0};
    if (!open || !close || close < open || close[1] != ' ' || !close[2]) return false;
    if (!take(&p, &out->pid)) return false;
    snprintf(out->name, sizeof(out->name), "%.*s", (int)(close - open - 1 > 23 ? 23 : close - open - 1), open + 1);
    out->state = close[2];
    p = close + 3;
    for (int i = FIRST; i <= LAST; i++) {
        /* Addresses and limits may be larger than an int64 holds; nobody asks for those. */
        if (take(&p, &field[i])) continue;
        if (errno != ERANGE) return false;
        p += strspn(p, " ");
        p += strcspn(p, " ");
    }
    out->parent = field[4];
    out->group = field[5];
    out->session = field[6];
    out->minor_faults = field[10];
    out->major_faults = field[12];
    out->system_ticks = field[15];
    out->children_ticks = field[16] < 0 || field[17] < 0 ? -1 : add(field[16], field[17]);
    out->cpu_ticks = field[14] < 0 || field[15] < 0 ? -1 : add(field[14], field[15]);
    out->n_threads = field[20];
    out->start_ticks = field[22];
    out->resident_pages = field[24];
    out->last_cpu = field[39];
    return true;
}

bool stk_watch_parse_schedstat(const char *text, int64_t *run_ns, int64_t *waited_ns)
{
    return take(&text, run_ns) && take(&text, waited_ns) && *run_ns >= 0 && *waited_ns >= 0;
}

int64_t stk_watch_parse_key(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = text; *p; p = next_line(p)) {
        if (strncmp(p, key, n) || (p[n] != ' ' && p[n] != ':' && p[n] != '\t')) continue;
        const char *value = p + n + (p[n] == ':');
        int64_t number;
        value += strspn(value, " \t");
        return *value != '\n' && take(&value, &number) ? number : -1;
    }
    return -1;
}

int64_t stk_watch_parse_number(const char *text)
{
    int64_t number;
    /* Version 1 writes "no limit" as the largest multiple of a page. */
    return take(&text, &number) && number < INT64_MAX / 2 ? number : -1;
}

int64_t stk_watch_parse_pressure(const char *text, const char *kind)
{
    size_t n = strlen(kind);
    for (const char *p = text; *p; p = next_line(p)) {
        if (strncmp(p, kind, n) || p[n] != ' ') continue;
        const char *total = strstr(p, "total="), *end = next_line(p);
        int64_t us;
        if (!total || total >= end) return -1;
        total += 6;
        return take(&total, &us) ? us : -1;
    }
    return -1;
}

/* --- the machine --- */

bool stk_watch_parse_cpu_times(const char *text, stk_watch_cpu_times *out)
{
    /* user nice system idle iowait irq softirq steal */
    int64_t time[8] = {0};
    memset(out, 0, sizeof(*out));
    if (strncmp(text, "cpu ", 4)) return false;
    const char *p = text + 4;
    for (int i = 0; i < 8; i++)
        if (!take(&p, &time[i])) return false;
    for (int i = 0; i < 8; i++)
        if (time[i] < 0 || time[i] > INT64_MAX / 16) return false;
    out->busy = time[0] + time[1] + time[2] + time[5] + time[6];
    out->iowait = time[4];
    out->steal = time[7];
    for (p = next_line(text); !strncmp(p, "cpu", 3); p = next_line(p))
        out->n_cpus++;
    out->n_runnable = stk_watch_parse_key(p, "procs_running");
    out->n_forks = stk_watch_parse_key(p, "processes");
    return true;
}

bool stk_watch_parse_disks(const char *text, stk_watch_disks *out)
{
    char whole[64] = "", name[64];
    bool found = false;
    memset(out, 0, sizeof(*out));
    for (const char *p = text; *p; p = next_line(p)) {
        int64_t number[12];
        const char *q = p;
        int n = 0;
        if (!take(&q, &number[0]) || !take(&q, &number[1])) continue;
        if (sscanf(q, " %63s%n", name, &n) != 1) continue;
        q += n;
        /* Partitions follow their disk; loop, zram and dm devices lie on others or on none. */
        if (whole[0] && !strncmp(name, whole, strlen(whole))) continue;
        if (!strncmp(name, "loop", 4) || !strncmp(name, "ram", 3) || !strncmp(name, "zram", 4) ||
            !strncmp(name, "dm-", 3))
            continue;
        for (n = 0; n < 10 && take(&q, &number[n]) && number[n] >= 0; n++)
            ;
        if (n < 10) continue;
        memcpy(whole, name, sizeof(whole));
        out->read_sectors = add(out->read_sectors, number[2]);
        out->written_sectors = add(out->written_sectors, number[6]);
        out->busy_ms = add(out->busy_ms, number[9]);
        found = true;
    }
    return found;
}

bool stk_watch_parse_net(const char *text, int64_t *received_bytes, int64_t *sent_bytes)
{
    bool found = false;
    *received_bytes = *sent_bytes = 0;
    for (const char *p = text; *p; p = next_line(p)) {
        const char *name = p + strspn(p, " "), *colon = name + strcspn(name, ":\n");
        int64_t number[9];
        int n;
        if (*colon != ':') continue;
        found = true;
        if (colon - name == 2 && !strncmp(name, "lo", 2)) continue;
        const char *q = colon + 1;
        for (n = 0; n < 9 && take(&q, &number[n]) && number[n] >= 0; n++)
            ;
        if (n < 9) continue;
        *received_bytes = add(*received_bytes, number[0]);
        *sent_bytes = add(*sent_bytes, number[8]);
    }
    return found;
}

int64_t stk_watch_parse_cpu_list(const char *text, int64_t cpu, bool *has)
{
    int64_t n = 0;
    *has = false;
    for (const char *p = text + strspn(text, " \t"); *p && *p != '\n';) {
        int64_t first, last;
        if (*p < '0' || *p > '9' || !take(&p, &first)) return -1;
        last = first;
        if (*p == '-' && (p++, !take(&p, &last))) return -1;
        if (last < first || last > 1 << 20) return -1;
        *has = *has || (cpu >= first && cpu <= last);
        n = add(n, last - first + 1);
        if (*p == ',')
            p++;
        else if (*p && *p != '\n')
            return -1;
    }
    return n;
}

/* --- file systems --- */

bool stk_watch_parse_mount(const char *text, const char *path, char type[STK_WATCH_PATH], char point[STK_WATCH_PATH])
{
    size_t best = 0;
    for (const char *p = text; *p; p = next_line(p)) {
        /* 36 35 98:0 /root /mount options ... - type source */
        char at[STK_WATCH_PATH], kind[STK_WATCH_PATH];
        const char *end = next_line(p), *dash = strstr(p, " - ");
        if (!dash || dash >= end) continue;
        if (sscanf(p, "%*d %*d %*s %*s %511s", at) != 1 || sscanf(dash + 3, "%511s", kind) != 1) continue;
        size_t n = strcmp(at, "/") ? strlen(at) : 0;
        if (strncmp(path, at, n) || (path[n] != '/' && path[n] != 0)) continue;
        if (best > n + 1) continue;
        best = n + 1; /* later mounts lie on earlier ones */
        memcpy(type, kind, sizeof(kind));
        memcpy(point, at, sizeof(at));
    }
    return best > 0;
}

bool stk_watch_is_remote(const char *type)
{
    static const char *const kinds[] = {"nfs", "cifs",      "smb3", "fuse",     "ceph",  "lustre",   "gpfs", "beegfs",
                                        "9p",  "glusterfs", "afs",  "virtiofs", "pvfs2", "orangefs", NULL};
    /* Block devices that a program serves are disks to everybody else. */
    if (!strcmp(type, "fuseblk") || !strcmp(type, "fusectl") || !strcmp(type, "nfsd")) return false;
    for (int i = 0; kinds[i]; i++)
        if (!strncmp(type, kinds[i], strlen(kinds[i]))) return true;
    return false;
}

/* "0100007F:1F90", of IPv6 with 24 digits before. */
static bool parse_address(const char *word, int64_t *out)
{
    const char *colon = strchr(word, ':');
    char *end;
    if (!colon || colon - word < 8) return false;
    char address[9] = {0};
    memcpy(address, colon - 8, 8);
    *out = (int64_t)strtoul(address, &end, 16) << 16;
    if (*end) return false;
    long port = strtol(colon + 1, &end, 16);
    *out |= port & 0xffff;
    return !*end && port > 0 && port <= 0xffff;
}

bool stk_watch_parse_connection(const char *line, int64_t *inode, stk_watch_connection *out)
{
    char text[256], here[40], there[40], state[4];
    size_t n = strcspn(line, "\n");
    if (n >= sizeof(text)) n = sizeof(text) - 1;
    memcpy(text, line, n);
    text[n] = 0;
    return sscanf(text, "%*20s %39s %39s %3s %*s %*s %*s %*s %*s %" SCNd64, here, there, state, inode) == 4 &&
           !strcmp(state, "01") && parse_address(here, &out->here) && parse_address(there, &out->there);
}

bool stk_watch_parse_call(const char *text, stk_watch_call *out)
{
    const char *p = text;
    char *end;
    if (!take(&p, &out->number) || out->number < 0 || *p != ' ') return false;
    for (int i = 0; i < 4; i++, p = end) {
        out->argument[i] = (int64_t)strtoull(p, &end, 16);
        if (end == p) return false;
    }
    return true;
}

stk_watch_wait stk_watch_parse_wchan(const char *text)
{
    static const struct {
        const char *part;
        stk_watch_wait wait;
    } known[] = {
        {"swap", STK_WATCH_WAIT_SWAP},
        {"fuse", STK_WATCH_WAIT_REMOTE},
        {"request_wait", STK_WATCH_WAIT_REMOTE},
        {"rpc_", STK_WATCH_WAIT_REMOTE},
        {"nfs", STK_WATCH_WAIT_REMOTE},
        {"cifs", STK_WATCH_WAIT_REMOTE},
        {"ceph", STK_WATCH_WAIT_REMOTE},
        {"p9_", STK_WATCH_WAIT_REMOTE},
        {"folio_", STK_WATCH_WAIT_DISK},
        {"io_schedule", STK_WATCH_WAIT_DISK},
        {"wait_on_page", STK_WATCH_WAIT_DISK},
        {"wait_on_buffer", STK_WATCH_WAIT_DISK},
        {"submit_bio", STK_WATCH_WAIT_DISK},
        {"blk", STK_WATCH_WAIT_DISK},
        {"jbd2", STK_WATCH_WAIT_DISK},
        {"balance_dirty", STK_WATCH_WAIT_DISK},
        {"filemap", STK_WATCH_WAIT_DISK},
        {"page_cache", STK_WATCH_WAIT_DISK},
        {"ext4", STK_WATCH_WAIT_DISK},
        {"xfs", STK_WATCH_WAIT_DISK},
        {"btrfs", STK_WATCH_WAIT_DISK},
        {"throtl", STK_WATCH_WAIT_DISK},
        {"rq_qos", STK_WATCH_WAIT_DISK},
        {"futex", STK_WATCH_WAIT_LOCK},
        {"poll", STK_WATCH_WAIT_PEER},
        {"select", STK_WATCH_WAIT_PEER},
        {"pipe_write", STK_WATCH_WAIT_PIPE_OUT},
        {"pipe_r", STK_WATCH_WAIT_PIPE_IN},
        {"lock_inode_wait", STK_WATCH_WAIT_FILE_LOCK},
        {"wait_woken", STK_WATCH_WAIT_NET},
        {"pipe", STK_WATCH_WAIT_PEER},
        {"wait4", STK_WATCH_WAIT_CHILD},
        {"do_wait", STK_WATCH_WAIT_CHILD},
        {"sk_wait", STK_WATCH_WAIT_NET},
        {"unix_", STK_WATCH_WAIT_PIPE_IN},
        {"wait_for_more_packets", STK_WATCH_WAIT_NET},
        {"inet_csk_", STK_WATCH_WAIT_NET},
        {"inet_wait_for", STK_WATCH_WAIT_NET},
        {"sigsuspend", STK_WATCH_WAIT_PEER},
        {"nanosleep", STK_WATCH_WAIT_SLEEP},
        {"nvidia", STK_WATCH_WAIT_DEVICE},
        {"nvkms", STK_WATCH_WAIT_DEVICE},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strstr(text, known[i].part)) return known[i].wait;
    return STK_WATCH_WAIT_UNKNOWN;
}

const char *stk_watch_parse_framework(const char *maps)
{
    static const char *const known[][2] = {{"libtensorflow", "tensorflow"},
                                           {"_pywrap_tensorflow", "tensorflow"},
                                           {"libjax_", "jax"},
                                           {"jaxlib", "jax"},
                                           {"libtorch", "torch"},
                                           {"libstoker", "stoker"},
                                           {"/stoker\n", "stoker"},
                                           {NULL, NULL}};
    for (int i = 0; known[i][0]; i++)
        if (strstr(maps, known[i][0])) return known[i][1];
    return NULL;
}

bool stk_watch_is_python(const char *maps)
{
    return strstr(maps, "/libpython") || strstr(maps, "/python3") || strstr(maps, "/python\n");
}

static bool has_word(const char *text, size_t n, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (memmem(text, n, words[i], strlen(words[i]))) return true;
    return false;
}

static bool begins_with(const char *text, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (!strncmp(text, words[i], strlen(words[i]))) return true;
    return false;
}

/* Where files lie that hold code and that is_wanted: of a path of n bytes, and its last part. */
static int parse_code(const char *maps, bool (*is_wanted)(const char *path, size_t n, const char *file),
                      stk_watch_code *out, int most)
{
    int n = 0;
    size_t length;
    for (const char *line = maps; *line && n < most; line += length + (line[length] == '\n')) {
        length = strcspn(line, "\n");
        const char *path = memchr(line, '/', length), *file = memrchr(line, '/', length);
        uint64_t begin, end;
        char may_run;
        if (!file || sscanf(line, "%" SCNx64 "-%" SCNx64 " %*c%*c%c", &begin, &end, &may_run) != 3 || may_run != 'x')
            continue;
        if (is_wanted(path, length - (size_t)(path - line), file + 1)) out[n++] = (stk_watch_code){begin, end};
    }
    return n;
}

static bool is_openmp(const char *path, size_t n, const char *file)
{
    static const char *const names[] = {"libgomp", "libomp", "libiomp5", NULL};
    (void)path;
    (void)n;
    return begins_with(file, names);
}

int stk_watch_parse_openmp(const char *maps, stk_watch_code *out, int most)
{
    return parse_code(maps, is_openmp, out, most);
}

/* Libraries that both of them use say nothing. */
static bool is_feeding(const char *path, size_t n, const char *file)
{
    static const char *const own[] = {"/jaxlib/", "/jax/",         "/jax_", "/tensorflow/", "/keras/", "/ml_dtypes/",
                                      "/nvidia/", "libtensorflow", NULL};
    static const char *const common[] = {"libc.",     "libc-",    "libm.", "libm-",   "libpthread", "librt",    "libdl",
                                         "libstdc++", "libgcc_s", "ld-",   "libgomp", "libomp",     "libiomp5", NULL};
    return !has_word(path, n, own) && !begins_with(file, common);
}

int stk_watch_parse_feeding(const char *maps, stk_watch_code *out, int most)
{
    const char *framework = stk_watch_parse_framework(maps);
    bool is_meant = framework && (!strcmp(framework, "jax") || !strcmp(framework, "tensorflow"));
    return is_meant ? parse_code(maps, is_feeding, out, most) : 0;
}

static bool is_interpreter(const char *file, size_t n)
{
    return n > 7 && (!strncmp(file, "libpython", 9) || !strncmp(file, "python3", 7));
}

bool stk_watch_parse_interpreter(const char *maps, stk_watch_code *out)
{
    enum { MOST_ZEROS = 1 << 20 };
    size_t length;
    stk_watch_code last = {0, 0}; /* what has just been seen of it; what is zero at first follows without a name */
    *out = last;
    for (const char *line = maps; *line; line += length + (line[length] == '\n')) {
        length = strcspn(line, "\n");
        const char *file = memrchr(line, '/', length);
        uint64_t begin, end;
        char may_write;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*c%c", &begin, &end, &may_write) != 3) continue;
        bool is_named = memchr(line, '/', length) || memchr(line, '[', length);
        bool is_own = file && is_interpreter(file + 1, length - (size_t)(file + 1 - line));
        bool goes_on = (is_own || !is_named) && begin == last.end;
        if (may_write != 'w' || (!is_own && !goes_on)) {
            last = (stk_watch_code){0, 0};
            continue;
        }
        /* What has no name and lies behind that may be more than its own. */
        if (!is_own && end - begin > MOST_ZEROS) end = begin + MOST_ZEROS;
        last = (stk_watch_code){goes_on ? last.begin : begin, end};
        /* A small program may load the library, which has the most. */
        if (last.end - last.begin > out->end - out->begin) *out = last;
    }
    return out->end > out->begin;
}

/* --- NCCL --- */

int64_t stk_watch_parse_ras(const char *text)
{
    /* "... Rank 3 -- ..." after a heading that says that counts differ or that a rank is missing. */
    static const char *const trouble[] = {"lagging", "mismatch", "MISMATCH", "INCOMPLETE", "unresponsive", NULL};
    for (int i = 0; trouble[i]; i++) {
        const char *p = strstr(text, trouble[i]);
        for (; p && *p; p++) {
            int64_t rank;
            if (strncmp(p, "Rank ", 5) && strncmp(p, "rank ", 5)) continue;
            const char *q = p + 5;
            if (take(&q, &rank) && rank >= 0) return rank;
        }
    }
    return -1;
}
