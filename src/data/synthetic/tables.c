/* Tables whose labels are drawn from chances that a formula gives, so that it is known what the best model reaches:
 * the accuracy of answering the likelier one, and the mean loss of naming the chance itself.
 */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "data/synthetic/synthetic.h"

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* What naming the chances reaches, over all labels drawn so far. */
typedef struct best_rate {
    double n, n_right, loss;
} best_rate;

/* A label of that chance; adds it to what is known to be best. */
static int draw_label(stk_rng *rng, double chance, best_rate *best)
{
    int label = stk_rng_uniform(rng) < (float)chance;
    best->n++;
    best->n_right += label == (chance > 0.5);
    best->loss -= log(label ? chance : 1 - chance);
    return label;
}

static stk_status write_table(const stk_synthetic *made, int part, const stk_text *table)
{
    char name[16];
    snprintf(name, sizeof(name), "%s.csv", stk_synthetic_part[part]);
    STK_RETURN_IF_ERROR(stk_text_status(table));
    return stk_synthetic_file(made, name, table->data, table->n);
}

static void note_best(stk_synthetic *made, const best_rate *best)
{
    stk_text_add(
        &made->note,
        "The chances themselves reach on the test part: accuracy %.4f, mean loss (binary cross-entropy) %.4f.\n",
        best->n_right / best->n, best->loss / best->n);
}

/* Writes both parts; row adds one line. */
static stk_status write_both(stk_synthetic *made, const char *headings, const void *world,
                             void (*row)(stk_rng *rng, const void *world, stk_text *out, best_rate *best))
{
    for (int part = 0; part < 2; part++) {
        stk_text table = {0};
        best_rate best = {0};
        stk_text_add(&table, "%s\n", headings);
        stk_status status = STK_OK;
        for (int64_t i = 0; i < made->n[part] && status == STK_OK; i++) {
            if (i % 1024 == 0) status = stk_synthetic_ask(made);
            stk_rng rng = stk_synthetic_rng(made, part, i);
            row(&rng, world, &table, &best);
        }
        if (status == STK_OK) status = write_table(made, part, &table);
        stk_text_free(&table);
        if (status != STK_OK) return status;
        if (part == 1 && best.loss > 0) note_best(made, &best);
    }
    return STK_OK;
}

/* --- clicks --- */

enum { USERS = 200, ITEMS = 100, TYPES = 4 };

typedef struct click_world {
    float user[USERS], item[ITEMS]; /* how eager, how good */
    int user_type[USERS], item_type[ITEMS];
} click_world;

static click_world make_click_world(const stk_synthetic *made)
{
    click_world w;
    stk_rng rng = stk_synthetic_rng(made, 2, 0);
    for (int i = 0; i < USERS; i++) {
        w.user[i] = stk_rng_normal(&rng);
        w.user_type[i] = (int)stk_rng_below(&rng, TYPES);
    }
    for (int i = 0; i < ITEMS; i++) {
        w.item[i] = stk_rng_normal(&rng);
        w.item_type[i] = (int)stk_rng_below(&rng, TYPES);
    }
    return w;
}

/* Each type of users likes one type of items, which no sum over users and items says: that is for the deep part. */
static void add_click(stk_rng *rng, const void *world, stk_text *out, best_rate *best)
{
    const click_world *w = world;
    int user = (int)stk_rng_below(rng, USERS), item = (int)stk_rng_below(rng, ITEMS);
    float x[4];
    for (int i = 0; i < 4; i++)
        x[i] = stk_rng_normal(rng);
    double logit = (double)w->user[user] + (double)w->item[item] + 0.8 * (double)x[0] - 0.6 * (double)x[1] +
                   (w->user_type[user] == w->item_type[item] ? 2.5 : -0.8);
    int label = draw_label(rng, logistic(logit), best);
    stk_text_add(out, "%d,%d,%.4f,%.4f,%.4f,%.4f,%d\n", user, item, (double)x[0], (double)x[1], (double)x[2],
                 (double)x[3], label);
}

stk_status stk_synthetic_clicks(stk_synthetic *made)
{
    const click_world world = make_click_world(made);
    return write_both(made, "user,item,x0,x1,x2,x3,label", &world, add_click);
}

/* --- notes --- */

/* Of three labels: one is a sum, one depends on a product, one on a distance. */
static void add_note(stk_rng *rng, const void *world, stk_text *out, best_rate *best)
{
    float x[8];
    (void)world;
    for (int i = 0; i < 8; i++) {
        x[i] = stk_rng_normal(rng);
        stk_text_add(out, "%.4f,", (double)x[i]);
    }
    const double logit[3] = {3 * ((double)x[0] + (double)x[1] - (double)x[2]), 4 * (double)x[3] * (double)x[4],
                             4 * (1.4 - (double)x[5] * (double)x[5] - (double)x[6] * (double)x[6])};
    for (int k = 0; k < 3; k++)
        stk_text_add(out, "%d%s", draw_label(rng, logistic(logit[k]), best), k < 2 ? "," : "\n");
}

stk_status stk_synthetic_notes(stk_synthetic *made)
{
    return write_both(made, "x0,x1,x2,x3,x4,x5,x6,x7,a,b,c", NULL, add_note);
}

/* --- prices --- */

static const double PRICE_NOISE = 0.25;

static void add_price(stk_rng *rng, const void *world, stk_text *out, best_rate *best)
{
    float x[6];
    (void)world;
    (void)best;
    for (int i = 0; i < 6; i++) {
        x[i] = stk_rng_uniform(rng);
        stk_text_add(out, "%.4f,", (double)x[i]);
    }
    double price = sin(3.14159265 * (double)x[0] * (double)x[1]) + 2 * ((double)x[2] - 0.5) * ((double)x[2] - 0.5) +
                   (double)x[3] + 0.5 * (double)x[4];
    stk_text_add(out, "%.4f\n", price + PRICE_NOISE * (double)stk_rng_normal(rng));
}

/* Friedman 1991, smaller. */
stk_status stk_synthetic_prices(stk_synthetic *made)
{
    stk_text_add(
        &made->note,
        "The noise of prices has the deviation %.2f, so that no model's mean squared error is below about %.4f.\n",
        PRICE_NOISE, PRICE_NOISE * PRICE_NOISE);
    return write_both(made, "x0,x1,x2,x3,x4,x5,price", NULL, add_price);
}
