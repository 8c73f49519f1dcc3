/* See source/video_libs.h. */
#ifdef STK_HAS_VIDEO
#include "data/source/video_libs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"

static stk_once once = STK_ONCE_INIT;
static stk_video_calls calls;
static char problem[300]; /* "": the libraries are there */

static void *open_library(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library && !problem[0]) snprintf(problem, sizeof(problem), "%s", dlerror());
    return library;
}

static void find_call(void *library, const char *name, void *slot)
{
    void *call = library ? dlsym(library, name) : NULL;
    if (!call && !problem[0]) snprintf(problem, sizeof(problem), "'%s' is missing", name);
    memcpy(slot, &call, sizeof(call)); /* as POSIX wants it of pointers to functions */
}

/* The very versions that were compiled with: structures differ among major versions. */
static void load(void)
{
    void *avutil = open_library("libavutil.so." AV_STRINGIFY(LIBAVUTIL_VERSION_MAJOR));
    void *avcodec = open_library("libavcodec.so." AV_STRINGIFY(LIBAVCODEC_VERSION_MAJOR));
    void *avformat = open_library("libavformat.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR));
    void *swscale = open_library("libswscale.so." AV_STRINGIFY(LIBSWSCALE_VERSION_MAJOR));
#define FIND(library, function) find_call(library, #function, &calls.function);
    STK_VIDEO_CALLS(FIND)
#undef FIND
    if (problem[0]) return;
    if (calls.av_log_get_level() == AV_LOG_INFO) calls.av_log_set_level(AV_LOG_QUIET);
}

stk_status stk_video_load(const stk_video_calls **out)
{
    stk_once_run(&once, load);
    *out = &calls;
    if (!problem[0]) return STK_OK;
    return stk_fail(STK_UNSUPPORTED,
                    "videos need FFmpeg's libraries of the versions that this build was made with (%s): install "
                    "libavformat%d, libavcodec%d and libswscale%d, or build again",
                    problem, LIBAVFORMAT_VERSION_MAJOR, LIBAVCODEC_VERSION_MAJOR, LIBSWSCALE_VERSION_MAJOR);
}

#endif
