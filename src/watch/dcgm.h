/* What NVML tells of GPUs as Prometheus' text, by the names, units and labels of NVIDIA's dcgm-exporter
 * (docs.nvidia.com/datacenter/dcgm, field identifiers), so that pages made for it show these numbers. Threads: one at a
 * time. */
#ifndef STK_WATCH_DCGM_H
#define STK_WATCH_DCGM_H

#include "base/text.h"
#include "watch/nvml.h"

/* Appends the numbers of all GPUs of a sample that was filled with slow calls, too; those not told are left out. label:
 * n_labels, by the driver's numbers; host: the value of the label Hostname. */
void stk_watch_dcgm_add(stk_text *out, const stk_watch_gpu_label *label, int n_labels, const stk_watch_sample *sample,
                        const char *host);

#endif
