#include "watch/links.h"

#include <stdio.h>
#include <string.h>

enum { UP = 1, TO_SWITCH = 2 };

static unsigned place_of(const nvml_pci *pci)
{
    return (pci->domain & 0xffff) << 16 | (pci->bus & 0xff) << 8 | (pci->device & 0xff);
}

static void read_links(const stk_watch_nvml *nvml, nvml_device device, stk_watch_links *out)
{
    for (unsigned i = 0; nvml->link && i < STK_WATCH_MOST_LINKS; i++) {
        int state = 0, kind = 0;
        nvml_pci pci = {0};
        if (nvml->link(device, i, &state) != 0 || state != UP) continue;
        if (nvml->link_version) (void)nvml->link_version(device, i, &out->link_version);
        out->to_switch[out->n_links] = nvml->link_kind && nvml->link_kind(device, i, &kind) == 0 && kind == TO_SWITCH;
        if (nvml->link_pci && nvml->link_pci(device, i, &pci) == 0) out->bus[out->n_links] = place_of(&pci);
        out->n_links++;
    }
}

static void read_parts(const stk_watch_nvml *nvml, nvml_device device, stk_watch_links *out)
{
    unsigned now = 0, later = 0, n = 0;
    nvml_device part;
    nvml_memory memory;
    out->is_cut = nvml->mig && nvml->mig(device, &now, &later) == 0 && now == 1;
    if (!out->is_cut || !nvml->parts || !nvml->part || nvml->parts(device, &n) != 0) return;
    for (unsigned i = 0; i < n && i < 64 && out->n_parts < STK_WATCH_MOST_PARTS; i++) {
        if (nvml->part(device, i, &part) != 0) continue; /* Numbers may have gaps. */
        char *name = out->part[out->n_parts].name;
        if (!nvml->name || nvml->name(part, name, sizeof(out->part[0].name) - 1) != 0) name[0] = 0;
        if (nvml->memory && nvml->memory(part, &memory) == 0) out->part[out->n_parts].memory = (double)memory.total;
        out->n_parts++;
    }
}

void stk_watch_links_read(const stk_watch_nvml *nvml, int i_gpu, stk_watch_links *out)
{
    nvml_device device = nvml->device[i_gpu];
    memset(out, 0, sizeof(*out));
    if (!device) return;
    if (nvml->pcie_generation) (void)nvml->pcie_generation(device, &out->pcie_generation);
    if (nvml->pcie_most_generation) (void)nvml->pcie_most_generation(device, &out->pcie_most_generation);
    if (nvml->pcie_width) (void)nvml->pcie_width(device, &out->pcie_width);
    if (nvml->pcie_most_width) (void)nvml->pcie_most_width(device, &out->pcie_most_width);
    read_links(nvml, device, out);
    read_parts(nvml, device, out);
}

static int count_links(const stk_watch_links *links, bool to_switch, unsigned bus)
{
    int n = 0;
    for (int i = 0; i < links->n_links; i++)
        n += links->to_switch[i] == to_switch && (to_switch || links->bus[i] == bus);
    return n;
}

/* Links that join both; through switches, as many as the one with fewer has. */
static int count_between(const stk_watch_nvml *nvml, const stk_watch_links *links, int from, int to)
{
    nvml_pci pci = {0};
    if (nvml->pci && nvml->pci(nvml->device[to], &pci) == 0) {
        int straight = count_links(&links[from], false, place_of(&pci));
        if (straight > 0) return straight;
    }
    int a = count_links(&links[from], true, 0), b = count_links(&links[to], true, 0);
    return a < b ? a : b;
}

void stk_watch_links_way(const stk_watch_nvml *nvml, const stk_watch_links *links, int from, int to,
                         char out[STK_WATCH_WAY])
{
    static const struct {
        int level;
        const char *name;
    } ways[] = {{10, "PIX"}, {20, "PXB"}, {30, "PHB"}, {40, "NODE"}, {50, "SYS"}};
    int level;
    snprintf(out, STK_WATCH_WAY, "?");
    if (!nvml->device[from] || !nvml->device[to]) return;
    int n = count_between(nvml, links, from, to);
    if (n > 0) {
        snprintf(out, STK_WATCH_WAY, "NV%d", n);
        return;
    }
    if (!nvml->common || nvml->common(nvml->device[from], nvml->device[to], &level) != 0) return;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (level == ways[i].level) snprintf(out, STK_WATCH_WAY, "%s", ways[i].name);
}
