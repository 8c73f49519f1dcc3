/* A plug-in of an older version of PJRT's interface, which has few functions: for test_pjrt.c. */
#include "device/pjrt/interface.h"

__attribute__((visibility("default"))) const pjrt_api *GetPjrtApi(void);

const pjrt_api *GetPjrtApi(void)
{
    static const pjrt_api api = {.head = {sizeof(pjrt_api), NULL},
                                 .version = {.head = {sizeof(pjrt_version), NULL}, .major = 0, .minor = 10}};
    return &api;
}
