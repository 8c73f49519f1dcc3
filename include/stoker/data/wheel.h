/* Wheels of PyPI that are no Python: libraries which their maker publishes there. What a package has for this machine,
 * as its index tells; stk_download then fetches it. Threads: any.
 */
#ifndef STOKER_DATA_WHEEL_H
#define STOKER_DATA_WHEEL_H

#include <stdint.h>

#include "stoker/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_wheel {
    char version[64], file[256], url[2048];
    char checksum[80]; /* "sha256:..." */
    char licence[128]; /* as the package names it */
    int64_t n_bytes;
} stk_wheel;

/* The newest release of that major version (0: any) with a wheel for Linux on this processor, neither withdrawn nor a
 * candidate. index: an address or folder that has PACKAGE/json as PyPI's has it; NULL: PyPI's own. STK_NOT_FOUND: there
 * is none. STK_CORRUPT: the index is not as PyPI's. */
STK_API stk_status stk_wheel_find(const char *package, int major, const char *index, stk_wheel *out);

#ifdef __cplusplus
}
#endif
#endif
