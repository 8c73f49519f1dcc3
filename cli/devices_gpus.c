/* The GPUs of NVIDIA's driver in stoker devices: links, parts, and the ways between them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "devices_gpus.h"
#include "watch/links.h"

struct cli_gpus {
    stk_watch_nvml nvml;
    stk_watch_facts facts;
    const char *library;
    bool is_asked; /* for that library: what is missing is said */
    stk_watch_links link[STK_WATCH_MOST_GPUS];
    char way[STK_WATCH_MOST_GPUS][STK_WATCH_MOST_GPUS][STK_WATCH_WAY];
};

static void *ask(void *user)
{
    static const stk_watch_root root;
    cli_gpus *gpus = user;
    if (stk_watch_nvml_open(&gpus->nvml, gpus->library, &root, &gpus->facts) != STK_OK) gpus->nvml.n_gpus = 0;
    for (int i = 0; i < gpus->nvml.n_gpus; i++)
        stk_watch_links_read(&gpus->nvml, i, &gpus->link[i]);
    for (int i = 0; i < gpus->nvml.n_gpus; i++)
        for (int to = 0; to < gpus->nvml.n_gpus; to++) {
            if (to == i)
                snprintf(gpus->way[i][to], STK_WATCH_WAY, "-");
            else
                stk_watch_links_way(&gpus->nvml, gpus->link, i, to, gpus->way[i][to]);
        }
    return NULL;
}

/* On a thread of its own: a driver that hangs does so for ever, and that thread keeps what it has. */
cli_gpus *cli_gpus_open(const char *library)
{
    enum { MOST_S = 5 };
    cli_gpus *gpus = calloc(1, sizeof(*gpus));
    pthread_t thread;
    struct timespec end;
    if (!gpus) return NULL;
    gpus->library = library;
    gpus->is_asked = library != NULL;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += MOST_S;
    if (pthread_create(&thread, NULL, ask, gpus) != 0) {
        free(gpus);
        return NULL;
    }
    if (pthread_timedjoin_np(thread, NULL, &end) == 0) return gpus;
    pthread_detach(thread);
    cli_warn("NVIDIA's driver does not answer (does nvidia-smi hang, too? dmesg tells Xid errors)");
    return NULL;
}

void cli_gpus_close(cli_gpus *gpus)
{
    if (!gpus) return;
    stk_watch_nvml_close(&gpus->nvml);
    stk_watch_facts_free(&gpus->facts);
    free(gpus);
}

/* --- text --- */

static void print_gpu(const cli_gpus *gpus, int i)
{
    const stk_watch_links *l = &gpus->link[i];
    const stk_watch_gpu_label *label = &gpus->nvml.label[i];
    char a[CLI_TEXT];
    cli_printf("  %-2d %s", i, gpus->nvml.device[i] ? cli_shown(label->name) : "lost: it answers no more");
    if (label->bus_id[0]) cli_printf(", %s", label->bus_id);
    if (gpus->nvml.numa_node[i] >= 0) cli_printf(", NUMA node %lld", (long long)gpus->nvml.numa_node[i]);
    cli_printf("\n");
    if (l->pcie_generation && l->pcie_width) {
        cli_printf("     PCIe %u x%u", l->pcie_generation, l->pcie_width);
        /* The generation sinks while a GPU is idle; the width does not. */
        if (l->pcie_most_generation > l->pcie_generation)
            cli_printf(", generation %u when busy", l->pcie_most_generation);
        if (l->pcie_most_width > l->pcie_width) cli_printf(", though it has x%u", l->pcie_most_width);
        if (l->n_links)
            cli_printf("; NVLink %u, %d link%s up", l->link_version, l->n_links, l->n_links == 1 ? "" : "s");
        cli_printf("\n");
    }
    if (l->is_cut) cli_printf("     cut into parts (MIG): %d\n", l->n_parts);
    for (int k = 0; k < l->n_parts; k++)
        cli_printf("       %d: %s, %s\n", k, cli_shown(l->part[k].name), cli_bytes(l->part[k].memory, a));
}

static void print_ways(const cli_gpus *gpus)
{
    int n = gpus->nvml.n_gpus;
    cli_printf("  ways between them\n     ");
    for (int to = 0; to < n; to++)
        cli_printf(" %5d", to);
    for (int from = 0; from < n; from++) {
        cli_printf("\n  %3d", from);
        for (int to = 0; to < n; to++)
            cli_printf(" %5s", gpus->way[from][to]);
    }
    cli_printf(
        "\n  NV4: 4 links of NVLink; by PCIe PIX: one bridge, PXB: several, PHB: the processor, NODE: within a NUMA "
        "node, SYS: between two\n");
}

void cli_gpus_print(const cli_gpus *gpus)
{
    const char *missing = gpus ? stk_watch_facts_get(&gpus->facts, "missing", 0) : NULL;
    if (gpus && gpus->nvml.n_gpus == 0 && gpus->is_asked && missing) cli_warn("%s", cli_shown(missing));
    if (!gpus || gpus->nvml.n_gpus == 0) return;
    const char *version = gpus->nvml.driver;
    cli_printf("GPUs, as NVIDIA's driver%s%s numbers them\n", version[0] ? " " : "", cli_shown(version));
    for (int i = 0; i < gpus->nvml.n_gpus; i++)
        print_gpu(gpus, i);
    if (gpus->nvml.n_gpus > 1) print_ways(gpus);
}

/* --- JSON --- */

static void print_gpu_json(const cli_gpus *gpus, int i)
{
    const stk_watch_links *l = &gpus->link[i];
    const stk_watch_gpu_label *label = &gpus->nvml.label[i];
    printf("%s{\"number\": %d, \"name\": ", i ? ", " : "", i);
    cli_json_text(stdout, label->name);
    printf(", \"driver\": ");
    cli_json_text(stdout, gpus->nvml.driver);
    printf(", \"uuid\": ");
    cli_json_text(stdout, label->uuid);
    printf(", \"bus\": ");
    cli_json_text(stdout, label->bus_id);
    printf(
        ", \"numa_node\": %lld, \"lost\": %s, \"pcie\": {\"generation\": %u, \"most_generation\": %u, \"width\": %u, "
        "\"most_width\": %u}, \"nvlink\": {\"version\": %u, \"links\": %d}, \"mig\": %s, \"parts\": [",
        (long long)gpus->nvml.numa_node[i], gpus->nvml.device[i] ? "false" : "true", l->pcie_generation,
        l->pcie_most_generation, l->pcie_width, l->pcie_most_width, l->link_version, l->n_links,
        l->is_cut ? "true" : "false");
    for (int k = 0; k < l->n_parts; k++) {
        printf("%s{\"name\": ", k ? ", " : "");
        cli_json_text(stdout, l->part[k].name);
        printf(", \"memory_bytes\": %.0f}", l->part[k].memory);
    }
    printf("], \"ways\": [");
    for (int to = 0; to < gpus->nvml.n_gpus; to++)
        printf("%s\"%s\"", to ? ", " : "", gpus->way[i][to]);
    printf("]}");
}

void cli_gpus_print_json(const cli_gpus *gpus)
{
    printf("[");
    for (int i = 0; gpus && i < gpus->nvml.n_gpus; i++)
        print_gpu_json(gpus, i);
    printf("]");
}
