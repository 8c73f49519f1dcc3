/* Keys of what a run tells about itself while it trains. */
#include "train/keys.h"

static const char *const histogram_words[] = {"none", "epoch", NULL};
const stk_key stk_tensorboard_keys[] = {
    {.name = "on",
     .type = STK_KEY_BOOL,
     .standard = "true",
     .doc = "Whether at all; 'tensorboard: false' is short for it."},
    {.name = "histograms",
     .type = STK_KEY_WORD,
     .words = histogram_words,
     .standard = "none",
     .doc = "Of parameters, at the end of each epoch."},
    {.name = "images",
     .type = STK_KEY_INT,
     .standard = "4",
     .least = 0,
     .most = 16,
     .doc = "How many inputs of a batch are shown, where the field 'image' is one."},
    END};
