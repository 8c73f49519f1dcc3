/* A stage: one step of work on one field of one sample. Internal interface; docs/adding-a-stage.md shows how to add
 * one.
 *
 * A stage is one file that ends with its descriptor, and one line in stage_list.h. `plan` states the output before any
 * data flows; `run` is a pure function of (input, key). Stages hold no state that changes: one stage object serves all
 * workers at once.
 */
#ifndef STK_DATA_STAGE_STAGE_H
#define STK_DATA_STAGE_STAGE_H

#include "base/rng.h"
#include "data/common/item.h"
#include "data/stage/view.h"
#include "settings/schema.h"
#include "stoker/data/dataset.h"

typedef struct stk_stage_class {
    stk_key key; /* its name, what a recipe can say of it, and what it does */
    /* The stage that the settings under that key say, which have been checked against it. An error names their place;
     * that of the arguments may be in the stage. NULL: not for recipes. */
    stk_status (*build)(const stk_yaml_node *settings, stk_stage **out);
    const char *field; /* that it works on where none is named; NULL: "image" */
    size_t params_bytes;
    /* The output's type for this input's, or an error that says what does not fit ("needs u8 or f32 images [H,W,C], not
     * i32 []"); the caller adds the names of the stages. */
    stk_status (*plan)(const void *params, const stk_field_type *in, stk_field_type *out);
    /* The output's shape for this very sample, once its input is known; NULL where plan's answer has no STK_ANY left
     * when the input has none. For encoded input this reads the header only. The key is the same as run's. */
    stk_status (*measure)(const void *params, const stk_stage_key *key, const stk_item *in, stk_field_type *out);
    /* Writes out->data (out->type is measured already, the place is large enough). scratch is this stage's and worker's
     * own. */
    stk_status (*run)(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch);
    /* Optional: tells the view what run would do, and sets *fits to what the view answers. An error is one that run
     * would give. See data/stage/view.h. */
    stk_status (*view)(const void *params, const stk_stage_key *key, stk_view *view, bool *fits);
    /* Optional: what is to be done when a stage is freed. */
    void (*close)(void *params);
    bool random;    /* uses the key */
    bool in_place;  /* out->data may be in->data */
    bool unique;    /* params point into the stage itself, so that it has no copies */
    bool geometric; /* moves pixels by the key and the image's sides alone, so that it can do the same to a mask */
    /* Optional, of a geometric one: params for masks, whose values are never mixed, and whose outside is 0. */
    void (*for_mask)(void *params);
    bool resizes, crops; /* makes images of another size by mixing pixels, or by leaving out some */
    bool rescales;       /* makes other numbers of the values, each alone; f32 unless its dtype says u8 */
    bool plain;          /* equal params, byte by byte, mean equal work in every process: no pointers, no padding */
} stk_stage_class;

struct stk_stage {
    const stk_stage_class *class;
    stk_status status; /* of its constructor; the text is in error */
    char error[200];
    _Alignas(16) unsigned char params[64];
};

/* For constructors: copies params; never NULL. A failed one carries its error to stk_dataset_apply. */
stk_stage *stk_stage_new(const stk_stage_class *class, const void *params);
stk_stage *stk_stage_new_failed(stk_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
