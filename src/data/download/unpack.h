/* What becomes of archives, and of texts that are cut up, when they were fetched. See stoker/data/download.h. */
#ifndef STK_DATA_DOWNLOAD_UNPACK_H
#define STK_DATA_DOWNLOAD_UNPACK_H

#include <stdbool.h>

#include "stoker/data/download.h"

/* Whether folder holds the set already, by its stoker-source.txt. STK_BUSY where it holds anything else. */
stk_status stk_download_is_unpacked(const stk_download_set *set, const char *folder, bool *out);
/* The files in the folder `fetched`, as one new folder. */
stk_status stk_download_unpack(const stk_download_set *set, const char *fetched, const char *folder,
                               stk_download_fn progress, void *user);

#endif
