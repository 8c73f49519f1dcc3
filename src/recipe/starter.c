/* The recipe that `stoker new` writes. See stoker/train/run.h. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "stoker/train/run.h"

static const char top[] = "# What to train, on what, and how. All keys: docs/recipe.md, or stoker new --keys\n"
                          "# Train with:  stoker train %s.yaml        A quick look:  stoker train %s.yaml --steps 20\n"
                          "name: %s\n";

static const char rest[] =
    "\n"
    "data:\n"
    "  train:\n"
    "    source: {images: data/digits/train}   # a folder with one sub-folder for each class, of JPEG, PNG or WebP "
    "files\n"
    "    shuffle: true                         # (stoker get digits --out data/digits makes this one)\n"
    "    stages:                               # what is done to each image, in this order\n"
    "      - decode: {channels: 1}             # 1: grey, 3: colour\n"
    "      - random_crop: {size: 28, pad: 2}   # moves the image about: training only\n"
    "      - normalize: mnist                  # or {mean: [0.5], std: [0.25]}, or scale: 1/255\n"
    "  # valid: 10%                            # cut from train, to choose the best checkpoint by\n"
    "  test:\n"
    "    source: {images: data/digits/test}\n"
    "    stages: [{decode: {channels: 1}}, {normalize: mnist}]\n"
    "\n"
    "batch: 64\n"
    "model: {cnn: {widths: [16, 32, 64]}}      # or mlp, resnet18, or a list of layers of your own\n"
    "optimizer: {adam: {lr: 0.002}}            # or sgd: {lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 5e-4}\n"
    "schedule: {cosine: {warmup: 0.5}}         # warmup in epochs\n"
    "epochs: 2\n"
    "\n"
    "# device: cpu                             # stoker devices lists what there is\n"
    "# memory: auto                            # or 8GiB, 60%: a plan that needs more is refused before the run\n"
    "# checkpoint: {every: 1 epoch, keep: 2}   # or every: 500 steps\n"
    "# seed: 0\n";

stk_status stk_recipe_starter(const char *name, char **out)
{
    STK_NEED(name);
    STK_NEED(out);
    stk_text text = {0};
    *out = NULL;
    stk_text_add(&text, top, name, name, name);
    stk_text_add(&text, "%s", rest);
    STK_RETURN_IF_ERROR(stk_text_status(&text));
    *out = text.data;
    return STK_OK;
}
