/* Cases of attention, of its cache, and of linear_cross_entropy. */
#include "harness/harness.h"

/* One description serves attention and its gradient; extra inputs are given with their commas before them. */
#define HEADS(n, t, s, h, d) REAL(-1, 1, n, t, h, d), REAL(-1, 1, n, s, h, d), REAL(-1, 1, n, s, h, d)
#define ROUGH_HEADS(n, t, s, h, d)                                                                                     \
    ROUGH(FILL_UNIFORM, -2, 2, n, t, h, d), ROUGH(FILL_UNIFORM, -2, 2, n, s, h, d),                                    \
        ROUGH(FILL_UNIFORM, -2, 2, n, s, h, d)
#define MASK(n, s)   TYPED(STK_BOOL, FILL_BOOL, 0, 1, n, s)
#define NO_KEY(n, s) TYPED(STK_BOOL, FILL_CONSTANT, 0, 0, n, s)
#define SEED         SCALAR_I64(1234567890123456789), SCALAR_I64(7)
#define SET(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define ATTENTION(name, set, ...) CASE(name, attention, ATTRS(.attention = set), INPUTS(__VA_ARGS__), .loosen = 10)
/* y and lse by the reference where there is nothing but q, k, v; else any numbers that could be. */
#define GRAD(name, set, n, t, s, h, d, ...)                                                                            \
    CASE(name, attention_grad, ATTRS(.attention = set),                                                                \
         INPUTS(ROUGH(FILL_UNIFORM, -1, 1, n, t, h, d), ROUGH_HEADS(n, t, s, h, d),                                    \
                ROUGH(FILL_UNIFORM, -1, 1, n, t, h, d), ROUGH_STATS(FILL_UNIFORM, 2, 4, n, h, t), ##__VA_ARGS__),      \
         .loosen = 40)

#define CACHED(name, position, ...)                                                                                    \
    CASE(name, cached_attention, ATTRS(.attention = {0.4}), INPUTS(__VA_ARGS__, SCALAR_I64(position)), .loosen = 10)
#define WRITE(name, position, ...) CASE(name, write_at, ATTRS(.axis = 0), INPUTS(__VA_ARGS__, SCALAR_I64(position)))

#define LOSS(name, smoothing, ignored, m, v, d)                                                                        \
    CASE(name, linear_cross_entropy, ATTRS(.linear_cross_entropy = {smoothing, ignored}),                              \
         INPUTS(REAL(-1, 1, m, d), REAL(-2, 2, v, d), LABELS(m, v)), .loosen = 10)
#define LOSS_GRAD(name, smoothing, ignored, m, v, d)                                                                   \
    CASE(name, linear_cross_entropy_grad, ATTRS(.linear_cross_entropy = {smoothing, ignored}),                         \
         INPUTS(ROUGH(FILL_UNIFORM, -1, 1, m, d), ROUGH(FILL_UNIFORM, -2, 2, v, d), LABELS(m, v),                      \
                ROUGH_STATS(FILL_UNIFORM, -1, 1, m)),                                                                  \
         .loosen = 40, .rounds = true)
#define LOSS_GRAD_ONTO(name, m, v, d)                                                                                  \
    CASE(name, linear_cross_entropy_grad, ATTRS(.linear_cross_entropy = {0, -100}),                                    \
         INPUTS(ROUGH(FILL_UNIFORM, -1, 1, m, d), ROUGH(FILL_UNIFORM, -2, 2, v, d), LABELS(m, v),                      \
                ROUGH_STATS(FILL_UNIFORM, -1, 1, m), ROUGH_STATS(FILL_UNIFORM, -1, 1, v, d)),                          \
         .loosen = 40, .rounds = true)

static const op_case cases[] = {
    ATTENTION("heads", SET(0.5), HEADS(2, 3, 3, 2, 5)),
    ATTENTION("more keys", SET(0.4), HEADS(2, 3, 5, 2, 4)),
    ATTENTION("causal", SET(0.5, .causal = 1), HEADS(2, 5, 5, 2, 3)),
    ATTENTION("causal, more queries", SET(0.5, .causal = 1), HEADS(1, 5, 3, 2, 3)),
    ATTENTION("causal, more keys", SET(0.5, .causal = 1), HEADS(1, 3, 5, 2, 3)),
    ATTENTION("masked", SET(0.5), HEADS(3, 3, 5, 2, 4), MASK(3, 5)),
    ATTENTION("no key", SET(0.5), HEADS(2, 3, 5, 2, 4), NO_KEY(2, 5)),
    ATTENTION("dropout", SET(0.5, .rate = 0.4, .stream = 3), HEADS(2, 3, 11, 2, 4), SEED),
    ATTENTION("dropout of all", SET(0.5, .rate = 1), HEADS(2, 3, 4, 2, 4), SEED),
    ATTENTION("masked, causal, dropout", SET(0.5, .rate = 0.2, .causal = 1), HEADS(2, 6, 6, 2, 3), MASK(2, 6), SEED),
    ATTENTION("one of each", SET(1), HEADS(1, 1, 1, 1, 1)),
    ATTENTION("one query", SET(0.125), ROUGH_HEADS(2, 1, 129, 3, 64)),
    ATTENTION("65", SET(0.11, .causal = 1), ROUGH_HEADS(1, 65, 65, 2, 80)),
    ATTENTION("129", SET(0.3), ROUGH_HEADS(2, 129, 129, 1, 5)),
    ATTENTION("blocks of keys", SET(0.125, .rate = 0.1, .stream = 1), ROUGH_HEADS(1, 35, 601, 2, 64), MASK(1, 601),
              SEED),
    ATTENTION("blocks, causal", SET(0.25, .rate = 0.1, .causal = 1), ROUGH_HEADS(1, 300, 300, 1, 16), SEED),
    ATTENTION("large scores", SET(1), ROUGH(FILL_UNIFORM, -30, 30, 2, 9, 2, 5),
              ROUGH(FILL_UNIFORM, -30, 30, 2, 9, 2, 5), ROUGH(FILL_UNIFORM, -1, 1, 2, 9, 2, 5)),
    ATTENTION("special queries", SET(0.5), ROUGH(FILL_SPECIAL, -1, 1, 3, 7, 2, 3),
              ROUGH(FILL_UNIFORM, -1, 1, 3, 9, 2, 3), ROUGH(FILL_UNIFORM, -1, 1, 3, 9, 2, 3)),
    ATTENTION("special values", SET(0.5), ROUGH(FILL_UNIFORM, -1, 1, 3, 7, 2, 3),
              ROUGH(FILL_UNIFORM, -1, 1, 3, 9, 2, 3), ROUGH(FILL_SPECIAL, -1, 1, 3, 9, 2, 3)),
    ATTENTION("heads of 32", SET(0.2, .causal = 1), ROUGH_HEADS(2, 70, 70, 2, 32)),
    ATTENTION("heads of 64", SET(0.125, .causal = 1), ROUGH_HEADS(1, 130, 130, 2, 64), MASK(1, 130)),
    ATTENTION("heads of 128", SET(0.1, .rate = 0.2), ROUGH_HEADS(1, 67, 66, 2, 128), MASK(1, 66), SEED),
    ATTENTION("heads of 200", SET(0.1), ROUGH_HEADS(1, 9, 40, 2, 200)),
    ATTENTION("no samples", SET(0.5), HEADS(0, 3, 3, 2, 5)),
    ATTENTION("no queries", SET(0.5), HEADS(2, 0, 3, 2, 5)),
    ATTENTION("no keys", SET(0.5), HEADS(2, 3, 0, 2, 5)),

    GRAD("heads", SET(0.5), 2, 3, 3, 2, 5),
    GRAD("more keys", SET(0.4), 2, 3, 5, 2, 4),
    GRAD("causal, more queries", SET(0.5, .causal = 1), 1, 5, 3, 2, 3),
    GRAD("masked, causal, dropout", SET(0.5, .rate = 0.2, .causal = 1), 2, 6, 6, 2, 3, MASK(2, 6), SEED),
    GRAD("one query", SET(0.125), 2, 1, 129, 3, 64),
    GRAD("65", SET(0.11, .causal = 1), 1, 65, 65, 2, 80),
    GRAD("129", SET(0.3), 2, 129, 129, 1, 5),
    GRAD("blocks of keys", SET(0.125, .rate = 0.1, .stream = 1), 1, 35, 601, 2, 64, MASK(1, 601), SEED),
    GRAD("blocks, causal", SET(0.25, .rate = 0.1, .causal = 1), 1, 300, 300, 1, 16, SEED),
    GRAD("heads of 32", SET(0.2, .causal = 1), 2, 70, 70, 2, 32),
    GRAD("heads of 64", SET(0.125, .causal = 1), 1, 130, 130, 2, 64, MASK(1, 130)),
    GRAD("heads of 128", SET(0.1, .rate = 0.2), 1, 67, 66, 2, 128, MASK(1, 66), SEED),
    GRAD("heads of 200", SET(0.1), 1, 9, 40, 2, 200),
    GRAD("no key", SET(0.5), 2, 3, 5, 2, 4, NO_KEY(2, 5)),
    GRAD("no samples", SET(0.5), 0, 3, 3, 2, 5),
    GRAD("no queries", SET(0.5), 2, 0, 3, 2, 5),
    GRAD("no keys", SET(0.5), 2, 3, 0, 2, 5),

    CACHED("one query", 4, ROUGH_HEADS(1, 1, 9, 3, 8)),
    CACHED("first", 0, ROUGH_HEADS(2, 1, 9, 3, 5)),
    CACHED("last", 8, ROUGH_HEADS(2, 1, 9, 3, 5)),
    CACHED("several queries", 3, ROUGH_HEADS(2, 4, 11, 2, 5)),
    CACHED("many keys", 700, ROUGH_HEADS(1, 1, 1024, 12, 64)),
    CACHED("of size one", 5, ROUGH_HEADS(1, 1, 7, 1, 1)),
    CACHED("large scores", 8, ROUGH(FILL_UNIFORM, -30, 30, 2, 1, 2, 5), ROUGH(FILL_UNIFORM, -30, 30, 2, 9, 2, 5),
           ROUGH(FILL_UNIFORM, -1, 1, 2, 9, 2, 5)),
    CACHED("special queries", 6, ROUGH(FILL_SPECIAL, -1, 1, 3, 2, 2, 3), ROUGH(FILL_UNIFORM, -1, 1, 3, 9, 2, 3),
           ROUGH(FILL_UNIFORM, -1, 1, 3, 9, 2, 3)),
    CACHED("special values", 6, ROUGH(FILL_UNIFORM, -1, 1, 3, 2, 2, 3), ROUGH(FILL_UNIFORM, -1, 1, 3, 9, 2, 3),
           ROUGH(FILL_SPECIAL, -1, 1, 3, 9, 2, 3)),
    CACHED("parts of keys", 530, ROUGH_HEADS(1, 3, 600, 2, 20)),
    CACHED("a prompt", 0, ROUGH_HEADS(2, 40, 70, 2, 64)),
    CACHED("a prompt behind another", 69, ROUGH_HEADS(1, 67, 140, 2, 5)),
    CACHED("no samples", 0, ROUGH_HEADS(0, 1, 3, 2, 5)),
    CACHED("no queries", 3, ROUGH_HEADS(2, 0, 3, 2, 5)),
    WRITE("one row", 4, ROUGH(FILL_UNIFORM, -1, 1, 3, 9, 2, 5), ROUGH(FILL_UNIFORM, -1, 1, 3, 1, 2, 5)),
    WRITE("rows", 2, ROUGH(FILL_UNIFORM, -1, 1, 3, 9), ROUGH(FILL_UNIFORM, -1, 1, 3, 4)),
    WRITE("all rows", 0, ROUGH(FILL_SPECIAL, -1, 1, 2, 4, 3), ROUGH(FILL_SPECIAL, -1, 1, 2, 4, 3)),
    WRITE("wide rows", 5, ROUGH(FILL_UNIFORM, -1, 1, 3, 9, 8, 8), ROUGH(FILL_UNIFORM, -1, 1, 3, 2, 8, 8)),
    WRITE("no rows", 3, ROUGH(FILL_UNIFORM, -1, 1, 2, 3, 3), ROUGH(FILL_UNIFORM, -1, 1, 2, 0, 3)),
    WRITE("nothing", 0, ROUGH(FILL_UNIFORM, -1, 1, 0, 3, 3), ROUGH(FILL_UNIFORM, -1, 1, 0, 1, 3)),

    LOSS("classes", 0, -100, 5, 7, 3),
    LOSS("smoothed", 0.1, -100, 5, 7, 3),
    LOSS("ignored", 0, 2, 12, 5, 3),
    LOSS("one class", 0, -100, 5, 1, 3),
    LOSS("one feature", 0, -1, 5, 9, 1),
    LOSS("no rows", 0, -100, 0, 7, 3),
    LOSS("no features", 0, -100, 4, 7, 0),
    CASE("large logits", linear_cross_entropy, ATTRS(.linear_cross_entropy = {0, -100}),
         INPUTS(ROUGH(FILL_UNIFORM, -30, 30, 9, 5), ROUGH(FILL_UNIFORM, -30, 30, 65, 5), LABELS(9, 65)), .loosen = 10),
    CASE("special", linear_cross_entropy, ATTRS(.linear_cross_entropy = {0, -100}),
         INPUTS(ROUGH(FILL_SPECIAL, -1, 1, 20, 2), ROUGH(FILL_UNIFORM, 0.5, 1, 33, 2), LABELS(20, 33)), .loosen = 10),
    CASE("chunks of rows", linear_cross_entropy, ATTRS(.linear_cross_entropy = {0, -100}),
         INPUTS(ROUGH(FILL_UNIFORM, -1, 1, 1100, 5), ROUGH(FILL_UNIFORM, -1, 1, 67, 5), LABELS(1100, 67)),
         .loosen = 10),
    CASE("many classes", linear_cross_entropy, ATTRS(.linear_cross_entropy = {0.1, -100}),
         INPUTS(ROUGH(FILL_UNIFORM, -1, 1, 67, 33), ROUGH(FILL_UNIFORM, -1, 1, 1003, 33), LABELS(67, 1003)),
         .loosen = 10),
    LOSS_GRAD("classes", 0, -100, 5, 7, 3),
    LOSS_GRAD("smoothed", 0.1, -100, 5, 7, 3),
    LOSS_GRAD("ignored", 0.1, 2, 12, 5, 3),
    LOSS_GRAD("one class", 0, -100, 5, 1, 3),
    LOSS_GRAD("many classes", 0.1, 6, 67, 1003, 33),
    LOSS_GRAD("chunks of rows", 0, 6, 1100, 67, 5),
    LOSS_GRAD("chunks of rows, many classes", 0, 6, 1100, 1003, 40),
    LOSS_GRAD("no rows", 0, -100, 0, 7, 3),
    LOSS_GRAD_ONTO("onto a base", 67, 33, 5),
    LOSS_GRAD_ONTO("onto a base, many classes", 300, 1003, 40),
    LOSS_GRAD_ONTO("onto a base, in chunks", 1100, 33, 5),
    LOSS_GRAD_ONTO("onto a base, no rows", 0, 7, 3),
};

const case_list harness_cases_attention = LIST_OF(cases);
