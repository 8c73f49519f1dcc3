/* Keys of what training does besides the optimiser's steps: slow weights, whitening, several views in evaluation. */
#include "recipe/keys.h"

const stk_key stk_lookahead_keys[] = {
    {.name = "every", .type = STK_KEY_INT, .default_value = "5", .least = 1, .most = 1e6, .doc = "Steps between."},
    {.name = "alpha",
     .type = STK_KEY_REAL,
     .default_value = "0.5",
     .least = 0,
     .most = 1,
     .doc = "The share of the way to the weights that the slow ones go."},
    {.name = "power",
     .type = STK_KEY_REAL,
     .default_value = "0",
     .least = 0,
     .most = 1000,
     .doc = "0: alpha throughout; else 1 - (1 - alpha) * t^power, where t goes from 0 to 1 in the run."},
    END};
const stk_key stk_sync_keys[] = {
    {.name = "every", .type = STK_KEY_INT, .default_value = "100", .least = 1, .most = 1e9, .doc = "Steps of its own."},
    {.name = "outer_lr",
     .type = STK_KEY_REAL,
     .default_value = "0.7",
     .least = 0,
     .above = true,
     .doc = "Of the outer step; 1 with outer_momentum 0: the mean of the replicas' weights."},
    {.name = "outer_momentum",
     .type = STK_KEY_REAL,
     .default_value = "0.9",
     .least = 0,
     .most = 0.9999,
     .doc = "Nesterov's, of the outer step."},
    END};
const stk_key stk_whiten_keys[] = {
    {.name = "layer",
     .type = STK_KEY_TEXT,
     .required = true,
     .doc = "The convolution, with as many filters as a patch has numbers, or twice as many."},
    {.name = "samples",
     .type = STK_KEY_INT,
     .default_value = "5000",
     .least = 1,
     .most = 1e9,
     .doc = "Training samples that are looked at, as the network gets them."},
    {.name = "eps",
     .type = STK_KEY_REAL,
     .default_value = "5e-4",
     .least = 0,
     .above = true,
     .doc = "Added to the eigenvalues."},
    END};
const stk_key stk_tta_keys[] = {
    {.name = "flip", .type = STK_KEY_BOOL, .default_value = "false", .doc = "Each view also flipped left-right."},
    {.name = "shift",
     .type = STK_KEY_INT,
     .default_value = "0",
     .least = 0,
     .most = 1024,
     .doc = "Views moved by N pixels up and left, and down and right, reflected where the image ends; they count "
            "half of all."},
    END};
