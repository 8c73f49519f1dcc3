/* A PJRT plug-in that crashes where the environment's CRASH says: "load", "segv" or "abort" as its client is made, or
 * "thread": in a thread of its own while nobody has called it. "busy": it says what libtpu says when another process
 * has the TPU. For tests/cli/test_crash.py. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/pjrt/interface.h"

__attribute__((visibility("default"))) const pjrt_api *GetPjrtApi(void);

static bool is_wanted(const char *where)
{
    const char *wanted = getenv("CRASH");
    return wanted && !strcmp(wanted, where);
}

static void fault(void)
{
    *(volatile int *)8 = 1;
}

static void *run_thread(void *none)
{
    (void)none;
    fault();
    return NULL;
}

static pjrt_error *initialize(void *args)
{
    pthread_t thread;
    (void)args;
    if (is_wanted("thread") && pthread_create(&thread, NULL, run_thread, NULL) == 0) sleep(60);
    return NULL;
}

static pjrt_error *tell_code(void *args)
{
    ((pjrt_code_args *)args)->code = 10; /* aborted */
    return NULL;
}

static pjrt_error *tell_message(void *args)
{
    static const char text[] = "The TPU is already in use by process with pid 7.";
    pjrt_message_args *message = args;
    message->text = text;
    message->n = sizeof(text) - 1;
    return NULL;
}

static pjrt_error *destroy_error(void *args)
{
    (void)args;
    return NULL;
}

static pjrt_error *create_client(void *args)
{
    static int error;
    (void)args;
    if (is_wanted("busy")) return (pjrt_error *)(void *)&error;
    if (is_wanted("abort")) abort();
    fault();
    return NULL;
}

const pjrt_api *GetPjrtApi(void)
{
    enum { BYTES = sizeof(pjrt_api) + PJRT_N_SLOTS * sizeof(pjrt_function) };
    static union {
        pjrt_api api;
        char bytes[BYTES];
    } table = {.api = {.version = {.head = {sizeof(pjrt_version), NULL}, .major = 0, .minor = 99}}};
    pjrt_function *slot = (pjrt_function *)(void *)(table.bytes + offsetof(pjrt_api, slot));
    if (is_wanted("load")) fault();
    table.api.head.size = offsetof(pjrt_api, slot) + PJRT_N_SLOTS * sizeof(pjrt_function);
    for (int i = 0; i < PJRT_N_SLOTS; i++)
        slot[i] = create_client;
    slot[PJRT_PLUGIN_INITIALIZE] = initialize;
    slot[PJRT_ERROR_GET_CODE] = tell_code;
    slot[PJRT_ERROR_MESSAGE] = tell_message;
    slot[PJRT_ERROR_DESTROY] = destroy_error;
    return &table.api;
}
