// From C++, which has no compound literals and none of the macros built on them: each has a function that does the same. The
// includes of every header, and all of main's own, are put before this by test_consumers.sh.
#include <cstdint>
#include <cstdio>

// A network whose shapes come from arrays.
static bool builds_a_model()
{
    const int64_t image[] = {8, 8, 1};
    stk_model *model = stk_model_new("small");
    stk_value x = stk_model_input_shape(model, STK_F32, stk_shape_make(image, 3));
    x = stk_dense(stk_relu(stk_dense(stk_flatten(x), 16)), 10);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label_shape(model, STK_I32, stk_shape_make(nullptr, 0))));
    bool good = stk_model_status(model) == STK_OK;
    if (!good) std::printf("%s\n", stk_error_text());
    stk_model_free(model);
    return good;
}

// Nine dimensions are one too many, and say so.
static bool refuses_a_shape()
{
    const int64_t many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    stk_model *model = stk_model_new("wrong");
    stk_model_input_shape(model, STK_F32, stk_shape_make(many, 9));
    bool refused = stk_model_status(model) == STK_INVALID;
    stk_model_free(model);
    return refused;
}

// Settings begin as their defaults.
static bool has_defaults()
{
    return stk_trainer_config_default().seed < 1000000 && stk_csv_config_default().n_fields == 0;
}

int main()
{
    return builds_a_model() && refuses_a_shape() && has_defaults() ? 0 : 1;
}
