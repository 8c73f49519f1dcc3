/* Which of NVIDIA's libraries are here, and what is missing: for people, and for what fetches them. See
 * stoker/graph/device.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/gpu/cuda/cuda.h"
#include "stoker/graph/device.h"

static const struct {
    const cuda_library_kind *kind;
    bool is_optional;
} wanted[] = {{&cuda_nvrtc, false}, {&cuda_cublaslt, true}};

enum { N_WANTED = sizeof(wanted) / sizeof(wanted[0]), OLDEST_MAJOR = 12 };

int stk_cuda_driver_major(void)
{
    (void)cuda_load();
    return cuda_driver_major();
}

stk_status stk_cuda_library_at(int i, int major, stk_cuda_library *out)
{
    STK_NEED(out);
    *out = (stk_cuda_library){0};
    if (i < 0 || i >= N_WANTED) return stk_fail(STK_NOT_FOUND, "there is no library number %d", i);
    if (major < OLDEST_MAJOR) return stk_fail(STK_INVALID, "CUDA %d: 12 is the oldest", major);
    const cuda_library_kind *kind = wanted[i].kind;
    cuda_library found;
    out->name = kind->name;
    out->about = kind->what;
    out->is_optional = wanted[i].is_optional;
    out->files = kind->files;
    snprintf(out->package, sizeof(out->package), "%s", major == OLDEST_MAJOR ? kind->package_12 : kind->package);
    const char *own = getenv(kind->variable);
    if (own && !strcmp(own, "0"))
        return stk_fail(STK_UNSUPPORTED, "%s is not wanted: %s=0", kind->name, kind->variable);
    stk_status status = cuda_find_library(kind, major, &found);
    if (status != STK_OK) return own && *own ? status : STK_OK;
    snprintf(out->path, sizeof(out->path), "%s", found.path); /* It stays loaded: these are not made to be unloaded. */
    return STK_OK;
}
