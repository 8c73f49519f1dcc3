/* Which devices there are. */
#ifndef STOKER_GRAPH_DEVICE_H
#define STOKER_GRAPH_DEVICE_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_device_info {
    const char *name;  /* "cpu"; a constant */
    const char *about; /* a constant */
    bool available;
    int n_numbers;    /* 8: there are "cpu:0", which is "cpu", to "cpu:7", each with memory and threads of its own */
    char detail[256]; /* "2 threads, avx2", or what is missing and why */
} stk_device_info;

/* Device number i of this build, or STK_NOT_FOUND past the end. */
STK_API stk_status stk_device_get_info(int i, stk_device_info *out);

#ifdef __cplusplus
}
#endif
#endif
