/* Layers from shared objects. See stoker/nn/plugin.h. */
#ifndef STK_RECIPE_PLUGIN_H
#define STK_RECIPE_PLUGIN_H

#include "settings/yaml.h"
#include "stoker/nn/nn.h"

/* The layer that {file, layer, settings} name, built on *x. What was loaded stays loaded. */
stk_status stk_build_plugin(const stk_yaml_node *settings, stk_value *x);

#endif
