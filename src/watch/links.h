/* How GPUs are joined, and what they are cut into: as nvidia-smi topo -m and mig -lgi tell it, by NVML. Threads: as
 * nvml.h. */
#ifndef STK_WATCH_LINKS_H
#define STK_WATCH_LINKS_H

#include "watch/nvml.h"

enum { STK_WATCH_MOST_LINKS = 18, STK_WATCH_MOST_PARTS = 8, STK_WATCH_WAY = 16 };

/* What is not told is 0. */
typedef struct stk_watch_links {
    unsigned pcie_generation, pcie_most_generation, pcie_width, pcie_most_width;
    int n_links; /* of NVLink that are up */
    unsigned link_version;
    bool to_switch[STK_WATCH_MOST_LINKS]; /* [n_links]; else to the device at bus_id */
    unsigned bus[STK_WATCH_MOST_LINKS];   /* [n_links]: domain << 16 | bus << 8 | device */
    bool is_cut;                          /* MIG is on */
    int n_parts;
    struct {
        char name[96]; /* "NVIDIA H100 80GB HBM3 MIG 1g.10gb" */
        double memory; /* bytes */
    } part[STK_WATCH_MOST_PARTS];
} stk_watch_links;

void stk_watch_links_read(const stk_watch_nvml *nvml, int i_gpu, stk_watch_links *out);
/* The best way from one GPU to another: "NV18" by so many links of NVLink, straight or by switches, else by PCIe: "PIX"
 * by one bridge, "PXB" by several, "PHB" by the processor, "NODE" within its NUMA node, "SYS" between these; "?".
 * links: [n_gpus]. */
void stk_watch_links_way(const stk_watch_nvml *nvml, const stk_watch_links *links, int from, int to,
                         char out[STK_WATCH_WAY]);

#endif
