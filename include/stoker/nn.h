/* Layers, losses and networks. All of stoker/nn/. */
#ifndef STOKER_NN_H
#define STOKER_NN_H

#include "stoker/nn/layers.h"
#include "stoker/nn/loss.h"
#include "stoker/nn/models.h"
#include "stoker/nn/networks.h"
#include "stoker/nn/nn.h"
#include "stoker/nn/parse.h"
#include "stoker/nn/plugin.h"
#include "stoker/nn/recurrent.h"
#include "stoker/nn/transformer.h"
#include "stoker/nn/vit.h"

#endif
