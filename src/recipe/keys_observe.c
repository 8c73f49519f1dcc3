/* Keys of what a run tells about itself while it trains. */
#include "recipe/keys.h"

const stk_key stk_prometheus_keys[] = {
    {.name = "file",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc =
         "Whether the run keeps metrics.prom in its folder, for node_exporter's textfile collector; 'prometheus: true' "
         "is short for it."},
    {.name = "port",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 65535,
     .doc =
         "Serves the same at http://127.0.0.1:PORT/metrics while the run trains, to this machine only; 0: at any free "
         "port. Default: not served."},
    END};

static const char *const histogram_words[] = {"none", "epoch", NULL};
const stk_key stk_tensorboard_keys[] = {
    {.name = "on",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc = "Whether at all; 'tensorboard: false' is short for it."},
    {.name = "histograms",
     .type = STK_KEY_WORD,
     .words = histogram_words,
     .default_value = "none",
     .doc = "Of parameters, at the end of each epoch."},
    {.name = "gradients",
     .type = STK_KEY_WORD,
     .words = histogram_words,
     .default_value = "none",
     .doc = "Histograms of gradients before clipping, at the last step of each epoch. They stay in memory until a step "
            "ends: as much as the parameters take."},
    {.name = "images",
     .type = STK_KEY_INT,
     .default_value = "4",
     .least = 0,
     .most = 16,
     .doc = "How many inputs of a batch are shown, where the field 'image' is one."},
    END};
