/* A loss that the host has a part in: REINFORCE (Williams 1992) learns to balance a pole on a cart (Barto, Sutton &
 * Anderson 1983), by playing, and making likelier what was followed by more steps than usual.
 */
#include <math.h>
#include <stdio.h>

#include <stoker/graph/session.h>
#include <stoker/nn/nn.h>
#include <stoker/rng.h>

enum { CARTS = 32, MOST_STEPS = 200, ROWS = CARTS * MOST_STEPS, ROUNDS = 40 };

typedef struct cart {
    float x[4]; /* place, speed, angle, its speed */
    int n_steps;
    bool is_down;
} cart;

/* A 50th of a second of force to the left (0) or to the right (1). */
static void push(cart *c, int action)
{
    const double length = 0.5, dt = 0.02, force = action ? 10 : -10;
    double angle = c->x[2], spin = c->x[3], sine = sin(angle), cosine = cos(angle);
    double thrust = (force + 0.1 * length * spin * spin * sine) / 1.1;
    double twist = (9.8 * sine - cosine * thrust) / (length * (4.0 / 3 - 0.1 * cosine * cosine / 1.1));
    double change[4] = {c->x[1], thrust - 0.1 * length * twist * cosine / 1.1, spin, twist};
    for (int i = 0; i < 4; i++)
        c->x[i] += (float)(dt * change[i]);
    c->n_steps++;
    c->is_down = fabsf(c->x[0]) > 2.4f || fabsf(c->x[2]) > 0.2095f || c->n_steps == MOST_STEPS;
}

static stk_value policy(stk_value state)
{
    return stk_dense(stk_relu(stk_dense(state, 32)), 2);
}

/* The chance of each action, for all carts at once. */
static stk_session_step *make_play(stk_session *session)
{
    stk_graph *graph = stk_graph_new();
    stk_value state = stk_graph_input(graph, "state", STK_F32, STK_SHAPE(CARTS, 4));
    stk_graph_output(graph, "chance", stk_softmax(policy(state)));
    return stk_session_compile(session, graph, false);
}

/* -log(chance of what was done) * how much better than usual it went; rows without a weight are only room. */
static stk_session_step *make_learn(stk_session *session)
{
    stk_graph *graph = stk_graph_new();
    stk_value state = stk_graph_input(graph, "state", STK_F32, STK_SHAPE(ROWS, 4));
    stk_value action = stk_graph_input(graph, "action", STK_I32, STK_SHAPE(ROWS));
    stk_value weight = stk_graph_input(graph, "weight", STK_F32, STK_SHAPE(ROWS));
    stk_value loss = stk_reduce_sum(stk_mul(stk_cross_entropy(policy(state), action), weight), 0);
    stk_minimize(loss, stk_adam(.lr = 0.02), 0, NULL);
    return stk_session_compile(session, graph, true);
}

static float state[CARTS * 4], states[ROWS * 4], weight[ROWS];
static int32_t action[ROWS];

/* All carts, until each is down; row t * CARTS + i is what cart i saw and did at step t. Returns the mean of steps. */
static double play(stk_session_step *step, stk_rng *rng, cart *carts)
{
    double sum = 0;
    for (int i = 0; i < CARTS; i++) {
        carts[i] = (cart){.n_steps = 0};
        for (int k = 0; k < 4; k++)
            carts[i].x[k] = 0.1f * stk_rng_uniform(rng) - 0.05f;
    }
    for (int t = 0, n_up = CARTS; t < MOST_STEPS && n_up > 0; t++) {
        for (int i = 0; i < CARTS * 4; i++)
            states[t * CARTS * 4 + i] = state[i] = carts[i / 4].x[i % 4];
        if (stk_session_run(step) != STK_OK) return 0;
        const float *chance = stk_session_output(step, "chance");
        n_up = 0;
        for (int i = 0; i < CARTS; i++) {
            action[t * CARTS + i] = stk_rng_uniform(rng) < chance[2 * i + 1];
            if (!carts[i].is_down) push(&carts[i], action[t * CARTS + i]);
            n_up += !carts[i].is_down;
        }
    }
    for (int i = 0; i < CARTS; i++)
        sum += carts[i].n_steps;
    return sum / CARTS;
}

/* What a step is worth: the steps that followed it, compared with the mean and by the deviation of all. */
static void weigh(const cart *carts)
{
    double n = 0, sum = 0, squares = 0;
    for (int r = 0; r < ROWS; r++) {
        double left = carts[r % CARTS].n_steps - r / CARTS;
        weight[r] = (float)left;
        if (left <= 0) continue;
        n++;
        sum += left;
        squares += left * left;
    }
    double mean = sum / n, deviation = sqrt(squares / n - mean * mean) + 1e-6;
    for (int r = 0; r < ROWS; r++)
        weight[r] = weight[r] > 0 ? (float)((weight[r] - mean) / deviation / n) : 0;
}

int main(void)
{
    static cart carts[CARTS];
    double first = 0, best = 0;
    stk_rng rng = stk_rng_make(3, 0, 0, 0);
    stk_session *session = stk_session_new(NULL, 1, 3);
    stk_session_step *player = make_play(session), *learner = make_learn(session);
    stk_session_input(player, "state", state);
    stk_session_input(learner, "state", states);
    stk_session_input(learner, "action", action);
    stk_session_input(learner, "weight", weight);
    for (int round = 0; round < ROUNDS && stk_session_status(session) == STK_OK; round++) {
        double steps = play(player, &rng, carts);
        if (round == 0) first = steps;
        if (steps > best) best = steps;
        weigh(carts);
        stk_session_run(learner);
    }
    stk_status status = stk_session_status(session);
    if (status == STK_OK)
        printf("the pole stays up %.0f steps at first, %.0f at best, of %d\n", first, best, MOST_STEPS);
    else
        fprintf(stderr, "%s\n", stk_error_text());
    stk_session_free(session);
    return status != STK_OK || best < 120;
}
