/* What tests of GPUs begin with. DEVICE is the device's name. */
#ifndef TESTS_DEVICE_GPU_EXPECT_H
#define TESTS_DEVICE_GPU_EXPECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "device/gpu/gpu.h"

static inline void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

static inline void expect_words(const char *words)
{
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
}

static inline stk_device *open_device(void)
{
    stk_device *device;
    expect_ok(stk_device_open(DEVICE, NULL, &device));
    return device;
}

/* The played GPU's libraries, all of them, where STOKER_CUDA names no other driver. */
static inline void take_played_gpu(void)
{
    static const char played[] = STK_BINARY_DIR "/tests/play/";
    static const char *const library[][2] = {{"STOKER_CUDA", "libcuda.so.1"},
                                             {"STOKER_NVRTC", "libnvrtc.so.13"},
                                             {"STOKER_CUBLASLT", "libcublasLt.so.13"},
                                             {"STOKER_CUDNN", "libcudnn.so.9"}};
    if (getenv("STOKER_CUDA")) return;
    for (size_t i = 0; i < sizeof(library) / sizeof(library[0]); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s%s", played, library[i][1]);
        setenv(library[i][0], path, 1);
    }
}

/* False: there is none, and it is said why the test is skipped. */
static inline bool has_device(void)
{
    stk_device *device;
    if (stk_device_open(DEVICE, NULL, &device) != STK_OK) {
        printf("SKIP: %s\n", stk_error_text());
        return false;
    }
    stk_device_close(device);
    return true;
}

/* A cache of one's own, and back. */
static inline char *enter_cache(char *folder)
{
    char *before = getenv("STOKER_CACHE") ? strdup(getenv("STOKER_CACHE")) : NULL;
    assert_non_null(mkdtemp(folder));
    setenv("STOKER_CACHE", folder, 1);
    return before;
}

static inline void leave_cache(const char *folder, char *before)
{
    expect_ok(stk_tree_remove(folder));
    if (before)
        setenv("STOKER_CACHE", before, 1);
    else
        unsetenv("STOKER_CACHE");
    free(before);
}

#endif
