/* Where NVIDIA's libraries lie. The driver's own is the loader's to find; NVRTC and others come with a toolkit, or with
 * NVIDIA's wheels for Python, which need no right to install anything. */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "device/gpu/cuda/cuda.h"

enum { OLDEST_MAJOR = 12 };

const cuda_library_kind cuda_nvrtc = {.name = "NVRTC",
                                      .what = "NVIDIA's run-time compiler",
                                      .variable = "STOKER_NVRTC",
                                      .soname = "libnvrtc.so.%d",
                                      .package = "nvidia-cuda-nvrtc",
                                      .package_12 = "nvidia-cuda-nvrtc-cu12",
                                      .version = "nvrtcVersion",
                                      .files = {"libnvrtc.so.", "libnvrtc-builtins.so."}};

const cuda_library_kind cuda_cublaslt = {.name = "cuBLASLt",
                                         .what = "NVIDIA's products of matrices",
                                         .variable = "STOKER_CUBLASLT",
                                         .soname = "libcublasLt.so.%d",
                                         .package = "nvidia-cublas",
                                         .package_12 = "nvidia-cublas-cu12",
                                         .version = "cublasLtGetVersion",
                                         .files = {"libcublasLt.so."}};

/* In this order. `root` is a variable or a folder that stands before the pattern; the loader has what the system and
 * LD_LIBRARY_PATH know, as Debian's and Fedora's packages. */
static const struct {
    const char *variable, *folder;
} places[] = {
    {NULL, ""},
    {"VIRTUAL_ENV", "lib/python3*/site-packages/nvidia/*/lib"},
    {"CONDA_PREFIX", "lib"},
    {"CACHE", "cuda/*/nvidia/*/lib"}, /* stk_cache_folder: what 'stoker get cuda-libs' fills */
    {"CACHE", "cuda/nvidia/*/lib"},   /* the same by pip's --target */
    {NULL, "/usr/local/cuda/lib64"},
    {NULL, "/usr/local/cuda-*/lib64"},
    {NULL, "/opt/cuda/lib64"},
};
enum { N_PLACES = sizeof(places) / sizeof(places[0]) };

/* False: it is nowhere, since its variable is not set. "": the loader's. */
static bool name_place(int i, char *out, size_t n)
{
    char cache[1024];
    const char *root = "";
    if (places[i].variable && !strcmp(places[i].variable, "CACHE"))
        root = stk_cache_folder(cache, sizeof(cache)) == STK_OK ? cache : NULL;
    else if (places[i].variable)
        root = getenv(places[i].variable);
    if (!root || (places[i].variable && !*root)) return false;
    return (size_t)snprintf(out, n, "%s%s%s", root, *root ? "/" : "", places[i].folder) < n;
}

static void *open_first(const char *pattern)
{
    glob_t found;
    void *library = NULL;
    if (glob(pattern, 0, NULL, &found) != 0) return NULL;
    for (size_t i = 0; i < found.gl_pathc && !library; i++)
        library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return library;
}

static void *open_major(const cuda_library_kind *kind, int major)
{
    char soname[64], folder[1200], pattern[1300];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(soname, sizeof(soname), kind->soname, major);
#pragma GCC diagnostic pop
    void *library = NULL;
    for (int i = 0; i < N_PLACES && !library; i++) {
        if (!name_place(i, folder, sizeof(folder))) continue;
        if (!*folder) {
            library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
            continue;
        }
        snprintf(pattern, sizeof(pattern), "%s/%s", folder, soname);
        library = open_first(pattern);
    }
    return library;
}

/* The path that the loader took. */
static void name_library(const cuda_library_kind *kind, const char *opened, cuda_library *out)
{
    Dl_info info;
    void *symbol = dlsym(out->handle, kind->version);
    bool known = symbol && dladdr(symbol, &info) && info.dli_fname;
    snprintf(out->path, sizeof(out->path), "%s", known ? info.dli_fname : opened);
}

/* The command that helps, and where this looked. */
static stk_status fail_missing(const cuda_library_kind *kind, int most_major)
{
    char cache[1024] = "~/.cache/stoker", folder[1200];
    stk_text text = {0};
    cuda_library newer = {0};
    for (int major = most_major + 1; major <= most_major + 2 && !newer.handle; major++)
        newer.handle = open_major(kind, major);
    if (newer.handle) {
        name_library(kind, kind->name, &newer);
        stk_text_add(&text, "'%s' is of a newer CUDA than this driver, %d.x; ", newer.path, most_major);
    }
    (void)!stk_cache_folder(cache, sizeof(cache));
    if (kind->files[0])
        stk_text_add(&text, "'stoker get cuda-libs' fetches it, or ");
    else
        stk_text_add(&text, "pip install --target %s/cuda %s, or ", cache,
                     most_major == OLDEST_MAJOR ? kind->package_12 : kind->package);
    stk_text_add(&text, "%s set to its path; looked for by the loader", kind->variable);
    for (int i = 0; i < N_PLACES; i++)
        if (name_place(i, folder, sizeof(folder)) && *folder) stk_text_add(&text, ", %s", folder);
    stk_status status = stk_fail(STK_NO_DEVICE, "%s is missing (%s): %s", kind->name, kind->what, stk_text_get(&text));
    stk_text_free(&text);
    return status;
}

stk_status cuda_find_library(const cuda_library_kind *kind, int most_major, cuda_library *out)
{
    const char *own = getenv(kind->variable);
    *out = (cuda_library){0};
    if (own && *own) { /* What is asked for is not replaced by something else. */
        out->handle = dlopen(own, RTLD_NOW | RTLD_LOCAL);
        if (!out->handle) {
            const char *why = dlerror();
            return stk_fail(STK_NO_DEVICE, "cannot load %s, %s: %s", kind->name, kind->variable, why ? why : own);
        }
    }
    for (int major = most_major; major >= OLDEST_MAJOR && !out->handle; major--)
        out->handle = open_major(kind, major);
    if (!out->handle) return fail_missing(kind, most_major);
    name_library(kind, own && *own ? own : kind->name, out);
    return STK_OK;
}
