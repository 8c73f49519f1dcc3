/* See elastic/supervise.h. */
#include "elastic/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "elastic/launch.h"
#include "elastic/rescue.h"
#include "events/json_text.h"

enum {
    LOOK_MS = 20,
    SURE_MS = 4000,      /* a rank that both signals call silent is given up */
    UNSURE_MS = 10000,   /* one of which beats alone say so */
    GRACE_MS = 1500,     /* for ranks to end by themselves */
    MOST_RESTARTS = 256, /* that are remembered */
    MOST_VAIN = 3        /* lives without a step, one behind the other */
};

/* Names of folders for states: those that are cleared away after their supervisor, and those that never are. */
#define STATES_PREFIX "stoker-states-"
#define KEPT_PREFIX   "stoker-kept-"

struct stk_supervisor {
    stk_supervise_options options;
    stk_beat_table table;
    stk_judging judge;             /* of one life */
    volatile sig_atomic_t n_stops; /* asked for; the handler's */
    int n_told;                    /* of them, that ranks were told of */
    char states[STK_BEAT_FOLDER];  /* "": none */
    char folder[STK_BEAT_FOLDER];  /* the run's, once a rank has told; "" */
    stk_text waiting;              /* lines of events before that */
    int64_t restart_ns[MOST_RESTARTS];
    int n_restarts, n_vain;
    bool has_trained; /* in any life: the run's folder is this run's */
    bool has_others;  /* in any life: ranks on other hosts */
    /* of one life */
    int life, n_ranks, pid; /* pid 0: no launcher runs */
    bool steps, is_over, names;
    stk_finding named; /* the last one said; kind none: all is well */
    int64_t begun_ns, named_ns;
    int code;
};

/* --- what happens --- */

static void add_members(stk_text *json, const stk_supervisor *s, const char *more)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    stk_text_add(json, ", \"time\": %.3f, \"life\": %d, \"ranks\": %d", (double)now.tv_sec + (double)now.tv_nsec * 1e-9,
                 s->life, s->n_ranks);
    stk_text_add(json, "%s", more);
}

/* events.jsonl of the run, or kept until the run has a folder. What cannot be written is no reason to end. */
static void write_line(stk_supervisor *s, const char *line)
{
    char path[4096];
    stk_text_add(&s->waiting, "%s\n", line);
    if (!s->folder[0] || stk_path_join(path, sizeof(path), s->folder, "events.jsonl") != STK_OK) return;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return;
    (void)stk_write_all(fd, path, s->waiting.data, s->waiting.n);
    close(fd);
    s->waiting.n = 0;
}

/* more: members of JSON, ", \"step\": 7"; "" for none. */
static void tell(stk_supervisor *s, const char *kind, const char *text, const char *more)
{
    stk_text json = {0};
    stk_text_add(&json, "{\"event\": \"%s\"", kind);
    add_members(&json, s, more);
    if (text[0]) {
        stk_text_add(&json, ", \"text\": ");
        stk_json_add_text(&json, text);
    }
    stk_text_add(&json, "}");
    if (stk_text_status(&json) == STK_OK) {
        write_line(s, stk_text_get(&json));
        if (s->options.on_event) s->options.on_event(s->options.user, kind, text, stk_text_get(&json));
    }
    stk_text_free(&json);
}

static void tell_finding(stk_supervisor *s, const stk_finding *f)
{
    const stk_beat_state *state = &s->table.rank[f->rank].state;
    stk_text text = {0}, more = {0};
    stk_finding_add(&text, &s->table, f);
    stk_text_add(&more, ", \"rank\": %d, \"pid\": %lld, \"host\": ", f->rank, (long long)state->pid);
    stk_json_add_text(&more, state->host);
    stk_text_add(&more, ", \"device\": ");
    stk_json_add_text(&more, state->device);
    stk_text_add(&more, ", \"step\": %lld, \"phase\": \"%s\", \"collective\": ", (long long)state->step,
                 stk_phase_words(state->phase));
    stk_json_add_text(&more, state->call);
    stk_text_add(&more, ", \"number\": %lld, \"both_signals\": %s, \"for_s\": %.1f", (long long)state->n_calls,
                 f->is_certain ? "true" : "false", (double)f->for_ms * 1e-3);
    if (stk_text_status(&text) == STK_OK && stk_text_status(&more) == STK_OK)
        tell(s, stk_fault_name(f->kind), stk_text_get(&text), stk_text_get(&more));
    stk_text_free(&text);
    stk_text_free(&more);
}

/* --- a life of the ranks --- */

static stk_status begin_life(stk_supervisor *s, int n_ranks)
{
    static const char *const names[] = {STK_ELASTIC_BEATS, STK_ELASTIC_STATES};
    char address[STK_BEAT_ADDRESS], more[64];
    const char *values[] = {address, s->states};
    s->n_ranks = n_ranks;
    s->life++;
    s->steps = s->is_over = s->names = false;
    s->named = (stk_finding){.kind = STK_FAULT_none};
    s->begun_ns = stk_clock_ns();
    s->judge = (stk_judging){.limits = stk_judge_limits_default(), .looked_ns = s->begun_ns};
    STK_RETURN_IF_ERROR(stk_beat_table_restart(&s->table, n_ranks));
    stk_beat_table_address(&s->table, s->options.hosts ? s->table.host : NULL, address);
    /* Before the first step an earlier run may lie in the folder, which --resume would take. */
    bool goes_on = s->has_trained && !s->options.resumes;
    stk_launch launch = {.program = s->options.program,
                         .argv = s->options.argv,
                         .more = goes_on ? "--resume" : NULL,
                         .hosts = s->options.hosts,
                         .name = names,
                         .value = values,
                         .n_env = 2,
                         .n_ranks = n_ranks};
    STK_RETURN_IF_ERROR(stk_launch_ranks(&launch, &s->pid));
    snprintf(more, sizeof(more), ", \"launcher\": %d", s->pid);
    tell(s, "start", "", more);
    return STK_OK;
}

/* Of the ranks on this host that are still those that were heard. */
static void signal_ranks(const stk_supervisor *s, int number)
{
    for (int r = 0; r < s->table.n_ranks; r++) {
        const stk_rank_seen *seen = &s->table.rank[r];
        if (seen->heard_ns && seen->is_here && !seen->is_gone) (void)kill((pid_t)seen->state.pid, number);
    }
}

static void look_at_launcher(stk_supervisor *s)
{
    int status;
    if (s->pid <= 0 || waitpid(s->pid, &status, WNOHANG) != s->pid) return;
    s->pid = 0;
    s->is_over = true;
    s->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void await_launcher(stk_supervisor *s, int timeout_ms)
{
    int64_t begin = stk_clock_ns();
    while (s->pid > 0 && stk_clock_ns() - begin < timeout_ms * INT64_C(1000000)) {
        stk_beat_table_update(&s->table, LOOK_MS);
        look_at_launcher(s);
    }
}

/* The first rank finishes what it is writing, or is given up like any that is stuck. */
static void await_saving(stk_supervisor *s)
{
    const stk_rank_seen *first = &s->table.rank[0];
    int64_t begin = stk_clock_ns();
    int n_stops = s->n_stops;
    while (s->pid > 0 && first->is_here && !first->is_gone && !first->is_stopped &&
           first->state.phase == STK_PHASE_saving && s->n_stops == n_stops &&
           stk_clock_ns() - begin < s->options.give_up_ms * INT64_C(1000000))
        await_launcher(s, LOOK_MS);
}

static bool any_runs(const stk_supervisor *s)
{
    for (int r = 0; r < s->table.n_ranks; r++) {
        const stk_rank_seen *seen = &s->table.rank[r];
        if (seen->heard_ns && seen->is_here && !seen->is_gone) return true;
    }
    return false;
}

/* Ranks whose launcher was killed may train on, and would hold the run's folder. */
static void end_orphans(stk_supervisor *s)
{
    for (int i = 0; i < 2 && any_runs(s); i++) {
        if (i > 0) signal_ranks(s, SIGKILL);
        for (int64_t begin = stk_clock_ns(); any_runs(s) && stk_clock_ns() - begin < GRACE_MS * INT64_C(1000000);)
            stk_beat_table_update(&s->table, LOOK_MS);
    }
}

/* First the one that is named, which may hold a lock; the others then see that it is gone, and end by themselves. */
static void end_life(stk_supervisor *s)
{
    const stk_rank_seen *named = &s->table.rank[s->named.rank];
    if (s->pid <= 0) {
        end_orphans(s);
        return;
    }
    /* One that failed has yet to say why. */
    if (s->named.kind != STK_FAULT_none && s->named.kind != STK_FAULT_failed && named->is_here && !named->is_gone)
        (void)kill((pid_t)named->state.pid, SIGKILL);
    await_launcher(s, GRACE_MS);
    await_saving(s);
    if (s->pid <= 0) return;
    signal_ranks(s, SIGKILL);
    await_launcher(s, GRACE_MS);
    if (s->pid <= 0) return;
    (void)kill(s->pid, SIGTERM);
    await_launcher(s, 2 * GRACE_MS);
    if (s->pid <= 0) return;
    (void)kill(-s->pid, SIGKILL);
    await_launcher(s, 10 * GRACE_MS);
}

/* Ranks that were heard are told themselves, since mpirun would kill them soon after. */
static void pass_stop(stk_supervisor *s)
{
    if (s->n_told >= s->n_stops || s->pid <= 0) return;
    s->n_told = s->n_stops;
    tell(s, "stop", "", "");
    bool heard = false, is_here = false;
    for (int r = 0; r < s->table.n_ranks; r++) {
        heard |= s->table.rank[r].heard_ns != 0;
        is_here |= s->table.rank[r].heard_ns && s->table.rank[r].is_here;
    }
    if (is_here)
        signal_ranks(s, SIGTERM);
    else
        (void)kill(s->pid, heard ? SIGUSR1 : SIGTERM); /* Launchers pass that one on. */
}

static void note_progress(stk_supervisor *s)
{
    const stk_beat_state *first = &s->table.rank[0].state;
    if (first->folder[0] && strcmp(first->folder, s->folder) != 0)
        snprintf(s->folder, sizeof(s->folder), "%s", first->folder);
    for (int r = 0; r < s->table.n_ranks; r++) {
        if (s->table.rank[r].state.phase > STK_PHASE_starting && s->folder[0]) s->has_trained = true;
        if (s->table.rank[r].heard_ns && strcmp(s->table.rank[r].state.host, s->table.host) != 0) s->has_others = true;
    }
    if (s->steps || !s->table.rank[0].heard_ns || first->step <= first->resumed_step) return;
    s->steps = true;
    s->n_vain = 0;
    const char *from = first->from_memory ? "memory" : first->resumed_step > 0 ? "disk" : "start";
    int64_t now = stk_clock_ns();
    stk_text more = {0}, text = {0};
    stk_text_add(&more, ", \"step\": %lld, \"resumed_step\": %lld, \"from\": \"%s\", \"after_s\": %.3f, \"pids\": [",
                 (long long)first->step, (long long)first->resumed_step, from, (double)(now - s->begun_ns) * 1e-9);
    for (int r = 0; r < s->table.n_ranks; r++)
        stk_text_add(&more, "%s%lld", r ? ", " : "", (long long)s->table.rank[r].state.pid);
    stk_text_add(&more, "]");
    if (s->named_ns) {
        double after = (double)(now - s->named_ns) * 1e-9;
        stk_text_add(&more, ", \"after_naming_s\": %.3f", after);
        stk_text_add(&text, "goes on behind step %lld (%s) with %d rank%s, %.1f s after",
                     (long long)first->resumed_step,
                     first->from_memory    ? "from memory"
                     : first->resumed_step ? "from disk"
                                           : "from the start",
                     s->n_ranks, s->n_ranks == 1 ? "" : "s", after);
        s->named_ns = 0;
    }
    if (stk_text_status(&more) == STK_OK) tell(s, "stepping", stk_text_get(&text), stk_text_get(&more));
    stk_text_free(&more);
    stk_text_free(&text);
}

/* --- judging --- */

static bool is_to_end(const stk_supervisor *s, const stk_finding *f)
{
    switch (f->kind) {
    case STK_FAULT_gone:
    case STK_FAULT_failed: return true;
    case STK_FAULT_silent: return f->for_ms >= (f->is_certain ? SURE_MS : UNSURE_MS);
    case STK_FAULT_stuck: { /* What one rank does alone, for all, may take as long as ranks wait themselves. */
        int phase = s->table.rank[f->rank].state.phase;
        bool is_alone = phase == STK_PHASE_starting || phase == STK_PHASE_saving;
        return f->for_ms >= (int64_t)s->options.give_up_ms * (is_alone ? 10 : 1);
    }
    case STK_FAULT_together: return f->for_ms >= s->options.give_up_ms;
    default: return false; /* Slow ones are named, and kept. */
    }
}

/* True: this life is to be ended. */
static bool judge(stk_supervisor *s)
{
    int64_t now = stk_clock_ns();
    stk_finding f;
    if (!stk_judge_look(&s->judge, &s->table, now, &f)) return false;
    if (f.kind == STK_FAULT_none) {
        if (s->names) {
            char text[80];
            snprintf(text, sizeof(text), "rank %d goes on", s->named.rank);
            tell(s, "cleared", text, "");
        }
        s->names = false;
        s->named.kind = STK_FAULT_none;
        s->named_ns = 0;
        return false;
    }
    bool is_new = !s->names || f.kind != s->named.kind || f.rank != s->named.rank;
    s->named = f;
    s->names = true;
    if (is_new && f.kind != STK_FAULT_slow && !s->named_ns) s->named_ns = now;
    if (is_new && (f.kind != STK_FAULT_failed)) tell_finding(s, &f);
    return is_to_end(s, &f);
}

/* Until the ranks have ended by themselves, or are to be ended. */
static stk_status watch(stk_supervisor *s)
{
    for (;;) {
        stk_beat_table_update(&s->table, LOOK_MS);
        look_at_launcher(s);
        pass_stop(s);
        note_progress(s);
        if (judge(s)) return STK_OK;
        if (s->is_over) return STK_OK;
    }
}

/* Whether a rank's own failure may be gone with another start. */
static bool may_pass(int status)
{
    return status == STK_DEVICE || status == STK_NO_DEVICE || status == STK_LOST;
}

/* How many go on: as many of those that remain as divide the batch, and no fewer than the least. */
static int remaining(const stk_supervisor *s, bool is_one_less)
{
    int64_t batch = 0;
    for (int r = 0; r < s->table.n_ranks; r++)
        if (s->table.rank[r].state.batch > batch) batch = s->table.rank[r].state.batch;
    int n = s->n_ranks - is_one_less;
    while (n > s->options.least_ranks && batch > 0 && batch % n != 0)
        n--;
    return n < s->options.least_ranks ? s->options.least_ranks : n;
}

/* Restarts within the last hour; the new one is noted. */
static int count_restarts(stk_supervisor *s)
{
    int64_t now = stk_clock_ns(), hour = INT64_C(3600) * 1000000000;
    int n = 0;
    for (int i = 0; i < s->n_restarts && i < MOST_RESTARTS; i++)
        n += now - s->restart_ns[i] < hour;
    s->restart_ns[s->n_restarts++ % MOST_RESTARTS] = now;
    return n;
}

static void back_off(const stk_supervisor *s)
{
    int ms = s->n_vain < 2 ? 0 : 1000 << (s->n_vain < 6 ? s->n_vain - 2 : 4);
    for (int i = 0; i < ms / LOOK_MS && s->n_stops == 0; i++)
        usleep(LOOK_MS * 1000);
}

/* What is in memory alone goes to the run's folder, or stays where it is, under a name that nobody clears away where it
 * can get one. */
static void rescue(stk_supervisor *s)
{
    char text[STK_BEAT_FOLDER + 80], more[40], kept[4096], why[600];
    int64_t step;
    if (!s->states[0] || !s->folder[0]) return;
    if (stk_rescue_state(s->states, s->folder, &step) == STK_OK) {
        snprintf(text, sizeof(text), "the state in memory is saved as 'step-%lld'", (long long)step);
        snprintf(more, sizeof(more), ", \"step\": %lld", (long long)step);
        if (step >= 0) tell(s, "saved", text, more);
        return;
    }
    snprintf(why, sizeof(why), "%s", stk_error_text());
    const char *name = strrchr(s->states, '/') + 1;
    snprintf(text, sizeof(text), "%.*s" KEPT_PREFIX "%s", (int)(name - s->states), s->states,
             name + strlen(STATES_PREFIX));
    if (stk_rename_aside(s->states, text, kept) != STK_OK) snprintf(kept, sizeof(kept), "%s", s->states);
    s->states[0] = 0;
    stk_text said = {0};
    stk_text_add(&said, "the state in memory could not be saved (%s): it stays in '%s'", why, kept);
    tell(s, "not_saved", stk_text_get(&said), "");
    stk_text_free(&said);
}

static stk_status give_up(stk_supervisor *s, const char *why)
{
    rescue(s);
    tell(s, "gave_up", why, "");
    return stk_fail(STK_LOST, "gave up: %s%s%s", why, s->folder[0] ? "; what was saved is in " : "", s->folder);
}

/* OK with *goes_on false: the ranks came to an end of their own. */
static stk_status decide(stk_supervisor *s, int *n_next, bool *goes_on)
{
    char why[200], more[64];
    const stk_finding f = s->names ? s->named : (stk_finding){.kind = STK_FAULT_none};
    bool was_found = f.kind != STK_FAULT_none && f.kind != STK_FAULT_slow;
    *goes_on = false;
    if (s->n_stops > 0 && !was_found) return STK_OK;
    if (!was_found && s->code == 0) return STK_OK;
    bool has_said = f.kind == STK_FAULT_failed; /* that rank, why */
    if (has_said && (s->n_stops > 0 || !may_pass(s->table.rank[f.rank].state.status))) return STK_OK;
    if (s->n_stops > 0) return give_up(s, "a rank was lost while the others ended");
    if (!was_found && !s->steps && !s->has_trained) return STK_OK; /* refused, and said so */
    s->n_vain = s->steps ? 0 : s->n_vain + 1;
    if (s->n_vain >= MOST_VAIN) {
        snprintf(why, sizeof(why), "%d starts, one behind the other, did not come to a step", MOST_VAIN);
        return give_up(s, why);
    }
    if (count_restarts(s) >= s->options.most_restarts) {
        snprintf(why, sizeof(why), "%d restarts within an hour, the most that '--restarts' allows",
                 s->options.most_restarts);
        return give_up(s, why);
    }
    *n_next = remaining(s, was_found);
    snprintf(why, sizeof(why), "starts %d rank%s again", *n_next, *n_next == 1 ? "" : "s");
    snprintf(more, sizeof(more), ", \"next_ranks\": %d", *n_next);
    tell(s, "restart", why, more);
    *goes_on = true;
    return STK_OK;
}

stk_status stk_supervisor_run(stk_supervisor *s, int *code)
{
    int n = s->options.n_ranks;
    char more[40];
    *code = 1;
    for (bool goes_on = true; goes_on;) {
        STK_RETURN_IF_ERROR(begin_life(s, n));
        STK_RETURN_IF_ERROR(watch(s));
        end_life(s);
        STK_RETURN_IF_ERROR(decide(s, &n, &goes_on));
        if (goes_on) back_off(s);
        if (s->n_stops > 0) goes_on = false;
    }
    *code = s->code;
    snprintf(more, sizeof(more), ", \"code\": %d", s->code);
    tell(s, "end", "", more);
    return STK_OK;
}

/* --- opening --- */

/* A folder whose name tells whose it is; what supervisors that were killed left is removed. */
static stk_status make_states(stk_supervisor *s)
{
    const char *memory = getenv(STK_ELASTIC_MEMORY), *root = memory && memory[0] ? memory : "/dev/shm";
    char mark[STK_BEAT_HOST + 24]; /* a number of a process means something on its own host alone */
    char path[4096];
    stk_names names;
    if (!strcmp(root, "off")) return STK_OK;
    if (!stk_path_is_dir(root)) return memory ? stk_fail(STK_NOT_FOUND, "there is no folder '%s'", root) : STK_OK;
    STK_RETURN_IF_ERROR(stk_dir_list(root, &names));
    snprintf(mark, sizeof(mark), STATES_PREFIX "%s-", s->table.host);
    size_t n_mark = strlen(mark);
    for (size_t i = 0; i < names.n; i++) {
        int pid = strncmp(names.name[i], mark, n_mark) ? 0 : atoi(names.name[i] + n_mark);
        if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH &&
            stk_path_join(path, sizeof(path), root, names.name[i]) == STK_OK)
            (void)stk_tree_remove(path);
    }
    stk_names_free(&names);
    int n = snprintf(s->states, sizeof(s->states), "%s/%s%d-%llx", root, mark, (int)getpid(),
                     (unsigned long long)(s->table.token & 0xffffffff));
    if (n >= (int)sizeof(s->states)) s->states[0] = 0;
    return STK_OK;
}

stk_status stk_supervisor_open(const stk_supervise_options *options, stk_supervisor **out)
{
    stk_status status;
    *out = NULL;
    stk_supervisor *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    s->options = *options;
    STK_TRY(stk_beat_table_open(options->hosts != NULL, options->n_ranks, &s->table));
    STK_TRY(make_states(s));
    *out = s;
    return STK_OK;
done:
    stk_supervisor_close(s);
    return status;
}

/* By the launcher that has brought the ranks to other hosts, which may not be there any more. */
static void remove_states(stk_supervisor *s)
{
    enum { MOST_MS = 10000 };
    char *const words[] = {"-rf", "--", s->states, NULL};
    if (!s->states[0]) return;
    (void)stk_tree_remove(s->states);
    if (!s->has_others) return;
    stk_launch launch = {.program = "rm", .argv = words, .hosts = s->options.hosts, .n_ranks = s->options.n_ranks};
    if (stk_launch_ranks(&launch, &s->pid) != STK_OK) return;
    await_launcher(s, MOST_MS);
    if (s->pid > 0) (void)kill(-s->pid, SIGKILL);
    await_launcher(s, GRACE_MS);
}

void stk_supervisor_stop(stk_supervisor *s)
{
    s->n_stops = s->n_stops + 1;
}

void stk_supervisor_close(stk_supervisor *s)
{
    if (!s) return;
    if (s->table.rank) end_life(s);
    remove_states(s);
    stk_beat_table_close(&s->table);
    stk_text_free(&s->waiting);
    free(s);
}
