#include "watch/together.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As wide as the rules for several ranks of one recording have it (rules.c). */
static const double least_gap = 0.25;

/* --- members --- */

static double number_of(const stk_watch_facts *facts, const char *key)
{
    const char *text = stk_watch_facts_get(facts, key, 0);
    char *end;
    double x = text ? strtod(text, &end) : NAN;
    return text && end != text && !*end && isfinite(x) ? x : NAN;
}

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void name_member(stk_watch_member *m, const char *path)
{
    const char *rank = stk_watch_facts_get(m->report->facts, "rank", 0),
               *host = stk_watch_facts_get(m->report->facts, "host", 0);
    if (rank && host)
        snprintf(m->name, sizeof(m->name), "rank %.9s on %.64s", rank, host);
    else if (rank)
        snprintf(m->name, sizeof(m->name), "rank %.9s", rank);
    else if (host)
        snprintf(m->name, sizeof(m->name), "%.64s", host);
    else
        snprintf(m->name, sizeof(m->name), "%.64s", file_of(path));
}

static void fill_member(stk_watch_member *m, const char *path)
{
    const double *x = m->report->signals.value;
    const stk_watch_report *report = m->report;
    double code = number_of(report->facts, "exit");
    name_member(m, path);
    m->waits =
        x[STK_WATCH_account] > 0.5 ? x[STK_WATCH_by_net] + x[STK_WATCH_by_unknown] + x[STK_WATCH_by_outside] : NAN;
    bool has_gpu = x[STK_WATCH_gpus_used] > 0.5;
    m->busy = has_gpu ? x[STK_WATCH_gpu_busy] : NAN;
    m->power = has_gpu ? x[STK_WATCH_power_busy] : NAN;
    m->clock = has_gpu ? 1 - x[STK_WATCH_clock_low] : NAN;
    m->began_s = number_of(report->facts, "began");
    m->ended_s = m->began_s + report->length_s;
    m->exit_code = code > 0 && code < 256 ? (int)code : 0;
    m->is_odd = false;
}

/* Two of one name are told apart by their files. */
static void part_names(stk_watch_member *member, const char *const *path, int n)
{
    for (int i = 0; i < n; i++) {
        bool is_shared = false;
        size_t length = strlen(member[i].name);
        for (int k = 0; k < n; k++)
            is_shared = is_shared || (k != i && !strncmp(member[k].name, member[i].name, length) &&
                                      (!member[k].name[length] || !strncmp(member[k].name + length, " (", 2)));
        if (is_shared) snprintf(member[i].name + length, sizeof(member[i].name) - length, " (%.40s)", file_of(path[i]));
    }
}

const char *stk_watch_member_verdict(const stk_watch_member *member)
{
    return member->report->n_verdicts > 0 ? member->report->verdict[0].rule->name : "none";
}

/* Whether they were watched at one time for at least half of the shortest. */
static bool find_apart(const stk_watch_member *member, int n)
{
    double begin = -INFINITY, end = INFINITY, shortest = INFINITY;
    for (int i = 0; i < n; i++) {
        if (isnan(member[i].began_s)) continue;
        begin = fmax(begin, member[i].began_s);
        end = fmin(end, member[i].ended_s);
        shortest = fmin(shortest, member[i].report->length_s);
    }
    return isfinite(shortest) && end - begin < 0.5 * shortest;
}

/* --- who is the odd one --- */

static void tell(stk_watch_together *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(stk_watch_together *t, const char *format, ...)
{
    va_list args;
    if (t->n_evidence == STK_WATCH_TOGETHER_EVIDENCE) return;
    va_start(args, format);
    vsnprintf(t->evidence[t->n_evidence++], STK_WATCH_SENTENCE, format, args);
    va_end(args);
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct parted {
    double odd, others; /* means */
} parted;

/* Marks those with the smallest of x [n], where a gap of least_gap parts them, at most half, from the others. False:
 * nothing does, or x is not known of all. */
static bool part(stk_watch_together *t, const double *x, parted *out)
{
    double sorted[STK_WATCH_MOST_MEMBERS], widest = 0, limit = 0;
    for (int i = 0; i < t->n; i++)
        if (isnan(sorted[i] = x[i])) return false;
    qsort(sorted, (size_t)t->n, sizeof(*sorted), compare_numbers);
    for (int i = 1; i <= t->n / 2; i++)
        if (sorted[i] - sorted[i - 1] > widest) {
            widest = sorted[i] - sorted[i - 1];
            limit = sorted[i];
        }
    if (!(widest >= least_gap)) return false;
    *out = (parted){0, 0};
    t->n_odd = 0;
    for (int i = 0; i < t->n; i++) {
        t->member[i].is_odd = x[i] < limit;
        t->n_odd += t->member[i].is_odd;
        *(x[i] < limit ? &out->odd : &out->others) += x[i];
    }
    out->odd /= t->n_odd;
    out->others /= t->n - t->n_odd;
    return true;
}

/* The field of each, negated where the largest is the odd one. */
static const double *take(const stk_watch_together *t, size_t offset, double sign, double *out)
{
    for (int i = 0; i < t->n; i++)
        out[i] = sign * *(const double *)((const char *)&t->member[i] + offset);
    return out;
}

static double least_of(const stk_watch_together *t, size_t offset)
{
    double least = INFINITY;
    for (int i = 0; i < t->n; i++) {
        double x = *(const double *)((const char *)&t->member[i] + offset);
        if (isnan(x)) return NAN;
        least = fmin(least, x);
    }
    return least;
}

/* What the odd ones have as a first verdict and nobody else has is why. */
static void tell_why(stk_watch_together *t)
{
    const stk_watch_rule *why = NULL;
    for (int i = 0; i < t->n; i++) {
        const stk_watch_member *m = &t->member[i];
        const stk_watch_rule *rule = m->report->n_verdicts > 0 ? m->report->verdict[0].rule : NULL;
        if (m->is_odd && rule && !rule->is_healthy) why = rule;
    }
    for (int i = 0; i < t->n && why; i++)
        if (!t->member[i].is_odd && !strcmp(stk_watch_member_verdict(&t->member[i]), why->name)) why = NULL;
    if (why) tell(t, "of the odd one alone: %s [%s]", why->title, why->name);
}

static bool find_straggler(stk_watch_together *t)
{
    double x[STK_WATCH_MOST_MEMBERS];
    double least_busy = least_of(t, offsetof(stk_watch_member, busy));
    parted p;
    if (part(t, take(t, offsetof(stk_watch_member, waits), 1, x), &p)) {
        tell(t, "it sleeps for somebody outside in %.0f %% of its time, the others in %.0f %%", 100 * p.odd,
             100 * p.others);
    } else if (part(t, take(t, offsetof(stk_watch_member, busy), 1, x), &p) && p.others > 0.85) {
        tell(t,
             "its GPUs are busy %.0f %% of the time, the others' %.0f %%, as they are while they wait in a collective",
             100 * p.odd, 100 * p.others);
    } else if (least_busy > 0.85 && part(t, take(t, offsetof(stk_watch_member, clock), 1, x), &p)) {
        tell(t, "all GPUs are busy, and its clocks are at %.0f %% of the highest, the others' at %.0f %%", 100 * p.odd,
             100 * p.others);
    } else if (least_busy > 0.85 && part(t, take(t, offsetof(stk_watch_member, power), -1, x), &p)) {
        tell(t,
             "all GPUs are busy, its at %.0f %% of their power limit, the others' at %.0f %%, as they are while they "
             "wait in a collective",
             -100 * p.odd, -100 * p.others);
    } else {
        return false;
    }
    t->cost = fmin(1, p.others - p.odd);
    tell_why(t);
    return true;
}

/* --- ends and hangs --- */

/* The first to end, where it failed and another lived on for a while: launchers end the others then. */
static bool find_ended(stk_watch_together *t)
{
    const double least_s = 0.3;
    int first = -1;
    double next_s = INFINITY;
    for (int i = 0; i < t->n; i++) {
        if (isnan(t->member[i].ended_s)) return false;
        if (first < 0 || t->member[i].ended_s < t->member[first].ended_s) first = i;
    }
    for (int i = 0; i < t->n; i++)
        if (i != first) next_s = fmin(next_s, t->member[i].ended_s);
    const stk_watch_member *m = &t->member[first];
    char end[120];
    if (next_s - m->ended_s < least_s || !stk_watch_report_end(m->report->facts, end, sizeof(end))) return false;
    t->member[first].is_odd = true;
    t->n_odd = 1;
    tell(t, "it ended with %s, %.1f s before the next one", end, next_s - m->ended_s);
    return true;
}

static bool find_hang(stk_watch_together *t)
{
    int n_hang = 0;
    for (int i = 0; i < t->n; i++)
        n_hang += !strcmp(stk_watch_member_verdict(&t->member[i]), "hang");
    if (n_hang == 0 || n_hang == t->n || t->n - n_hang > n_hang) return false;
    for (int i = 0; i < t->n; i++)
        t->member[i].is_odd = strcmp(stk_watch_member_verdict(&t->member[i]), "hang") != 0;
    t->n_odd = t->n - n_hang;
    tell(t, "%d of %d hang, and it does not", n_hang, t->n);
    tell_why(t);
    return true;
}

/* --- all --- */

static bool are_same(const stk_watch_together *t)
{
    for (int i = 1; i < t->n; i++)
        if (strcmp(stk_watch_member_verdict(&t->member[i]), stk_watch_member_verdict(&t->member[0]))) return false;
    return true;
}

void stk_watch_together_judge(stk_watch_member *member, const char *const *path, int n, stk_watch_together *out)
{
    memset(out, 0, sizeof(*out));
    out->member = member;
    out->n = n;
    out->cost = NAN;
    for (int i = 0; i < n; i++)
        fill_member(&member[i], path[i]);
    part_names(member, path, n);
    out->are_apart = find_apart(member, n);
    double waits = least_of(out, offsetof(stk_watch_member, waits));
    if (out->are_apart) {
        out->joint = are_same(out) ? STK_WATCH_JOINT_SAME : STK_WATCH_JOINT_MIXED;
    } else if (find_ended(out)) {
        out->joint = STK_WATCH_JOINT_ENDED;
    } else if (find_hang(out)) {
        out->joint = STK_WATCH_JOINT_HANG;
    } else if (find_straggler(out)) {
        out->joint = STK_WATCH_JOINT_STRAGGLER;
    } else if (n > 1 && waits >= least_gap) {
        out->joint = STK_WATCH_JOINT_EXCHANGE;
        out->cost = waits;
        tell(out, "each sleeps for somebody outside in %.0f %% of its time or more", 100 * waits);
    } else {
        out->joint = are_same(out) ? STK_WATCH_JOINT_SAME : STK_WATCH_JOINT_MIXED;
        if (isfinite(waits)) tell(out, "what they wait for each other differs by less than %.0f %%", 100 * least_gap);
    }
}

static const struct {
    const char *name, *title;
} joints[STK_WATCH_JOINTS] = {
    {"rank-ended", "one failed, and the others ended after it"},
    {"hang", "most hang, and wait for what does not"},
    {"straggler", "the others wait for it in each step"},
    {"communication", "all wait: for each other, or for the network between them"},
    {"same", "all have the same verdict, and none is seen to hold the others back"},
    {"mixed", "verdicts differ, and none is seen to hold the others back"},
};

const char *stk_watch_joint_name(stk_watch_joint joint)
{
    return joints[joint].name;
}

const char *stk_watch_joint_title(stk_watch_joint joint)
{
    return joints[joint].title;
}
