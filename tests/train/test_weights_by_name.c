/* Weights of sessions and trainers by name: what is given back, and what is refused with its reason. The examples
 * 11_save_and_load and 12_run_onnx show the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "stoker/nn/nn.h"
#include "stoker/train/weights.h"

enum { ROWS = 4 };

static void expect(stk_status status, stk_status wanted, const char *words)
{
    if (status != wanted || !strstr(stk_error_text(), words))
        fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

static stk_session *open_session(const char *device, stk_session_step **step)
{
    stk_session *session = stk_session_new(device, 1, 1);
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(ROWS, 3));
    stk_value loss = stk_reduce_mean(stk_square(stk_dense(x, 2)), 0);
    stk_graph_output(graph, "loss", loss);
    stk_minimize(loss, stk_adam(.lr = 0.1), 0, NULL);
    *step = stk_session_compile(session, graph, true);
    return session;
}

static void weights_of_a_session(void **state)
{
    static const float x[ROWS * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1};
    float w[6], back[6];
    char path[] = "/tmp/stoker-weights-XXXXXX.safetensors";
    stk_session_step *step;
    stk_weight_info info;
    (void)state;
    stk_session *session = open_session("cpu", &step);
    stk_session_input(step, "x", x);
    assert_int_equal(stk_session_run(step), STK_OK);
    /* What the optimiser keeps is none of them. */
    assert_int_equal(stk_session_weight(session, 0, &info), STK_OK);
    assert_string_equal(info.name, "dense.bias");
    assert_int_equal(stk_session_weight(session, 1, &info), STK_OK);
    assert_string_equal(info.name, "dense.weight");
    assert_int_equal(info.n_bytes, sizeof(w));
    expect(stk_session_weight(session, 2, &info), STK_NO_ROW, "there are 2 weights");
    for (int i = 0; i < 6; i++)
        w[i] = (float)i;
    assert_int_equal(stk_session_set_weight(session, "dense.weight", w, sizeof(w)), STK_OK);
    assert_int_equal(stk_session_get_weight(session, "dense.weight", back, sizeof(back)), STK_OK);
    assert_memory_equal(back, w, sizeof(w));
    expect(stk_session_set_weight(session, "dense.weight", w, 4), STK_MISMATCH, "of 24 bytes, and 4 are given");
    expect(stk_session_get_weight(session, "dense.wieght", w, sizeof(w)), STK_NOT_FOUND,
           "did you mean 'dense.weight'?");
    expect(stk_session_get_weight(session, NULL, w, sizeof(w)), STK_INVALID, "no name");
    expect(stk_session_get_weight(NULL, "dense.weight", w, sizeof(w)), STK_INVALID, "no session");
    int fd = mkstemps(path, 12);
    assert_true(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    assert_int_equal(stk_session_save_weights(session, path), STK_OK);
    memset(w, 0, sizeof(w));
    assert_int_equal(stk_session_set_weight(session, "dense.weight", w, sizeof(w)), STK_OK);
    assert_int_equal(stk_session_load_weights(session, path, NULL), STK_OK);
    assert_int_equal(stk_session_get_weight(session, "dense.weight", w, sizeof(w)), STK_OK);
    assert_memory_equal(back, w, sizeof(w));
    assert_int_equal(stk_session_run(step), STK_OK);
    stk_session_free(session);
    unlink(path);
    session = open_session("cpu", &step);
    expect(stk_session_load_weights(session, path, NULL), STK_NOT_FOUND, path);
    /* An error of these calls is not the session's. */
    assert_int_equal(stk_session_status(session), STK_OK);
    stk_session_free(session);
}

static void a_trainer_that_cannot_be_made(void **state)
{
    stk_weight_info info;
    (void)state;
    stk_model *model = stk_model_new("broken");
    stk_trainer *trainer = stk_trainer_new(model, stk_dataset_idx("/nothing/there", "/nor/there"), stk_adam(.lr = 0.1));
    assert_int_not_equal(stk_trainer_weight(trainer, 0, &info), STK_OK);
    assert_int_not_equal(stk_trainer_load_checkpoint(trainer, "/nothing/there"), STK_OK);
    stk_trainer_free(trainer);
    expect(stk_trainer_weight(NULL, 0, &info), STK_INVALID, "no trainer");
    expect(stk_trainer_save_checkpoint(NULL, "x", 2), STK_INVALID, "no trainer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(weights_of_a_session),
                                       cmocka_unit_test(a_trainer_that_cannot_be_made)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
