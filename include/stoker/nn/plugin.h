/* Layers of one's own in C, which a recipe names: {plugin: {file: mine.so}}.
 *
 *   #include <stoker/nn/plugin.h>
 *   static stk_value build(stk_value x, const char *settings) { return stk_mul(x, stk_sigmoid(stk_dense(x, 8))); }
 *   static const stk_layer_plugin layers[] = {{"gate", build}, {NULL, NULL}};
 *   STK_EXPORT_LAYERS(layers)
 *
 *   cc -shared -fPIC mine.c -o mine.so $(pkg-config --cflags stoker)
 *
 * A plug-in is not linked to the library: the program that loads it has one, and is asked for stk_ functions by name.
 * `build` gets the layers' value so far and the text of `settings`, and returns another; what it builds of layers and
 * operations has its gradients by itself. It may be called several times, from one thread at a time. An error is the
 * graph's: return what the failing call returned, or keep one by passing a value without an id to any layer. A plug-in
 * runs with all rights of the program: name only files that you trust.
 */
#ifndef STOKER_NN_PLUGIN_H
#define STOKER_NN_PLUGIN_H

#include <stdint.h>

#include "stoker/nn/layers.h"
#include "stoker/nn/nn.h"
#include "stoker/nn/transformer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Goes up with every change of what is below, or of the structs that layers take. */
#define STK_PLUGIN_ABI 1

typedef struct stk_layer_plugin {
    const char *name; /* as `layer:` names it; NULL ends a list */
    stk_value (*build)(stk_value x, const char *settings);
} stk_layer_plugin;

typedef struct stk_plugin_info {
    uint32_t abi; /* STK_PLUGIN_ABI of the headers that it was built with */
    uint32_t bytes_of_value;
    const stk_layer_plugin *layers; /* ended by a name of NULL */
} stk_plugin_info;

#if defined(__GNUC__)
#define STK_PLUGIN_VISIBLE __attribute__((visibility("default")))
#else
#define STK_PLUGIN_VISIBLE
#endif

/* The one symbol that is looked for. */
#define STK_EXPORT_LAYERS(list)                                                                                        \
    STK_PLUGIN_VISIBLE const stk_plugin_info stoker_plugin = {STK_PLUGIN_ABI, (uint32_t)sizeof(stk_value), list};

#ifdef __cplusplus
}
#endif
#endif
