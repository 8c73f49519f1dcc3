/* Cases of lstm, gru and their gradients: by samples and by units (device/cpu/recurrent/recurrent.c), both directions,
 * masks, odd sizes. */
#include "harness/harness.h"

#define SET(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define MASK(n, t) TYPED(STK_BOOL, FILL_BOOL, 0, 1, n, t)
#define ROWS(...)  ROUGH(FILL_UNIFORM, -1, 1, __VA_ARGS__)
#define SHARE(...) ROUGH(FILL_UNIFORM, 0, 1, __VA_ARGS__)
#define LSTM(name, set, n, t, h, ...)                                                                                  \
    CASE(name, lstm, ATTRS(.recurrent = set),                                                                          \
         INPUTS(REAL(-1, 1, n, t, 4 * h), REAL(-0.5, 0.5, 4 * h, h), REAL(-1, 1, 4 * h), REAL(-1, 1, n, h),            \
                REAL(-1, 1, n, h), ##__VA_ARGS__),                                                                     \
         .loosen = 20, .rounds = true)
#define GRU(name, set, n, t, h, ...)                                                                                   \
    CASE(name, gru, ATTRS(.recurrent = set),                                                                           \
         INPUTS(REAL(-1, 1, n, t, 3 * h), REAL(-0.5, 0.5, 3 * h, h), REAL(-1, 1, 3 * h), REAL(-1, 1, n, h),            \
                ##__VA_ARGS__),                                                                                        \
         .loosen = 20, .rounds = true)
#define LSTM_GRAD(name, set, n, t, h, ...)                                                                             \
    CASE(name, lstm_grad, ATTRS(.recurrent = set),                                                                     \
         INPUTS(ROWS(n, t, h), ROWS(n, t, h), SHARE(n, t, 4 * h), ROUGH(FILL_UNIFORM, -0.1, 0.1, 4 * h, h),            \
                ROWS(n, h), ##__VA_ARGS__),                                                                            \
         .loosen = 20, .rounds = true)
#define GRU_GRAD(name, set, n, t, h, ...)                                                                              \
    CASE(name, gru_grad, ATTRS(.recurrent = set),                                                                      \
         INPUTS(ROWS(n, t, h), ROWS(n, t, h), SHARE(n, t, 3 * h), ROWS(n, t, h),                                       \
                ROUGH(FILL_UNIFORM, -0.1, 0.1, 3 * h, h), ROWS(n, h), ##__VA_ARGS__),                                  \
         .loosen = 20, .rounds = true)
#define SPEED .large = true

static const op_case cases[] = {
    LSTM("steps", SET(0), 3, 4, 3),
    LSTM("reverse", SET(1), 2, 5, 3),
    LSTM("masked", SET(0, 1), 3, 5, 3, MASK(3, 5)),
    LSTM("reverse, masked", SET(1, 1), 3, 4, 2, MASK(3, 4)),
    LSTM("one of each", SET(0), 1, 1, 1),
    LSTM("nobody", SET(0), 0, 3, 2),
    LSTM("by units", SET(0), 5, 3, 70),
    LSTM("by units, masked", SET(1, 1), 3, 3, 65, MASK(3, 3)),
    LSTM("blocks of samples", SET(0), 137, 3, 9),
    GRU("steps", SET(0), 3, 4, 3),
    GRU("reverse", SET(1), 2, 5, 3),
    GRU("masked", SET(0, 1), 3, 5, 3, MASK(3, 5)),
    GRU("reverse, masked", SET(1, 1), 3, 4, 2, MASK(3, 4)),
    GRU("one of each", SET(0), 1, 1, 1),
    GRU("nobody", SET(0), 0, 3, 2),
    GRU("by units", SET(0), 5, 3, 70),
    GRU("by units, masked", SET(1, 1), 3, 3, 65, MASK(3, 3)),
    GRU("blocks of samples", SET(0), 137, 3, 9),
    LSTM_GRAD("steps", SET(0), 3, 4, 3),
    LSTM_GRAD("states, too", SET(1), 3, 4, 3, ROWS(3, 4, 3)),
    LSTM_GRAD("masked", SET(0, 1), 3, 5, 3, MASK(3, 5)),
    LSTM_GRAD("masked, states, too", SET(1, 1), 3, 5, 3, MASK(3, 5), ROWS(3, 5, 3)),
    LSTM_GRAD("one of each", SET(0), 1, 1, 1),
    LSTM_GRAD("nobody", SET(0), 0, 3, 2),
    LSTM_GRAD("by units", SET(1, 1), 5, 3, 70, MASK(5, 3), ROWS(5, 3, 70)),
    LSTM_GRAD("blocks of samples", SET(0), 137, 3, 9),
    GRU_GRAD("steps", SET(0), 3, 4, 3),
    GRU_GRAD("reverse", SET(1), 3, 4, 3),
    GRU_GRAD("masked", SET(0, 1), 3, 5, 3, MASK(3, 5)),
    GRU_GRAD("one of each", SET(0), 1, 1, 1),
    GRU_GRAD("nobody", SET(0), 0, 3, 2),
    GRU_GRAD("by units", SET(1, 1), 5, 3, 70, MASK(5, 3)),
    GRU_GRAD("blocks of samples", SET(0), 137, 3, 9),
    CASE("32x300x128", lstm, ATTRS(.recurrent = {0}),
         INPUTS(ROWS(32, 300, 512), ROUGH(FILL_UNIFORM, -0.1, 0.1, 512, 128), ROWS(512), ROWS(32, 128), ROWS(32, 128)),
         SPEED),
    CASE("32x300x128", lstm_grad, ATTRS(.recurrent = {0}),
         INPUTS(ROWS(32, 300, 128), ROWS(32, 300, 128), SHARE(32, 300, 512), ROUGH(FILL_UNIFORM, -0.1, 0.1, 512, 128),
                ROWS(32, 128)),
         SPEED),
    CASE("32x300x512", gru, ATTRS(.recurrent = {0}),
         INPUTS(ROWS(32, 300, 1536), ROUGH(FILL_UNIFORM, -0.1, 0.1, 1536, 512), ROWS(1536), ROWS(32, 512)), SPEED),
};
const case_list harness_cases_recurrent = LIST_OF(cases);
