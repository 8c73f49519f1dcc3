/* What jobs tell the played GPUs (fake_nvml.c), in a shared file: one slot for each process on a GPU. */
#ifndef WATCH_METER_H
#define WATCH_METER_H

#include <stdint.h>

enum { METER_GPUS = 32, METER_SLOTS = 8 };

typedef struct meter_slot {
    int64_t pid;        /* 0: free */
    int64_t since_ns;   /* on the monotonic clock; 0: no kernel runs */
    int64_t busy_ns;    /* all earlier kernels together */
    int64_t work_ns;    /* the same, weighted with how much of the GPU they used */
    int64_t permille;   /* how much the running kernel uses */
    int64_t memory_mb;  /* allocated */
    int64_t pcie_bytes; /* copied to the GPU */
    int64_t until_ns;   /* when the running kernel ends by itself; 0: when the host says so */
} meter_slot;

typedef struct meter {
    meter_slot slot[METER_GPUS][METER_SLOTS];
} meter;

#endif
