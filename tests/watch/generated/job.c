/* Jobs in plain C for tests/watch/generated/generate.py: job MODE SECONDS WORK_MS WAIT_MS JITTER N PATH. Each step the
 * driver computes for WORK_MS and waits for WAIT_MS in the mode's own way; JITTER is how much both vary, from 0 to 1.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double work_s, wait_s, jitter;
static int n_threads;
static const char *path;
static unsigned seed = 1;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double vary(double s)
{
    return s * (1 + jitter * (2.0 * rand_r(&seed) / RAND_MAX - 1));
}

static volatile double sink;

static void compute(double s)
{
    double x = 1, end = now() + s;
    while (now() < end)
        for (int i = 0; i < 20000; i++)
            x = x * 1.0000001 + 1e-9;
    sink = x;
}

static void doze(double s)
{
    struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
    nanosleep(&t, NULL);
}

static int reach(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) exit(4);
    return fd;
}

static void grow_by(int n_mib)
{
    char *p = n_mib ? malloc((size_t)n_mib << 20) : NULL;
    for (size_t i = 0; p && i < (size_t)n_mib << 20; i += 4096)
        ((volatile char *)p)[i] = 1;
}

/* What comes before the first step: data that are fetched from a slow server, or loaded and prepared by one thread. */
static void come_late(void)
{
    char buffer[65536];
    const char *port = getenv("GENERATED_DOWNLOAD"), *load = getenv("GENERATED_LOAD");
    int fd = port ? reach(atoi(port)) : -1;
    while (port && read(fd, buffer, sizeof(buffer)) > 0)
        ;
    if (port) close(fd);
    for (double end = now() + (load ? atof(load) : 0), part = 0; now() < end; part++) {
        compute(0.02);
        grow_by(part < 200 ? 1 : 0);
    }
}

/* A queue of one between a feeding thread and the driver. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int n_ready;
static int feeds_asleep;

static void *feed(void *unused)
{
    for (;;) {
        feeds_asleep ? doze(vary(wait_s)) : compute(vary(wait_s));
        pthread_mutex_lock(&lock);
        while (n_ready > 0)
            pthread_cond_wait(&changed, &lock);
        n_ready = 1;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void take(void)
{
    pthread_mutex_lock(&lock);
    while (n_ready == 0)
        pthread_cond_wait(&changed, &lock);
    n_ready = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Threads that all compute a part of each step, and meet at its end. */
static pthread_barrier_t barrier;

static void *share(void *unused)
{
    for (;;) {
        long n = (long)(vary(work_s) * 2e8);
        double x = 1;
        while (n-- > 0)
            x = x * 1.0000001 + 1e-9;
        sink = x;
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

static void start(int n, void *(*run)(void *))
{
    pthread_t thread;
    for (int i = 0; i < n; i++)
        if (pthread_create(&thread, NULL, run, NULL) != 0) exit(3);
}

/* Whole messages of 4096 bytes. */
static void read_message(int fd)
{
    char buffer[4096];
    for (size_t n = 0; n < sizeof(buffer);) {
        ssize_t got = read(fd, buffer + n, sizeof(buffer) - n);
        if (got <= 0) exit(0);
        n += (size_t)got;
    }
}

static void write_message(int fd, size_t n)
{
    static char buffer[1 << 20];
    for (size_t done = 0; done < n;) {
        ssize_t put = write(fd, buffer, n - done < sizeof(buffer) ? n - done : sizeof(buffer));
        if (put <= 0) exit(5);
        done += (size_t)put;
    }
}

static void touch_pages(double s)
{
    enum { BYTES = 8 << 20 };
    for (double end = now() + s; now() < end;) {
        char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(p, BYTES, MADV_NOHUGEPAGE);
        for (size_t i = 0; i < BYTES; i += 4096)
            p[i] = 1;
        munmap(p, BYTES);
    }
}

static void call_kernel(double s)
{
    char buffer[16384];
    int fd = open("/dev/urandom", O_RDONLY);
    for (double end = now() + s; now() < end;)
        if (read(fd, buffer, sizeof(buffer)) <= 0) exit(6);
    close(fd);
}

static void save(void)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    write_message(fd, (size_t)n_threads << 20);
    fsync(fd);
    close(fd);
}

static void read_cold(void)
{
    static int i;
    char name[512], buffer[65536];
    snprintf(name, sizeof(name), "%s/%03d", path, i++ % 200);
    int fd = open(name, O_RDONLY);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    while (read(fd, buffer, sizeof(buffer)) > 0)
        ;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

/* Memory that is never given back, n_threads MiB a second. */
static void grow(double s)
{
    static double owed;
    for (owed += s * n_threads; owed >= 1; owed--)
        grow_by(1);
}

/* Code that is made while the job runs, as a compiler in its own process makes it. */
static void make_code(double s)
{
    enum { BYTES = 8192 };
    char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    compute(s);
    memset(p, 0xc3, BYTES);
    if (mprotect(p, BYTES, PROT_READ | PROT_EXEC) != 0) exit(7);
}

/* A cache that is filled at first and then stays. */
static void *fill_cache(void *unused)
{
    for (int i = 0; i < 250; i++) {
        grow_by(1);
        doze(0.012);
    }
    return unused;
}

int main(int argc, char **argv)
{
    if (argc < 8) return 2;
    const char *mode = argv[1];
    work_s = atof(argv[3]) * 1e-3;
    wait_s = atof(argv[4]) * 1e-3;
    jitter = atof(argv[5]);
    n_threads = atoi(argv[6]);
    path = argv[7];
    int fd = -1;
    if (strcmp(mode, "feeder") != 0) come_late();
    double begin = now(), end = begin + atof(argv[2]);
    if (!strcmp(mode, "feeder")) { /* the other side of a pipe: no driver */
        for (;; write_message(1, 4096))
            compute(vary(wait_s));
    }
    if (!strcmp(mode, "threads") || !strcmp(mode, "sleeper")) {
        feeds_asleep = !strcmp(mode, "sleeper");
        start(1, feed);
    }
    if (!strcmp(mode, "all")) {
        pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
        start(n_threads - 1, share);
    }
    if (!strcmp(mode, "network")) fd = reach(atoi(path));
    if (!strcmp(mode, "fifo")) fd = open(path, O_RDONLY);
    if (!strcmp(mode, "flock")) fd = open(path, O_RDWR);
    if (getenv("GENERATED_CACHE")) start(1, fill_cache);
    while (now() < end) {
        if (!strcmp(mode, "all")) {
            long n = (long)(vary(work_s) * 2e8);
            double x = 1;
            while (n-- > 0)
                x = x * 1.0000001 + 1e-9;
            sink = x;
            pthread_barrier_wait(&barrier);
            continue;
        }
        compute(vary(work_s));
        if (!strcmp(mode, "stuck") && now() > begin + 0.5 * (end - begin)) { /* for a lock that nobody gives back */
            pthread_mutex_lock(&lock);
            pthread_mutex_lock(&lock);
        }
        if (!strcmp(mode, "timer")) doze(vary(wait_s));
        if (!strcmp(mode, "threads") || !strcmp(mode, "sleeper")) take();
        if (!strcmp(mode, "network") || !strcmp(mode, "fifo")) read_message(fd);
        if (!strcmp(mode, "stdin")) read_message(0);
        if (!strcmp(mode, "flock")) {
            flock(fd, LOCK_EX);
            flock(fd, LOCK_UN);
        }
        if (!strcmp(mode, "output")) write_message(1, 65536);
        if (!strcmp(mode, "faults")) touch_pages(vary(wait_s));
        if (!strcmp(mode, "kernel")) call_kernel(vary(wait_s));
        if (!strcmp(mode, "save")) save();
        if (!strcmp(mode, "grow")) grow(work_s);
        if (!strcmp(mode, "jit")) make_code(vary(wait_s));
        if (!strcmp(mode, "disk")) read_cold();
    }
    return 0;
}
