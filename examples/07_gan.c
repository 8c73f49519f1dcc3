/* A loop of one's own with two optimisers: a GAN (Goodfellow et al. 2014) that learns to make numbers like those of a
 * mixture of two normal distributions, and says how far the two are apart before and after.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <stoker/graph/session.h>
#include <stoker/nn/layers.h>
#include <stoker/nn/loss.h>
#include <stoker/nn/nn.h>
#include <stoker/rng.h>

enum { BATCH = 256, NOISE = 4, WIDTH = 32, STEPS = 3000 };

static stk_value generator(stk_value noise)
{
    stk_scope_push(noise.graph, "generator");
    stk_value h = stk_relu(stk_dense(stk_relu(stk_dense(noise, WIDTH)), WIDTH));
    stk_value x = stk_dense(h, 1);
    stk_scope_pop(noise.graph);
    return x;
}

/* How real it takes each number to be: a logit [N,1]. */
static stk_value discriminator(stk_value x)
{
    stk_scope_push(x.graph, "discriminator");
    stk_value h = stk_leaky_relu(stk_dense(x, WIDTH), 0.2);
    stk_value y = stk_dense(stk_leaky_relu(stk_dense(h, WIDTH), 0.2), 1);
    stk_scope_pop(x.graph);
    return y;
}

/* The mean loss of rows that are all real, or all made. */
static stk_value judge(stk_value logits, double is_real)
{
    stk_value y = stk_graph_constant(logits.graph, STK_F32, STK_SHAPE(BATCH, 1), is_real);
    return stk_reduce_mean(stk_binary_cross_entropy(logits, y, 1), 0);
}

/* One graph a step; what they call alike is the same network. */
static stk_session_step *make_generator_step(stk_session *session)
{
    stk_graph *graph = stk_graph_new();
    stk_value made = generator(stk_graph_input(graph, "noise", STK_F32, STK_SHAPE(BATCH, NOISE)));
    /* Less momentum than usual keeps the two from circling each other (Radford et al. 2016). */
    stk_minimize(judge(discriminator(made), 1), stk_adam(.lr = 5e-4, .beta1 = 0.5), 0, "generator");
    stk_graph_output(graph, "made", made);
    return stk_session_compile(session, graph, true);
}

static stk_session_step *make_discriminator_step(stk_session *session)
{
    stk_graph *graph = stk_graph_new();
    stk_value noise = stk_graph_input(graph, "noise", STK_F32, STK_SHAPE(BATCH, NOISE));
    stk_value x[2] = {stk_graph_input(graph, "real", STK_F32, STK_SHAPE(BATCH, 1)), generator(noise)};
    /* Both through one network: as one batch of twice the rows. */
    stk_value logits = discriminator(stk_concat(x, 2, 0));
    stk_value real = stk_slice(logits, (int64_t[]){0, 0}, (int64_t[]){BATCH, 1}, (int64_t[]){1, 1});
    stk_value made = stk_slice(logits, (int64_t[]){BATCH, 0}, (int64_t[]){2 * BATCH, 1}, (int64_t[]){1, 1});
    stk_minimize(stk_add(judge(real, 1), judge(made, 0)), stk_adam(.lr = 5e-4, .beta1 = 0.5), 0, "discriminator");
    return stk_session_compile(session, graph, true);
}

static void draw(stk_rng *rng, float *noise, float *real)
{
    for (int i = 0; i < BATCH * NOISE; i++)
        noise[i] = stk_rng_normal(rng);
    for (int i = 0; i < BATCH; i++)
        real[i] = (stk_rng_below(rng, 4) ? 1.0f : -1.0f) + 0.2f * stk_rng_normal(rng); /* one in four is around -1 */
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The earth mover's distance of two samples: the mean distance of the sorted numbers. */
static double distance(const float *made, const float *real)
{
    float a[BATCH], b[BATCH];
    double sum = 0;
    for (int i = 0; i < BATCH; i++) {
        a[i] = made[i];
        b[i] = real[i];
    }
    qsort(a, BATCH, sizeof(*a), compare);
    qsort(b, BATCH, sizeof(*b), compare);
    for (int i = 0; i < BATCH; i++)
        sum += fabs((double)a[i] - (double)b[i]);
    return sum / BATCH;
}

int main(void)
{
    static float noise[BATCH * NOISE], real[BATCH];
    double before = 0, after = 0;
    stk_rng rng = stk_rng_make(1, 0, 0, 0);
    stk_session *session = stk_session_new(NULL, 1, 1);
    stk_session_step *d = make_discriminator_step(session), *g = make_generator_step(session);
    stk_session_input(d, "noise", noise);
    stk_session_input(d, "real", real);
    stk_session_input(g, "noise", noise);
    for (int i = 0; i < STEPS && stk_session_status(session) == STK_OK; i++) {
        draw(&rng, noise, real);
        stk_session_run(d);
        if (stk_session_run(g) != STK_OK) break;
        double now = distance(stk_session_output(g, "made"), real);
        if (i == 0) before = now;
        if (i >= STEPS - 100) after += now / 100; /* the mean of the last, since one sample is a rough guess */
    }
    stk_status status = stk_session_status(session);
    if (status == STK_OK)
        printf("distance %.3f before, %.3f after %d steps\n", before, after, STEPS);
    else
        fprintf(stderr, "%s\n", stk_error_text());
    stk_session_free(session);
    return status != STK_OK || !(after < 0.4);
}
