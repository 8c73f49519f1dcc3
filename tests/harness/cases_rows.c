/* Cases of what works on rows: layer norm, embedding. */
#include "harness/harness.h"

#define LAYER_NORM(name, eps, x, c)                                                                                    \
    CASE(name, layer_norm, ATTRS(.layer_norm = {eps}), INPUTS(x, STATS(0.5, 2, c), STATS(-0.5, 0.5, c)), .loosen = 10)
#define LAYER_NORM_GRAD(name, dy, x, c, ...)                                                                           \
    CASE(name, layer_norm_grad, ATTRS(0),                                                                              \
         INPUTS(dy, x, STATS(0.5, 2, c), STATS(-0.5, 0.5, __VA_ARGS__), STATS(0.5, 2, __VA_ARGS__)), .loosen = 10)

#define IDS(n, ...) TYPED(STK_I32, FILL_LABELS, 0, n, __VA_ARGS__)
#define EMBEDDING_GRAD(name, v, d, ...)                                                                                \
    CASE(name, embedding_grad, ATTRS(.shape = DIMS(v, d)), INPUTS(__VA_ARGS__), .loosen = 2)

static const op_case cases[] = {
    LAYER_NORM("rows", 1e-5, REAL(-1, 1, 5, 7), 7),
    LAYER_NORM("of a batch of rows", 1e-3, REAL(-2, 5, 2, 3, 33), 33),
    LAYER_NORM("one row", 1e-5, REAL(-1, 1, 9), 9),
    LAYER_NORM("of one element", 1e-5, REAL(-1, 1, 4, 1), 1),
    LAYER_NORM("far from zero", 1e-5, ROUGH(FILL_UNIFORM, 50, 51, 9, 64), 64),
    LAYER_NORM("all alike", 1e-5, ROUGH(FILL_CONSTANT, 3, 3, 4, 12), 12),
    CASE("special", layer_norm, ATTRS(.layer_norm = {1e-5}),
         INPUTS(ROUGH(FILL_SPECIAL, -1, 1, 9, 33), ROUGH_STATS(FILL_UNIFORM, 0.5, 2, 33),
                ROUGH_STATS(FILL_UNIFORM, -1, 1, 33)),
         .loosen = 10),
    LAYER_NORM("no rows", 1e-5, REAL(-1, 1, 0, 7), 7),
    LAYER_NORM("of nothing", 1e-5, REAL(-1, 1, 3, 0), 0),
    LAYER_NORM("long rows", 1e-5, ROUGH(FILL_UNIFORM, -1, 1, 3, 5000), 5000),
    LAYER_NORM("many rows", 1e-5, ROUGH(FILL_UNIFORM, -1, 1, 301, 65), 65),

    LAYER_NORM_GRAD("rows", REAL(-1, 1, 5, 7), REAL(-1, 1, 5, 7), 7, 5),
    LAYER_NORM_GRAD("of a batch of rows", REAL(-1, 1, 2, 3, 33), REAL(-2, 5, 2, 3, 33), 33, 2, 3),
    LAYER_NORM_GRAD("of one element", REAL(-1, 1, 4, 1), REAL(-1, 1, 4, 1), 1, 4),
    LAYER_NORM_GRAD("no rows", REAL(-1, 1, 0, 7), REAL(-1, 1, 0, 7), 7, 0),
    LAYER_NORM_GRAD("of nothing", REAL(-1, 1, 3, 0), REAL(-1, 1, 3, 0), 0, 3),
    LAYER_NORM_GRAD("long rows", REAL(-1, 1, 3, 2500), REAL(-1, 1, 3, 2500), 2500, 3),
    LAYER_NORM_GRAD("many rows", REAL(-1, 1, 301, 65), REAL(-1, 1, 301, 65), 65, 301),

    CASE("tokens", embedding, ATTRS(0), INPUTS(REAL(-1, 1, 11, 5), IDS(11, 3, 7))),
    CASE("one token", embedding, ATTRS(0), INPUTS(REAL(-1, 1, 4, 3), SCALAR(FIXED(STK_I32), 2))),
    CASE("no tokens", embedding, ATTRS(0), INPUTS(REAL(-1, 1, 4, 3), IDS(4, 0))),
    CASE("of no rows", embedding, ATTRS(0), INPUTS(REAL(-1, 1, 0, 3), IDS(1, 2, 0))),
    CASE("no columns", embedding, ATTRS(0), INPUTS(REAL(-1, 1, 4, 0), IDS(4, 5))),
    CASE("many tokens", embedding, ATTRS(0), INPUTS(ROUGH(FILL_SPECIAL, -1, 1, 301, 65), IDS(301, 9, 101))),

    EMBEDDING_GRAD("tokens", 11, 5, REAL(-1, 1, 3, 7, 5), IDS(11, 3, 7)),
    EMBEDDING_GRAD("onto a base", 11, 5, REAL(-1, 1, 3, 7, 5), IDS(11, 3, 7), REAL(-1, 1, 11, 5)),
    EMBEDDING_GRAD("one token", 4, 3, REAL(-1, 1, 3), SCALAR(FIXED(STK_I32), 2)),
    EMBEDDING_GRAD("no tokens", 4, 3, REAL(-1, 1, 0, 3), IDS(4, 0)),
    EMBEDDING_GRAD("no columns", 4, 0, REAL(-1, 1, 5, 0), IDS(4, 5)),
    EMBEDDING_GRAD("many tokens", 7, 65, REAL(-1, 1, 9, 101, 65), IDS(7, 9, 101)),
    EMBEDDING_GRAD("many tokens onto a base", 301, 65, ROUGH(FILL_UNIFORM, -1, 1, 900, 65), IDS(301, 900),
                   ROUGH(FILL_UNIFORM, -1, 1, 301, 65)),
};

const case_list harness_cases_rows = LIST_OF(cases);
