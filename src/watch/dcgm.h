/* What NVML tells of GPUs as Prometheus' text, by the names, units and labels of NVIDIA's dcgm-exporter
 * (docs.nvidia.com/datacenter/dcgm, field identifiers), so that pages made for it show these numbers. Threads: one at a
 * time. */
#ifndef STK_WATCH_DCGM_H
#define STK_WATCH_DCGM_H

#include "base/text.h"
#include "watch/nvml.h"

/* Appends the numbers of all GPUs of a sample that nvml has filled with slow calls, too; those not told are left out.
 * host: the value of the label Hostname. */
void stk_watch_dcgm_add(stk_text *out, const stk_watch_nvml *nvml, const stk_watch_sample *sample, const char *host);

#endif
