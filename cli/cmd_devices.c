/* stoker devices */
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/processor.h"
#include "bench/accelerator.h"
#include "cli.h"
#include "devices_gpus.h"
#include "stoker/graph/device.h"

static const cli_option options[] = {
    {"--published", NULL, "prints a table of what makers publish of known accelerators, in Markdown"},
    {"--nvml", "FILE", "NVIDIA's library, where it is not the driver's libnvidia-ml.so.1"},
    {"--json", NULL, "prints one JSON object"},
    {NULL, NULL, NULL}};

enum { MOST_CACHES = 8, MOST_ISA = 20 };

typedef struct machine {
    char cpu[STK_PROCESSOR_NAME];
    int n_cores, n_usable, n_nodes;
    char cache[MOST_CACHES][48]; /* "L1d 48 KiB" */
    int n_caches;
    const char *isa[MOST_ISA];
    int n_isa;
    double memory, available;
} machine;

/* The first line of a file without its end; "" when there is none. */
static void read_line(const char *path, char *out, size_t bytes)
{
    FILE *file = fopen(path, "re");
    out[0] = 0;
    if (!file) return;
    if (!fgets(out, (int)bytes, file)) out[0] = 0;
    fclose(file);
    out[strcspn(out, "\n")] = 0;
}

static void read_caches(machine *m)
{
    for (int i = 0; i < 16 && m->n_caches < MOST_CACHES; i++) {
        char path[128], level[16], type[32], size[32], text[CLI_TEXT], *unit;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        read_line(path, level, sizeof(level));
        if (!level[0]) break;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/type", i);
        read_line(path, type, sizeof(type));
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        read_line(path, size, sizeof(size));
        double bytes = strtod(size, &unit) * (*unit == 'K' ? 1024 : *unit == 'M' ? 1048576 : 1);
        snprintf(m->cache[m->n_caches++], sizeof(m->cache[0]), "L%s%s %s", level,
                 type[0] == 'D'   ? "d"
                 : type[0] == 'I' ? "i"
                                  : "",
                 cli_bytes(bytes, text));
    }
}

static void read_cpuinfo(machine *m)
{
    static const char *const known[] = {"sse4_2",   "avx",      "avx2",        "fma",         "f16c",
                                        "avx512f",  "avx512bw", "avx512_vnni", "avx512_bf16", "avx_vnni",
                                        "amx_tile", "amx_bf16", "asimd",       "asimdhp",     "asimddp",
                                        "i8mm",     "bf16",     "sve",         "sve2",        "svebf16"};
    static char text[16384]; /* the first core's lines, and more */
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) return;
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    fclose(file);
    stk_processor_name_in(text, m->cpu, sizeof(m->cpu));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && m->n_isa < MOST_ISA; i++)
        if (stk_processor_has_in(text, known[i])) m->isa[m->n_isa++] = known[i];
}

static void read_memory(machine *m)
{
    char line[256];
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (!strncmp(line, "MemTotal:", 9)) m->memory = strtod(line + 9, NULL) * 1024;
        if (!strncmp(line, "MemAvailable:", 13)) m->available = strtod(line + 13, NULL) * 1024;
    }
    if (file) fclose(file);
}

static int count_nodes(void)
{
    int n = 0;
    DIR *dir = opendir("/sys/devices/system/node");
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        n += !strncmp(entry->d_name, "node", 4) && entry->d_name[4] >= '0' && entry->d_name[4] <= '9';
    if (dir) closedir(dir);
    return n > 0 ? n : 1;
}

static void read_machine(machine *m)
{
    cpu_set_t set;
    memset(m, 0, sizeof(*m));
    m->n_cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    m->n_usable = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : m->n_cores;
    m->n_nodes = count_nodes();
    read_caches(m);
    read_cpuinfo(m);
    read_memory(m);
}

static void print_device(const stk_device_info *info)
{
    char name[64], a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT];
    snprintf(name, sizeof(name), info->number ? "%s:%d" : "%s", info->name, info->number);
    cli_printf("  %-10s %s: %s%s\n", name, info->about, info->available ? "" : "missing: ", info->detail);
    if (!info->available || info->on_host || !info->memory_bytes) return;
    cli_printf("  %-10s memory %s, %s free", "", cli_bytes((double)info->memory_bytes, a),
               cli_bytes((double)info->free_bytes, b));
    if (info->others_bytes) cli_printf(", %s used by others and the driver", cli_bytes((double)info->others_bytes, c));
    cli_printf("\n");
}

/* What the maker says of the chip, where it is known. */
static void print_published(const stk_device_info *info)
{
    const stk_accelerator *a = stk_accelerator_find(info->chip);
    char text[3][CLI_TEXT];
    if (!a) return;
    cli_printf("             published: ");
    if (a->bf16 > 0) cli_printf("%s TFLOP/s in bf16, ", cli_number_text(a->bf16, text[0]));
    if (a->f32 > 0) cli_printf("%s in f32, ", cli_number_text(a->f32, text[0]));
    cli_printf("%s GB, %s GB/s", cli_number_text(a->memory_gb, text[0]), cli_number_text(a->bandwidth_gb_s, text[1]));
    if (a->tdp_w > 0) cli_printf(", %s W", cli_number_text(a->tdp_w, text[2]));
    cli_printf("; %s (%d, as of %s)\n", a->source, a->released, a->as_of);
}

static void print_published_json(const stk_device_info *info)
{
    json_t *object = stk_accelerator_json(stk_accelerator_find(info->chip));
    char *text = object ? json_dumps(object, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;
    printf(", \"published\": %s", text ? text : "null");
    free(text);
    json_decref(object);
}

static int print_table(void)
{
    stk_text text = {0};
    int code = CLI_OK;
    stk_accelerators_tell(&text);
    if (stk_text_status(&text) == STK_OK)
        cli_put_text(stk_text_get(&text));
    else
        code = cli_fail();
    stk_text_free(&text);
    return code;
}

static void print_text(const machine *m, const cli_gpus *gpus)
{
    char a[CLI_TEXT], b[CLI_TEXT];
    stk_device_info info;
    cli_printf("devices\n");
    for (int i = 0; stk_device_get_info(i, &info) == STK_OK; i++) {
        print_device(&info);
        print_published(&info);
    }
    if (stk_device_get_info(0, &info) == STK_OK)
        cli_printf(
            "  %s:0, which is %s, to %s:%d, and so on, compute on the same processor, each with threads and memory "
            "of its own\n",
            info.name, info.name, info.name, info.n_numbers - 1);
    cli_gpus_print(gpus);
    cli_printf("machine\n  processor  %s\n  cores      %d", m->cpu[0] ? m->cpu : "unknown", m->n_cores);
    if (m->n_usable != m->n_cores) cli_printf(", of which this process may use %d", m->n_usable);
    cli_printf("\n  caches     ");
    for (int i = 0; i < m->n_caches; i++)
        cli_printf("%s%s", i ? ", " : "", m->cache[i]);
    if (m->n_caches == 0) cli_printf("unknown");
    cli_printf("\n  isa        ");
    for (int i = 0; i < m->n_isa; i++)
        cli_printf("%s%s", i ? " " : "", m->isa[i]);
    cli_printf("\n  numa       %d node%s\n", m->n_nodes, m->n_nodes == 1 ? "" : "s");
    cli_printf("  memory     %s, %s free\n", cli_bytes(m->memory, a), cli_bytes(m->available, b));
}

static void print_json(const machine *m, const cli_gpus *gpus)
{
    stk_device_info info;
    printf("{\"devices\": [");
    for (int i = 0; stk_device_get_info(i, &info) == STK_OK; i++) {
        printf("%s{\"name\": ", i ? ", " : "");
        cli_json_text(stdout, info.name);
        printf(", \"about\": ");
        cli_json_text(stdout, info.about);
        printf(", \"numbers\": %d, \"number\": %d, \"gpu\": %s, \"memory_bytes\": %llu, \"free_bytes\": %llu, "
               "\"others_bytes\": %llu, \"available\": %s, \"chip\": ",
               info.n_numbers, info.number, info.is_gpu ? "true" : "false", (unsigned long long)info.memory_bytes,
               (unsigned long long)info.free_bytes, (unsigned long long)info.others_bytes,
               info.available ? "true" : "false");
        cli_json_text(stdout, info.chip);
        printf(", \"detail\": ");
        cli_json_text(stdout, info.detail);
        print_published_json(&info);
        printf("}");
    }
    printf("], \"nvidia\": ");
    cli_gpus_print_json(gpus);
    printf(", \"processor\": ");
    cli_json_text(stdout, m->cpu);
    printf(", \"cores\": %d, \"usable_cores\": %d, \"caches\": [", m->n_cores, m->n_usable);
    for (int i = 0; i < m->n_caches; i++) {
        printf("%s", i ? ", " : "");
        cli_json_text(stdout, m->cache[i]);
    }
    printf("], \"isa\": [");
    for (int i = 0; i < m->n_isa; i++)
        printf("%s\"%s\"", i ? ", " : "", m->isa[i]);
    printf("], \"numa_nodes\": %d, \"memory_bytes\": %.0f, \"memory_available_bytes\": %.0f}\n", m->n_nodes, m->memory,
           m->available);
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    machine m;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words != 0) return cli_usage(verb, "devices takes no name, and there is '%s'", args.word[0]);
    if (cli_has(&args, "--published")) return print_table();
    read_machine(&m);
    cli_gpus *gpus = cli_gpus_open(cli_value(&args, "--nvml"));
    if (cli_has(&args, "--json"))
        print_json(&m, gpus);
    else
        print_text(&m, gpus);
    cli_gpus_close(gpus);
    return CLI_OK;
}

const cli_verb cli_devices = {"devices", "[OPTION...]",
                              "Lists devices, what is missing and why, and what the machine has.", options, .run = run};
