/* Tensors and networks in files. All of stoker/files/. */
#ifndef STOKER_FILES_H
#define STOKER_FILES_H

#include "stoker/files/exchange.h"
#include "stoker/files/onnx.h"
#include "stoker/files/onnx_session.h"
#include "stoker/files/safetensors.h"

#endif
