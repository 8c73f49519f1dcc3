/* See elastic/lookout.h. */
#include "elastic/lookout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

/* Seldom enough that all beats of a look, and the processes of this host, cost next to nothing. */
enum { LOOK_MS = 50 };

struct stk_lookout {
    stk_beat_table table; /* of the thread, like the next two */
    stk_judging judge;
    stk_finding told;
    bool everywhere;
    int rank;
    void (*tell)(void *user, const char *text);
    void *user;
    stk_thread thread;
    stk_mutex lock;
    stk_cond changed;
    bool ending;                  /* guarded by lock, like what follows */
    char found[STK_LOOKOUT_TEXT]; /* "": nothing */
    int found_rank;
};

/* --- looking --- */

/* Whether this rank is the one to speak of it. */
static bool is_own_part(const stk_lookout *lookout, const stk_finding *f)
{
    if (f->kind == STK_FAULT_gone || f->kind == STK_FAULT_failed) return false;
    bool is_of_first = f->rank == 0 && f->kind != STK_FAULT_together;
    return f->kind != STK_FAULT_none && is_of_first == (lookout->rank > 0);
}

/* The text of what is found is new each time, with its seconds; it is told once. */
static void note(stk_lookout *lookout, const stk_finding *f)
{
    stk_text text = {0};
    if (f->kind != STK_FAULT_none) stk_finding_add(&text, &lookout->table, f);
    bool is_new = f->kind != lookout->told.kind || f->rank != lookout->told.rank;
    if (is_new && f->kind == STK_FAULT_none) stk_text_add(&text, "rank %d goes on", lookout->told.rank);
    stk_mutex_lock(&lookout->lock);
    snprintf(lookout->found, sizeof(lookout->found), "%s", f->kind == STK_FAULT_none ? "" : stk_text_get(&text));
    lookout->found[strcspn(lookout->found, "\n")] = 0; /* Without its log. */
    lookout->found_rank = f->rank;
    stk_mutex_unlock(&lookout->lock);
    lookout->told = *f;
    if (is_new && text.n && stk_text_status(&text) == STK_OK) {
        text.data[strcspn(text.data, "\n")] = 0;
        lookout->tell(lookout->user, text.data);
    }
    stk_text_free(&text);
}

static void look(stk_lookout *lookout)
{
    stk_finding found;
    stk_beat_table_update(&lookout->table, 0);
    if (!stk_judge_look(&lookout->judge, &lookout->table, stk_clock_ns(), &found)) return;
    if (!is_own_part(lookout, &found)) found = (stk_finding){.kind = STK_FAULT_none};
    note(lookout, &found);
}

static void run(void *arg)
{
    stk_lookout *lookout = arg;
    stk_mutex_lock(&lookout->lock);
    while (!lookout->ending) {
        stk_mutex_unlock(&lookout->lock);
        look(lookout);
        stk_mutex_lock(&lookout->lock);
        if (!lookout->ending) (void)stk_cond_wait_ms(&lookout->changed, &lookout->lock, LOOK_MS);
    }
    stk_mutex_unlock(&lookout->lock);
}

/* --- opening --- */

stk_status stk_lookout_open(bool everywhere, int rank, int n_ranks, void (*tell)(void *user, const char *text),
                            void *user, stk_lookout **out)
{
    stk_status status;
    bool has_lock = false, has_cond = false;
    *out = NULL;
    stk_lookout *lookout = calloc(1, sizeof(*lookout));
    if (!lookout) return stk_fail_memory(sizeof(*lookout));
    lookout->everywhere = everywhere;
    lookout->rank = rank;
    lookout->tell = tell;
    lookout->user = user;
    lookout->judge.limits = stk_judge_limits_default();
    lookout->judge.limits.only_heard = true;
    STK_TRY(stk_beat_table_open(everywhere, n_ranks, &lookout->table));
    STK_TRY(stk_mutex_init(&lookout->lock));
    has_lock = true;
    STK_TRY(stk_cond_init(&lookout->changed));
    has_cond = true;
    STK_TRY(stk_thread_start(&lookout->thread, "stk-lookout", false, run, lookout));
    *out = lookout;
    return STK_OK;
done:
    if (has_cond) stk_cond_destroy(&lookout->changed);
    if (has_lock) stk_mutex_destroy(&lookout->lock);
    stk_beat_table_close(&lookout->table);
    free(lookout);
    return status;
}

/* Port, token and host are there before the thread is. */
void stk_lookout_address(const stk_lookout *lookout, char out[STK_BEAT_ADDRESS])
{
    stk_beat_table_address(&lookout->table, lookout->everywhere ? lookout->table.host : NULL, out);
}

void stk_lookout_ask(stk_lookout *lookout, char out[STK_LOOKOUT_TEXT], int *rank)
{
    out[0] = 0;
    *rank = -1;
    if (!lookout) return;
    stk_mutex_lock(&lookout->lock);
    snprintf(out, STK_LOOKOUT_TEXT, "%s", lookout->found);
    *rank = lookout->found_rank;
    stk_mutex_unlock(&lookout->lock);
}

void stk_lookout_close(stk_lookout *lookout)
{
    if (!lookout) return;
    stk_mutex_lock(&lookout->lock);
    lookout->ending = true;
    stk_cond_broadcast(&lookout->changed);
    stk_mutex_unlock(&lookout->lock);
    stk_thread_join(&lookout->thread);
    stk_cond_destroy(&lookout->changed);
    stk_mutex_destroy(&lookout->lock);
    stk_beat_table_close(&lookout->table);
    free(lookout);
}
