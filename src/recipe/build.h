/* From a recipe to what the trainer takes: data sets, model, configuration. Errors about what does not fit name the key
 * of the recipe. Threads: one at a time for each recipe, but its parts may be built at once.
 */
#ifndef STK_RECIPE_BUILD_H
#define STK_RECIPE_BUILD_H

#include "recipe/recipe.h"
#include "stoker/nn/transformer.h"
#include "stoker/train/trainer.h"

/* The stages that a part's samples go through, its own or those of another part; NULL: none. */
const stk_yaml_node *stk_build_stages_of(const stk_recipe *recipe, int i_part);
/* The data set of a part, batched; *out is NULL where the recipe has no such part. The caller frees it. */
stk_status stk_build_dataset(const stk_recipe *recipe, int i_part, stk_dataset **out);
/* The data set of a part's source alone. The caller frees *out. */
stk_status stk_build_source(const stk_yaml_node *source, uint64_t seed, stk_dataset **out);
/* Puts the recipe's place before an error that data found; returns status. */
stk_status stk_build_fail(const stk_yaml_node *node, stk_status status);
/* Applies the stages of a list, NULL for none. */
stk_status stk_build_stages(const stk_yaml_node *stages, stk_dataset *dataset);
/* Where train mixes labels: class numbers become shares in every part, and train gets its mixup and cutmix. After the
 * stages. */
stk_status stk_build_mixup(const stk_recipe *recipe, int i_part, stk_dataset *dataset);
/* Where train hides tokens, every part does. After the stages. */
stk_status stk_build_masked(const stk_recipe *recipe, stk_dataset *dataset);
/* The filters of a list, NULL for none, before all other order. */
stk_status stk_build_filter(const stk_yaml_node *filter, stk_dataset *dataset);
/* Cuts a part into batches of n samples, as the recipe has them padded. */
stk_status stk_build_batches(const stk_recipe *recipe, const stk_recipe_part *part, int64_t n, stk_dataset *dataset);
/* Samples made of samples: what `part` says of unbatch, windows and packing. */
void stk_build_regroup(const stk_recipe_part *part, stk_dataset *dataset);
/* What `part` says of order, but for the share and what is done about errors. */
void stk_build_order(const stk_recipe_part *part, uint64_t seed, stk_dataset *dataset);
/* The data set's error, if it has one, with the recipe's place before it. */
stk_status stk_build_check(const stk_yaml_node *node, const stk_dataset *dataset);
/* Class numbers are i32 here: a label that is one whole number of another type is cast. */
void stk_build_class_labels(stk_dataset *dataset);
/* One decoded image, pixels u8 as `raw` says, through the stages of a part: a data set of one sample, for prediction
 * where the source has no encoded images. Borrows pixels. */
stk_status stk_build_single(const stk_recipe *recipe, int i_part, const uint8_t *pixels, stk_shape raw,
                            stk_dataset **out);
/* Refuses parts that do not go together: other classes or other shapes than train's. valid and test may be NULL. */
stk_status stk_build_check_parts(const stk_recipe *recipe, const stk_dataset *train, const stk_dataset *valid,
                                 const stk_dataset *test);
/* The model for samples as `train` gives them; also refuses labels that do not fit model or loss. */
stk_status stk_build_model(const stk_recipe *recipe, const stk_dataset *train, stk_model **out);
/* How many classes the model tells apart, from its settings or the data; an error where neither says. */
stk_status stk_build_n_classes(const stk_recipe *recipe, const stk_dataset *train, int64_t *out);
/* Refuses names in freeze, groups, init and whiten that no parameter of the model has. */
stk_status stk_build_check_names(const stk_recipe *recipe, const stk_model *model);
/* The model's error, if it has one, with the recipe's place before it. */
stk_status stk_build_check_model(const stk_recipe *recipe, const stk_model *model);
/* The field that the model learns, by its name, whether or not train has it; the recipe has a model. Borrowed. */
const char *stk_build_target(const stk_recipe *recipe, const stk_dataset *train);
/* Adds the target and the recipe's loss for an output [N,...]. */
stk_status stk_build_loss(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value output);
/* Writes the 'vocabulary' of a network that has such a key by itself into a recipe that leaves it out: as many tokens
 * as the tokenizer of the training data has, or the note next to its files says, whose paths are found; else, and
 * without from_data, as many as the size has of its own. */
stk_status stk_build_fill_vocabulary(stk_recipe *recipe, bool from_data);
/* Of a network whose descriptor has `configure`. */
stk_status stk_build_transformer_config(const stk_recipe *recipe, stk_transformer_config *out);
/* What its descriptor says; false without a model. */
bool stk_build_takes_tokens(const stk_recipe *recipe);
/* What people call a sample of the data: "image", "sequence", or "sample". A constant. */
const char *stk_build_sample_word(const stk_recipe *recipe, const stk_dataset *train);
bool stk_build_generates(const stk_recipe *recipe);

/* The descriptors of models and layers; NULL past the last, or when there is none of that name. */
const struct stk_model_class *stk_model_class_at(int i);
const struct stk_model_class *stk_model_class_find(const char *name);
struct stk_layer_class; /* nn/layer_class.h */
const struct stk_layer_class *stk_layer_class_find(const char *name);

/* Whose fields become inputs of a model; all are borrowed. */
typedef struct stk_model_data {
    const stk_recipe *recipe;
    const stk_dataset *train;
    stk_model *model;
} stk_model_data;
/* The model's input that takes that field, made where there is none. */
stk_status stk_build_field(const stk_model_data *data, const stk_yaml_node *place, const char *field, stk_value *out);
/* The field that networks begin with, whatever it is called: f32, or i32 with takes_whole. */
stk_status stk_build_input(const stk_model_data *data, bool takes_whole, stk_value *out);
/* A field of tokens i32 [T]; NULL: tokens, or text. */
stk_status stk_build_tokens(const stk_model_data *data, const char *field, stk_value *out);
/* The stage of one entry of a `stages:` list. */
stk_status stk_build_stage(const stk_yaml_node *stage, stk_stage **out);
/* Device, threads, seed, schedule, limits. Borrows recipe's texts; no callbacks are set. */
stk_trainer_config stk_build_config(const stk_recipe *recipe);
/* The bytes that `memory` allows; 0: not known. */
size_t stk_build_memory_limit(const stk_recipe *recipe);
/* The bytes that data.memory allows; 0: a quarter of what is free. */
size_t stk_build_data_memory(const stk_recipe *recipe);
/* That what is read outside loaders may take: data.memory, or memory where that alone is given; 0: as above. */
size_t stk_build_read_memory(const stk_recipe *recipe);

#endif
