/* The folder for what can be made again: $STOKER_CACHE, else $XDG_CACHE_HOME/stoker, else $HOME/.cache/stoker. */
#ifndef STK_BASE_CACHE_FOLDER_H
#define STK_BASE_CACHE_FOLDER_H

#include <stddef.h>

#include "stoker/status.h"

/* Its path, whether it is there or not. STK_NOT_FOUND where nothing says which. Threads: any. */
stk_status stk_cache_folder(char *out, size_t out_bytes);

#endif
