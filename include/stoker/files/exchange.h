/* Runs from other people's weights, and files for other people's tools from runs. What `stoker import` and `stoker
 * export` do, as calls. Threads: one at a time for each folder.
 */
#ifndef STOKER_FILES_EXCHANGE_H
#define STOKER_FILES_EXCHANGE_H

#include "stoker/train/run.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STK_EXCHANGE_TEXT = 4096 };

typedef struct stk_import_options {
    const char *names; /* whose names the file has, as stk_exchange_names gives them; NULL: found out */
    const char *leave; /* parts of names, comma-separated, of tensors that keep their first content, as a new head's
                          ("fc."); NULL: none */
    const char *as; /* without a recipe: the network, "resnet50"; NULL: as the file says, which Stoker's exports do */
} stk_import_options;

typedef struct stk_import_report {
    const char *names;              /* that were recognised; a constant */
    int64_t n_file;                 /* tensors in the file */
    int64_t n_loaded, n_left;       /* of the model's tensors */
    int64_t n_extra;                /* the file's counters, masks, and second names of tied weights */
    int64_t n_unused;               /* the file's others that nothing took */
    char left[STK_EXCHANGE_TEXT];   /* their names, comma-separated, as many as there is room for */
    char unused[STK_EXCHANGE_TEXT]; /* likewise */
    char folder[STK_EXCHANGE_TEXT]; /* of the run */
    bool generates;                 /* text, see stoker/train/generate.h; it predicts nothing of files */
} stk_import_report;

/* Makes a run of the recipe whose parameters are those of a file in safetensors, with one checkpoint, step-0: it can be
 * evaluated, predict, be exported, and be trained with resume. run_options: set and out. The file may be in shards, of
 * any dtype, with the names and layouts of PyTorch, or a checkpoint of Stoker's. STK_MISMATCH names both sides of a
 * tensor that does not fit. Both options may be NULL.
 *
 * recipe NULL: of the network that options->as names (vgg16, resnet18, 34, 50, 101, mobilenet_v2, vit-base, vit-tiny:
 * with the sizes and the preprocessing of ImageNet), or that the file describes. Such a run knows no data: it predicts
 * and is exported; to train or evaluate it, set data.train.source. */
STK_API stk_status stk_run_import(const char *recipe, const char *file, const stk_run_options *run_options,
                                  const stk_import_options *options, stk_import_report *out);

typedef struct stk_export_options {
    const char *names;   /* as above; NULL: PyTorch's */
    stk_dtype dtype;     /* of floats in the file: F32, which is 0, BF16 or F16 */
    int64_t shard_bytes; /* as in stk_safetensors_options */
} stk_export_options;

typedef struct stk_export_report {
    int64_t n_tensors, n_bytes, n_files; /* bytes of the tensors */
    int64_t step;                        /* of the checkpoint: the best one, or else the last */
    char path[STK_EXCHANGE_TEXT];
    /* Of an ONNX model: "image u8 [N,28,28,1]", comma-separated; N is the batch. Else empty. */
    char inputs[STK_EXCHANGE_TEXT], outputs[STK_EXCHANGE_TEXT];
} stk_export_report;

/* Writes the run's parameters and running statistics with the names and layouts of PyTorch, so that load_state_dict or
 * from_pretrained take them; network, preprocessing and classes are in the metadata (stoker.recipe, stoker.data). Tied
 * weights are written once, as Hugging Face does. out: NULL: FOLDER/model.safetensors. options may be NULL. STK_BUSY
 * where a file of another kind is there, STK_NOT_FOUND where the folder for it is not. */
STK_API stk_status stk_run_export_safetensors(const char *folder, const char *out, const stk_run_options *run_options,
                                              const stk_export_options *options, stk_export_report *report);

/* Writes the run's network for prediction as an ONNX model, opset 17, in f32: inputs as the graph has them, the batch
 * open, "logits" out. Where the last stage of the test data (or of what stands in for it) is normalize or scale, it is
 * inside, and "image" is u8 [N,H,W,C]; decoding and resizing stay outside, since ONNX has no ops that give the same
 * pixels. metadata_props tell the stages as YAML ("stoker.stages"), how many of them are inside, and the classes as
 * JSON. Weights of more than shard_bytes (0: 1 GiB) lie in PATH.data. out: NULL: FOLDER/model.onnx. STK_BUSY where a
 * file of another kind is there. STK_UNSUPPORTED names what ONNX cannot express, or says that this build is without
 * protobuf-c. */
STK_API stk_status stk_run_export_onnx(const char *folder, const char *out, const stk_run_options *run_options,
                                       const stk_export_options *options, stk_export_report *report);

/* Writes the run's or the recipe's training step (forward, backward, clipping, optimiser) as one module of StableHLO, a
 * text that XLA, and so JAX, compiles. path: a run's folder or a recipe. Arguments and results carry the names of
 * parameters, inputs and outputs (attribute stoker.name). Everything is as for a TPU, unless run_options set it:
 * precision is bf16 where it is auto. With replicas it is what each of them runs. out: NULL: FOLDER/step.mlir. STK_BUSY
 * where a file of another kind is there. n_tensors of the report: arguments that are parameters or state. */
STK_API stk_status stk_run_export_stablehlo(const char *path, const char *out, const stk_run_options *run_options,
                                            stk_export_report *report);

/* Name i of those who call tensors differently, and who they are; NULL past the end. Constants. */
STK_API const char *stk_exchange_names(int i, const char **about);

#ifdef __cplusplus
}
#endif
#endif
