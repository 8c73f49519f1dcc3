/* See measured.h. */
#include "device/cpu/measured.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/processor.h"
#include "base/text.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/timing.h"
#include "device/cpu/tuned/tuned.h"
#include "device/kept.h"

enum {
    MOST_IN = 3,
    LEAST_ROWS = 512,        /* pixels of all images, or rows of a product, where the call has as many */
    WORK_A_THREAD = 1 << 26, /* multiply-adds, where the call has as many: some milliseconds */
    TURNS = 3                /* of a closer look */
};
static const double SECONDS = 0.8, GLANCE_S = 0.001, CLOSE_S = 0.001, HOPELESS = 1.15;
/* A way must take so much less than the list's, so that noise changes nothing. */
static const double CLEARLY = 0.93;
static const char FOLDER[] = "kernels";
/* A call that goes by its list: none is clearly better; nobody knows, since there was no time for it. */
static const char LIST[] = "-", UNKNOWN[] = "?";

/* A call with few images or rows. */
typedef struct small_call {
    stk_attrs attrs;
    stk_tensor_desc in[MOST_IN], out;
    stk_op_call call;
} small_call;

typedef struct choice {
    char *call;   /* owned: what the small call is, as text */
    char *way;    /* owned; NULL: not judged yet */
    bool is_used; /* by a program of this process, or of the run that goes on */
    double work;
    small_call small; /* while it is not judged; call's pointers are set when it is */
} choice;

struct stk_measured {
    char *about; /* owned: what it was measured on */
    int n_threads;
    choice *choice;
    int n, capacity;
};

bool stk_measured_wanted(stk_isa isa)
{
    const char *wanted = getenv("STOKER_KERNELS");
    if (wanted && !strcmp(wanted, "measured")) return true;
    return !(wanted && wanted[0]) && !stk_tuned_of(isa);
}

/* --- calls --- */

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* As many of n images or rows as are worth timing. rows, work: of one of them. */
static int64_t few_of(int64_t n, int64_t rows, int64_t work, int n_threads)
{
    int64_t by_rows = divide_up(LEAST_ROWS, rows), by_work = divide_up((int64_t)WORK_A_THREAD * n_threads, work);
    int64_t few = by_rows > by_work ? by_rows : by_work;
    few = divide_up(few, 2 * n_threads) * 2 * n_threads;
    return few < n ? few : n;
}

/* False: no call that is measured. */
static bool make_small(const stk_op_call *call, int n_threads, small_call *s)
{
    int64_t z[STK_TUNED_N_SIZES];
    stk_dtype dtype = call->n_in > 0 ? call->in[0].dtype : STK_F64;
    if (dtype != STK_F32 && dtype != STK_BF16 && dtype != STK_F16) return false;
    if (call->n_in > MOST_IN || call->n_out != 1 || !stk_tuned_sizes(call, z)) return false;
    s->attrs = *call->attrs;
    memcpy(s->in, call->in, (size_t)call->n_in * sizeof(s->in[0]));
    s->out = call->out[0];
    s->call = (stk_op_call){.op = call->op, .n_in = call->n_in, .n_out = 1};
    bool is_product = call->op == STK_OP_matmul, turned = is_product && z[STK_TUNED_turned_a];
    int64_t *a = &s->in[0].shape.dim[0], n = *a;
    if (n < 1) return false;
    int64_t rows = is_product ? divide_up(z[STK_TUNED_batches] * (turned ? z[STK_TUNED_k] : z[STK_TUNED_m]), n)
                              : z[STK_TUNED_pixels];
    int64_t few = few_of(n, rows > 0 ? rows : 1, divide_up(z[STK_TUNED_work], n), n_threads);
    /* The first axis: of a and c, or of a and b where it is what is summed over. */
    bool sums = call->op == STK_OP_conv2d_grad_weight || (turned && s->in[0].shape.rank == 2);
    bool shares_axis = is_product && s->in[1].shape.rank > 2;
    *a = few;
    if (sums || shares_axis) s->in[1].shape.dim[0] = few;
    if (!sums) s->out.shape.dim[0] = few;
    if (call->op == STK_OP_conv2d_grad_data) s->attrs.shape.dim[0] = few;
    return true;
}

/* The pointers, once it lies where it stays. */
static stk_op_call *call_of(small_call *s)
{
    s->call.attrs = &s->attrs;
    s->call.in = s->in;
    s->call.out = &s->out;
    return &s->call;
}

static void add_desc(stk_tensor_desc desc, stk_text *out)
{
    stk_text_add(out, "%s[", stk_dtype_name(desc.dtype));
    for (int i = 0; i < desc.shape.rank; i++)
        stk_text_add(out, "%s%" PRId64, i ? "," : "", desc.shape.dim[i]);
    stk_text_add(out, "]");
}

/* "conv2d kernel=3x3 pad=1:1,1:1 f32[4,32,32,64] f32[64,3,3,64] -> f32[4,32,32,64]" */
static void print_call(const small_call *s, stk_text *out)
{
    const stk_op_rule *rule = stk_op_get_rule(s->call.op);
    stk_text_add(out, "%s", stk_op_name(s->call.op));
    if (rule->print) rule->print(&s->attrs, out);
    for (int i = 0; i < s->call.n_in; i++) {
        stk_text_add(out, " ");
        add_desc(s->in[i], out);
    }
    stk_text_add(out, " -> ");
    add_desc(s->out, out);
}

/* --- what is known --- */

static choice *find(const stk_measured *m, const char *call)
{
    for (int i = 0; i < m->n; i++)
        if (!strcmp(m->choice[i].call, call)) return &m->choice[i];
    return NULL;
}

static stk_status add(stk_measured *m, const char *call, const char *way, choice **out)
{
    if (m->n == m->capacity) {
        int capacity = m->capacity ? 2 * m->capacity : 32;
        choice *all = realloc(m->choice, (size_t)capacity * sizeof(*all));
        if (!all) return stk_fail_memory((size_t)capacity * sizeof(*all));
        m->choice = all;
        m->capacity = capacity;
    }
    choice *c = &m->choice[m->n];
    *c = (choice){.call = strdup(call), .way = way ? strdup(way) : NULL};
    if (!c->call || (way && !c->way)) {
        free(c->call);
        free(c->way);
        return stk_fail_memory(strlen(call) + 1);
    }
    m->n++;
    if (out) *out = c;
    return STK_OK;
}

static void forget(stk_measured *m)
{
    for (int i = 0; i < m->n; i++) {
        free(m->choice[i].call);
        free(m->choice[i].way);
    }
    free(m->choice);
    m->choice = NULL;
    m->n = m->capacity = 0;
}

void stk_measured_free(stk_measured *m)
{
    if (!m) return;
    forget(m);
    free(m->about);
    free(m);
}

static bool is_other(const choice *c)
{
    return c->way && strcmp(c->way, LIST) != 0 && strcmp(c->way, UNKNOWN) != 0;
}

const char *stk_measured_way(const stk_measured *m, const stk_op_call *call)
{
    small_call s;
    stk_text text = {0};
    if (!m || m->n == 0 || !make_small(call, m->n_threads, &s)) return NULL;
    print_call(&s, &text);
    const choice *c = find(m, stk_text_get(&text));
    stk_text_free(&text);
    return c && is_other(c) ? c->way : NULL;
}

void stk_measured_count(const stk_measured *m, int *n, int *n_other)
{
    *n = *n_other = 0;
    for (int i = 0; i < m->n; i++) {
        const choice *c = &m->choice[i];
        *n += c->is_used && c->way && strcmp(c->way, UNKNOWN) != 0;
        *n_other += c->is_used && is_other(c);
    }
}

/* --- as text --- */

static const char MARK[] = "# kernels measured on ";

/* What programs use, or all that is known. */
static void print(const stk_measured *m, bool of_programs, stk_text *out)
{
    stk_text_add(out, "%s%s\n", MARK, m->about);
    for (int i = 0; i < m->n; i++) {
        const choice *c = &m->choice[i];
        bool counts = c->way && (of_programs ? c->is_used : strcmp(c->way, UNKNOWN) != 0);
        if (counts) stk_text_add(out, "%s\t%s\n", c->way, c->call);
    }
}

void stk_measured_print(const stk_measured *m, stk_text *out)
{
    print(m, true, out);
}

static stk_status take_line(stk_measured *m, char *line, int number)
{
    char *tab = strchr(line, '\t');
    if (!tab || tab == line || !tab[1]) return stk_fail(STK_CORRUPT, "line %d is not 'WAY<tab>CALL'", number);
    *tab = 0;
    return find(m, tab + 1) ? STK_OK : add(m, tab + 1, line, NULL);
}

stk_status stk_measured_take(stk_measured *m, const char *text)
{
    stk_measured taken = {0};
    stk_status status = STK_OK;
    int number = 1;
    char *copy = strdup(text), *rest = copy;
    if (!copy) return stk_fail_memory(strlen(text) + 1);
    char *line = strsep(&rest, "\n");
    if (strncmp(line, MARK, strlen(MARK)) != 0) STK_TRY(stk_fail(STK_CORRUPT, "line 1 is not '%s...'", MARK));
    if (strcmp(line + strlen(MARK), m->about) != 0)
        STK_TRY(stk_fail(STK_MISMATCH, "they were measured on %.200s, and this is %s", line + strlen(MARK), m->about));
    while ((line = strsep(&rest, "\n"))) {
        number++;
        if (line[0]) STK_TRY(take_line(&taken, line, number));
    }
    for (int i = 0; i < taken.n; i++)
        taken.choice[i].is_used = true;
    forget(m);
    m->choice = taken.choice;
    m->n = taken.n;
    m->capacity = taken.capacity;
    taken = (stk_measured){0};
done:
    forget(&taken);
    free(copy);
    return status;
}

/* A file for each processor, library and number of threads. */
static void name_file(const stk_measured *m, char out[32])
{
    snprintf(out, 32, "%016" PRIx64, stk_hash64(m->about, strlen(m->about), 0));
}

static void read_cache(stk_measured *m)
{
    char name[32], *text;
    void *bytes;
    size_t n;
    name_file(m, name);
    if (!stk_kept_read(FOLDER, name, &bytes, &n, NULL)) return;
    text = strndup(bytes, n);
    /* What cannot be read is measured again. */
    if (text) (void)stk_measured_take(m, text);
    for (int i = 0; i < m->n; i++)
        m->choice[i].is_used = false;
    free(text);
    free(bytes);
}

static void write_cache(const stk_measured *m)
{
    char name[32];
    stk_text text = {0};
    name_file(m, name);
    print(m, false, &text);
    if (stk_text_status(&text) == STK_OK) (void)stk_kept_write(FOLDER, name, text.data, text.n);
    stk_text_free(&text);
}

stk_status stk_measured_new(const stk_cpu_device *device, stk_measured **out)
{
    char processor[200];
    stk_text about = {0};
    stk_measured *m = calloc(1, sizeof(*m));
    if (!m) return stk_fail_memory(sizeof(*m));
    if (!stk_processor_name(processor, sizeof(processor))) snprintf(processor, sizeof(processor), "unknown processor");
    m->n_threads = device->base.n_threads;
    stk_text_add(&about, "%s: ", processor);
    stk_cpu_describe(device, &about);
    stk_text_add(&about, ", Stoker %s", STK_VERSION);
    if (stk_text_status(&about) == STK_OK) m->about = strdup(stk_text_get(&about));
    stk_text_free(&about);
    if (!m->about) {
        free(m);
        return stk_fail_memory(sizeof(processor));
    }
    read_cache(m);
    *out = m;
    return STK_OK;
}

/* --- measuring --- */

stk_status stk_measured_expect(stk_measured *m, const stk_op_call *call)
{
    small_call s;
    int64_t z[STK_TUNED_N_SIZES];
    stk_text text = {0};
    stk_status status;
    if (!make_small(call, m->n_threads, &s)) return STK_OK;
    print_call(&s, &text);
    STK_TRY(stk_text_status(&text));
    choice *c = find(m, stk_text_get(&text));
    if (!c) {
        STK_TRY(add(m, stk_text_get(&text), NULL, &c));
        c->small = s;
    }
    c->is_used = true;
    (void)stk_tuned_sizes(call, z);
    if (!c->way) c->work += (double)z[STK_TUNED_work];
done:
    stk_text_free(&text);
    return status;
}

static int compare_work(const void *a, const void *b)
{
    const choice *x = *(choice *const *)a, *y = *(choice *const *)b;
    return x->work != y->work ? (x->work < y->work) - (x->work > y->work) : strcmp(x->call, y->call);
}

/* The way that is clearly better than the one taken; LIST where there is none. */
static const char *pick(const stk_timed_way *ways, int n, const char *taken)
{
    int best = 0, own = -1;
    for (int i = 0; i < n; i++) {
        if (ways[i].ns < ways[best].ns) best = i;
        if (!strcmp(ways[i].name, taken)) own = i;
    }
    return own >= 0 && ways[best].ns < CLEARLY * ways[own].ns ? ways[best].name : LIST;
}

/* LIST, UNKNOWN, or a way: one that is clearly better at a glance and again when it is looked at closely. */
static stk_status judge(stk_device *device, choice *c, int64_t end_ns, const volatile int *stop, const char **way)
{
    stk_timing how = {.n_sure_turns = 1, .hopeless = HOPELESS, .fewest_runs = 1, .end_ns = end_ns, .stop = stop};
    stk_timed_way ways[STK_MOST_WAYS];
    const stk_op_call *call = call_of(&c->small);
    const char *taken;
    bool in_time;
    int n;
    *way = UNKNOWN;
    STK_RETURN_IF_ERROR(stk_name_way(device, call, &taken));
    for (int close = 0; close < 2; close++) {
        how.n_turns = close ? TURNS : 1;
        how.turn_s = close ? CLOSE_S : GLANCE_S;
        STK_RETURN_IF_ERROR(stk_time_ways(device, call, &how, ways, &n, &in_time));
        if (!in_time) *way = UNKNOWN;
        if (!in_time) break;
        *way = pick(ways, n, taken);
        if (!strcmp(*way, LIST)) break;
    }
    return STK_OK;
}

/* Calls in the order of their work, as pointers; *n: how many. NULL: none, or no memory. */
static choice **list_new(const stk_measured *m, int *n)
{
    choice **list = calloc((size_t)m->n + 1, sizeof(choice *));
    *n = 0;
    for (int i = 0; list && i < m->n; i++)
        if (!m->choice[i].way) list[(*n)++] = &m->choice[i];
    if (list) qsort(list, (size_t)*n, sizeof(choice *), compare_work);
    return list;
}

stk_status stk_measured_settle(stk_measured *m, stk_cpu_device *device, const volatile int *stop)
{
    int64_t end_ns = stk_clock_ns() + (int64_t)(SECONDS * 1e9);
    int n;
    stk_status status = STK_OK;
    choice **list = list_new(m, &n);
    if (!list) return stk_fail_memory(sizeof(choice *));
    for (int i = 0; i < n; i++) {
        const char *way = UNKNOWN;
        if (stop && *stop) STK_TRY(stk_fail(STK_INTERRUPTED, "stopped while kernels were measured"));
        if (stk_clock_ns() < end_ns && judge(&device->base, list[i], end_ns, stop, &way) != STK_OK) way = UNKNOWN;
        if (stop && *stop) STK_TRY(stk_fail(STK_INTERRUPTED, "stopped while kernels were measured"));
        list[i]->way = strdup(way);
        if (!list[i]->way) STK_TRY(stk_fail_memory(strlen(way) + 1));
    }
    if (n > 0) write_cache(m);
done:
    free(list);
    return status;
}
