/* What others send, any bytes. See elastic/table.h. */
#include <stdint.h>
#include <string.h>

#include "elastic/table.h"

static void end_text(char *text, size_t n)
{
    text[n - 1] = 0;
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 32 && *p != '\n') *p = '?';
}

static void add_sample(stk_rank_seen *r, int64_t now_ns)
{
    const stk_beat_sample *last = &r->sample[(r->n_samples + STK_BEAT_SAMPLES - 1) % STK_BEAT_SAMPLES];
    if (r->n_samples > 0 && now_ns - last->ns < STK_BEAT_SAMPLE_MS * INT64_C(1000000)) return;
    r->sample[r->n_samples++ % STK_BEAT_SAMPLES] =
        (stk_beat_sample){now_ns, r->state.step, r->state.wait_ms, r->state.held_ms, r->state.aside_ms};
}

/* Numbers are counts, small enough that their sums are numbers as well. */
static bool is_sound(const stk_beat_state *s)
{
    const int64_t number[] = {s->n_beats, s->step,    s->resumed_step, s->batch,   s->phase_ms, s->n_given,
                              s->n_calls, s->call_ms, s->wait_ms,      s->held_ms, s->aside_ms};
    for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++)
        if (number[i] < 0 || number[i] > INT64_C(1) << 53) return false;
    return s->pid > 0 && s->pid <= INT32_MAX;
}

bool stk_beat_table_take(stk_beat_table *table, const void *bytes, size_t n, int64_t now_ns)
{
    stk_beat_packet packet;
    if (n != sizeof(packet)) return false;
    memcpy(&packet, bytes, n);
    stk_beat_state *s = &packet.state;
    if (memcmp(packet.head.mark, "STKB", 4) != 0 || packet.head.bytes != n || packet.head.token != table->token)
        return false;
    if (s->rank < 0 || s->rank >= table->n_ranks || s->n_ranks != table->n_ranks || !is_sound(s)) return false;
    stk_rank_seen *r = &table->rank[s->rank];
    if (s->n_beats <= r->state.n_beats || (r->heard_ns && s->pid != r->state.pid)) return false; /* overtaken */
    end_text(s->call, sizeof(s->call));
    end_text(s->device, sizeof(s->device));
    end_text(s->host, sizeof(s->host));
    end_text(s->folder, sizeof(s->folder));
    end_text(s->log, sizeof(s->log));
    r->state = *s;
    if (!r->heard_ns) {
        r->first_ns = now_ns;
        r->is_here = !strcmp(s->host, table->host);
    }
    r->heard_ns = now_ns;
    add_sample(r, now_ns);
    return true;
}
