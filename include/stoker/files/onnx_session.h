/* ONNX models that are run from a program, and networks of a program written as ONNX models: examples/12_run_onnx.c.
 * What of ONNX is known: docs/onnx.md. Threads: one at a time for each session or trainer.
 */
#ifndef STOKER_FILES_ONNX_SESSION_H
#define STOKER_FILES_ONNX_SESSION_H

#include "stoker/files/onnx.h"
#include "stoker/graph/session.h"
#include "stoker/train/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A step that runs the model (stk_onnx_open), with the model's weights, under the model's names of inputs and outputs,
 * in the model's layouts. Sizes that the model leaves open must have been given to stk_onnx_open. The model is borrowed
 * until the call returns. A session holds one model: the weights of two whose names are alike would be one. The step is
 * the session's. NULL: after an error, which the session keeps. */
STK_API stk_session_step *stk_session_compile_onnx(stk_session *session, stk_onnx *model);

/* Writes graph as an ONNX model for inference, opset 17, with the session's weights of the graph's names: all of them
 * must be there. Borrows graph; its batch may be open (STK_ANY). The file appears whole or not at all; STK_BUSY where
 * one of another kind is there; STK_UNSUPPORTED names what ONNX cannot express, or says that this build is without
 * protobuf-c. */
STK_API stk_status stk_session_export_onnx(stk_session *session, const stk_graph *graph, const char *path);
/* The same of the trainer's model as it stands: its inputs, the batch open, and "logits" out. */
STK_API stk_status stk_trainer_export_onnx(stk_trainer *trainer, const char *path);

#ifdef __cplusplus
}
#endif
#endif
