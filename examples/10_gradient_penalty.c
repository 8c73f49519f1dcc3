/* A gradient of a gradient: WGAN-GP (Gulrajani et al. 2017) learns to make points of a ring of eight normal
 * distributions. The critic's loss holds the slope of its own output between real and made points, and the weights'
 * gradients are of that as well. It says how far made points are from the nearest centre, and how many of the eight
 * are made, before and after. 1,500 steps, or as many as its argument says.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <stoker/graph/session.h>
#include <stoker/nn/layers.h>
#include <stoker/nn/nn.h>
#include <stoker/rng.h>

enum { BATCH = 256, NOISE = 4, WIDTH = 64, STEPS = 1500, CRITIC_STEPS = 3, CENTRES = 8 };

static stk_value mlp(stk_value x, const char *name, int64_t outputs)
{
    stk_scope_push(x.graph, name);
    stk_value h = stk_leaky_relu(stk_dense(x, WIDTH), 0.2);
    stk_value y = stk_dense(stk_leaky_relu(stk_dense(h, WIDTH), 0.2), outputs);
    stk_scope_pop(x.graph);
    return y;
}

/* One third of the rows of x [3*BATCH,...]. */
static stk_value third(stk_value x, int64_t i)
{
    int64_t width = stk_value_shape(x).dim[1];
    return stk_slice(x, (int64_t[]){i * BATCH, 0}, (int64_t[]){(i + 1) * BATCH, width}, (int64_t[]){1, 1});
}

/* The mean of (|slope| - 1)^2 over the rows of slopes. */
static stk_value penalty(stk_value slopes)
{
    stk_value squares = stk_reduce_sum(stk_square(slopes), 2);
    /* The 1e-12 keeps the root's gradient finite where the critic is flat. */
    stk_value slope = stk_sqrt(stk_shift_by(squares, 1e-12));
    return stk_reduce_mean(stk_square(stk_shift_by(slope, -1)), 0);
}

static stk_session_step *make_critic_step(stk_session *session)
{
    stk_graph *graph = stk_graph_new();
    stk_value noise = stk_graph_input(graph, "noise", STK_F32, STK_SHAPE(BATCH, NOISE));
    stk_value real = stk_graph_input(graph, "real", STK_F32, STK_SHAPE(BATCH, 2)), made = mlp(noise, "generator", 2);
    /* A point somewhere between each pair. */
    stk_value share = stk_graph_input(graph, "share", STK_F32, STK_SHAPE(BATCH, 1));
    stk_value between = stk_add(made, stk_mul(share, stk_sub(real, made)));
    /* All through one network: as one batch of three times the rows. */
    stk_value x = stk_concat((stk_value[]){made, real, between}, 3, 0), y = mlp(x, "critic", 1);
    stk_value loss = stk_sub(stk_reduce_mean(third(y, 0), 0), stk_reduce_mean(third(y, 1), 0));
    stk_minimize(stk_add(loss, stk_scale_by(penalty(third(stk_grad(y, x), 2)), 1)),
                 stk_adam(.lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9), 0, "critic");
    return stk_session_compile(session, graph, true);
}

static stk_session_step *make_generator_step(stk_session *session)
{
    stk_graph *graph = stk_graph_new();
    stk_value made = mlp(stk_graph_input(graph, "noise", STK_F32, STK_SHAPE(BATCH, NOISE)), "generator", 2);
    stk_minimize(stk_neg(stk_reduce_mean(mlp(made, "critic", 1), 0)), stk_adam(.lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9),
                 0, "generator");
    stk_graph_output(graph, "made", made);
    return stk_session_compile(session, graph, true);
}

static void centre(int i, float at[2])
{
    double angle = 2 * 3.14159265358979323846 * i / CENTRES;
    at[0] = (float)cos(angle);
    at[1] = (float)sin(angle);
}

static void draw(stk_rng *rng, float *noise, float *real, float *share)
{
    for (int i = 0; i < BATCH * NOISE; i++)
        noise[i] = stk_rng_normal(rng);
    for (int i = 0; i < BATCH; i++) {
        centre((int)stk_rng_below(rng, CENTRES), real + 2 * i);
        real[2 * i] += 0.05f * stk_rng_normal(rng);
        real[2 * i + 1] += 0.05f * stk_rng_normal(rng);
        share[i] = stk_rng_uniform(rng);
    }
}

/* The mean distance from the nearest centre; *n_hit: how many centres have one point in 50 at least. */
static double judge(const float *made, int *n_hit)
{
    double sum = 0;
    int n_near[CENTRES] = {0};
    for (int i = 0; i < BATCH; i++) {
        double best = INFINITY;
        int nearest = 0;
        for (int k = 0; k < CENTRES; k++) {
            float at[2];
            centre(k, at);
            double distance = hypot((double)made[2 * i] - (double)at[0], (double)made[2 * i + 1] - (double)at[1]);
            if (distance < best) nearest = k;
            best = fmin(best, distance);
        }
        n_near[nearest] += best < 0.25; /* five deviations */
        sum += best;
    }
    *n_hit = 0;
    for (int k = 0; k < CENTRES; k++)
        *n_hit += n_near[k] * 50 >= BATCH;
    return sum / BATCH;
}

int main(int argc, char **argv)
{
    int n_steps = argc > 1 ? atoi(argv[1]) : STEPS;
    static float noise[BATCH * NOISE], real[BATCH * 2], share[BATCH];
    double before = 0, after = 0;
    int hit_before = 0, hit_after = 0;
    stk_rng rng = stk_rng_make(1, 0, 0, 0);
    stk_session *session = stk_session_new(NULL, 1, 1);
    stk_session_step *critic = make_critic_step(session), *generator = make_generator_step(session);
    stk_session_input(critic, "noise", noise);
    stk_session_input(critic, "real", real);
    stk_session_input(critic, "share", share);
    stk_session_input(generator, "noise", noise);
    for (int i = 0; i < n_steps && stk_session_status(session) == STK_OK; i++) {
        for (int k = 0; k < CRITIC_STEPS; k++) {
            draw(&rng, noise, real, share);
            stk_session_run(critic);
        }
        if (stk_session_run(generator) != STK_OK) break;
        if (i == 0) before = judge(stk_session_output(generator, "made"), &hit_before);
        after = judge(stk_session_output(generator, "made"), &hit_after);
    }
    stk_status status = stk_session_status(session);
    if (status == STK_OK)
        printf("distance %.3f and %d of %d centres before, %.3f and %d after %d steps\n", before, hit_before, CENTRES,
               after, hit_after, n_steps);
    else
        fprintf(stderr, "%s\n", stk_error_text());
    stk_session_free(session);
    /* Fewer steps are not enough to judge. */
    return status != STK_OK || (n_steps >= STEPS && (after > 0.25 || hit_after < CENTRES - 1));
}
