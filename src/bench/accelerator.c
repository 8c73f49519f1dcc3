#include "bench/accelerator.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/plain_number.h"

#define NVIDIA_HOPPER "NVIDIA, H100 Tensor Core GPU architecture, white paper and data sheet"
#define NVIDIA_AMPERE "NVIDIA, A100 Tensor Core GPU data sheet"
#define NVIDIA_RTX    "NVIDIA, RTX Blackwell GPU architecture, white paper, appendix"
#define GOOGLE        "Google, Cloud TPU documentation, system architecture"
#define AMD           "AMD, Instinct data sheets"

/* The more special name first: the first row that matches counts. */
static const stk_accelerator accelerators[] = {
    {"NVIDIA B200", "B200", 2025, 75, 1125, 2250, 2250, 4500, 180, 7700, 1000, "NVIDIA, HGX data sheet, of 8 B200",
     "2026-11-27", "www.nvidia.com/en-us/data-center/hgx"},
    {"NVIDIA H200", "H200", 2024, 66.9, 494.7, 989.4, 989.4, 1978.9, 141, 4800, 700,
     "NVIDIA, H200 Tensor Core GPU data sheet", "2026-11-27", "www.nvidia.com/en-us/data-center/h200"},
    {"NVIDIA H100 NVL", "H100 NVL", 2023, 60, 417.5, 835.5, 835.5, 1670.5, 94, 3938, 400, NVIDIA_HOPPER, "2026-11-27",
     "www.nvidia.com/en-us/data-center/h100"},
    {"NVIDIA H100 PCIe", "H100 PCIe", 2022, 51.2, 378, 756, 756, 1513, 80, 2039, 350, NVIDIA_HOPPER, "2026-11-27",
     "www.nvidia.com/en-us/data-center/h100"},
    {"NVIDIA H100 SXM", "H100 80GB HBM3", 2022, 66.9, 494.7, 989.4, 989.4, 1978.9, 80, 3352, 700, NVIDIA_HOPPER,
     "2026-11-27", "www.nvidia.com/en-us/data-center/h100"},
    {"NVIDIA A100 SXM 80 GB", "A100-SXM4-80GB", 2020, 19.5, 156, 312, 312, NAN, 80, 2039, 400, NVIDIA_AMPERE,
     "2026-11-27", "www.nvidia.com/en-us/data-center/a100"},
    {"NVIDIA A100 SXM 40 GB", "A100-SXM4-40GB", 2020, 19.5, 156, 312, 312, NAN, 40, 1555, 400, NVIDIA_AMPERE,
     "2026-11-27", "www.nvidia.com/en-us/data-center/a100"},
    {"NVIDIA A100 PCIe 80 GB", "A100 80GB PCIe", 2021, 19.5, 156, 312, 312, NAN, 80, 1935, 300, NVIDIA_AMPERE,
     "2026-11-27", "www.nvidia.com/en-us/data-center/a100"},
    {"NVIDIA A100 PCIe 40 GB", "A100-PCIE-40GB", 2020, 19.5, 156, 312, 312, NAN, 40, 1555, 250, NVIDIA_AMPERE,
     "2026-11-27", "www.nvidia.com/en-us/data-center/a100"},
    {"NVIDIA L40S", "L40S", 2023, 91.6, 183, 362.05, 362.05, 733, 48, 864, 350, "NVIDIA, L40S data sheet", "2026-11-27",
     "www.nvidia.com/en-us/data-center/l40s"},
    {"NVIDIA L4", "L4", 2023, 30.3, 60, 121, 121, 242.5, 24, 300, 72, "NVIDIA, L4 data sheet", "2026-11-27",
     "www.nvidia.com/en-us/data-center/l4"},
    {"NVIDIA A10", "A10", 2021, 31.2, 62.5, 125, 125, NAN, 24, 600, 150, "NVIDIA, A10 data sheet", "2026-11-27",
     "www.nvidia.com/en-us/data-center/products/a10-gpu"},
    {"NVIDIA T4", "T4", 2018, 8.1, NAN, NAN, 65, NAN, 16, 320, 70, "NVIDIA, T4 data sheet and product brief",
     "2026-11-27", "www.nvidia.com/en-us/data-center/tesla-t4"},
    {"NVIDIA V100 SXM2", "V100-SXM2", 2017, 15.7, NAN, NAN, 125, NAN, 32, 900, 300, "NVIDIA, V100 data sheet",
     "2026-11-27", "www.nvidia.com/en-us/data-center/v100"},
    {"NVIDIA GeForce RTX 5090", "RTX 5090", 2025, 104.8, 104.8, 209.5, 209.5, 419, 32, 1792, 575, NVIDIA_RTX,
     "2026-11-27", "images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf"},
    {"NVIDIA GeForce RTX 4090", "RTX 4090", 2022, 82.6, 82.6, 165.2, 165.2, 330.3, 24, 1008, 450, NVIDIA_RTX,
     "2026-11-27", "images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf"},
    {"NVIDIA GeForce RTX 3090", "RTX 3090", 2020, 35.6, 35.6, 71, 71, NAN, 24, 936, 350, NVIDIA_RTX, "2026-11-27",
     "images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf"},
    {"AMD Instinct MI325X", "MI325X", 2024, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 256, 6000, 1000, AMD, "2026-11-27",
     "www.amd.com/en/products/accelerators/instinct/mi300/mi325x.html"},
    {"AMD Instinct MI300X", "MI300X", 2023, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 192, 5300, 750, AMD, "2026-11-27",
     "www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html"},
    {"AMD Instinct MI250X", "MI250X", 2021, 95.7, NAN, 383, 383, NAN, 128, 3277, 560, AMD, "2026-11-27",
     "www.amd.com/en/products/accelerators/instinct/mi200/mi250x.html"},
    {"Google TPU v6e", "TPU v6", 2024, NAN, NAN, 918, NAN, NAN, 32, 1638, NAN, GOOGLE, "2026-11-28",
     "docs.cloud.google.com/tpu/docs/v6e"},
    {"Google TPU v5p", "TPU v5p", 2023, NAN, NAN, 459, NAN, NAN, 95, 2765, NAN, GOOGLE, "2026-11-27",
     "docs.cloud.google.com/tpu/docs/v5p"},
    {"Google TPU v5e", "TPU v5 lite", 2023, NAN, NAN, 197, NAN, NAN, 16, 819, NAN, GOOGLE, "2026-11-27",
     "docs.cloud.google.com/tpu/docs/v5e"},
    {"Google TPU v4", "TPU v4", 2021, NAN, NAN, 275, NAN, NAN, 32, 1228, NAN, GOOGLE, "2026-11-27",
     "docs.cloud.google.com/tpu/docs/v4"},
};

const stk_accelerator *stk_accelerator_at(int i)
{
    return i >= 0 && i < (int)(sizeof(accelerators) / sizeof(accelerators[0])) ? &accelerators[i] : NULL;
}

static bool is_word_end(char c)
{
    return !c || strchr(" -,/()", c);
}

/* match as whole words: "A10" is not in "A100", nor "L4" in "L40S". */
static bool has_words(const char *chip, const char *match)
{
    size_t n = strlen(match);
    for (const char *at = chip; (at = strstr(at, match)); at++)
        if ((at == chip || is_word_end(at[-1])) && is_word_end(at[n])) return true;
    return false;
}

const stk_accelerator *stk_accelerator_find(const char *chip)
{
    const stk_accelerator *a;
    for (int i = 0; chip && (a = stk_accelerator_at(i)); i++)
        if (has_words(chip, a->match)) return a;
    return NULL;
}

double stk_accelerator_peak(const stk_accelerator *a, const char *precision)
{
    static const struct {
        const char *name;
        size_t offset;
    } peaks[] = {{"f32", offsetof(stk_accelerator, f32)},
                 {"tf32", offsetof(stk_accelerator, tf32)},
                 {"bf16", offsetof(stk_accelerator, bf16)},
                 {"f16", offsetof(stk_accelerator, f16)},
                 {"fp8", offsetof(stk_accelerator, fp8)}};
    for (size_t i = 0; a && precision && i < sizeof(peaks) / sizeof(peaks[0]); i++)
        if (!strcmp(peaks[i].name, precision)) return *(const double *)((const char *)a + peaks[i].offset) * 1e12;
    return NAN;
}

static json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *stk_accelerator_json(const stk_accelerator *a)
{
    if (!a) return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(a->name));
    json_object_set_new(object, "released", json_integer(a->released));
    json_object_set_new(object, "f32_tflop_per_s", real_or_null(a->f32));
    json_object_set_new(object, "tf32_tflop_per_s", real_or_null(a->tf32));
    json_object_set_new(object, "bf16_tflop_per_s", real_or_null(a->bf16));
    json_object_set_new(object, "f16_tflop_per_s", real_or_null(a->f16));
    json_object_set_new(object, "fp8_tflop_per_s", real_or_null(a->fp8));
    json_object_set_new(object, "memory_gb", real_or_null(a->memory_gb));
    json_object_set_new(object, "bandwidth_gb_per_s", real_or_null(a->bandwidth_gb_s));
    json_object_set_new(object, "tdp_w", real_or_null(a->tdp_w));
    json_object_set_new(object, "source", json_string(a->source));
    json_object_set_new(object, "address", json_string(a->address));
    json_object_set_new(object, "as_of", json_string(a->as_of));
    return object;
}

static void add_cell(stk_text *out, double x)
{
    char text[STK_PLAIN_TEXT];
    stk_text_add(out, " %s |", isfinite(x) ? stk_plain_number(x, text) : "-");
}

void stk_accelerators_tell(stk_text *out)
{
    const stk_accelerator *a;
    stk_text_add(out, "| Accelerator | Released | f32 | tf32 | bf16 | f16 | fp8 | Memory, GB | GB/s | TDP, W | "
                      "Source | Address | As of |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---|---|\n");
    for (int i = 0; (a = stk_accelerator_at(i)); i++) {
        stk_text_add(out, "| %s | %d |", a->name, a->released);
        add_cell(out, a->f32);
        add_cell(out, a->tf32);
        add_cell(out, a->bf16);
        add_cell(out, a->f16);
        add_cell(out, a->fp8);
        add_cell(out, a->memory_gb);
        add_cell(out, a->bandwidth_gb_s);
        add_cell(out, a->tdp_w);
        stk_text_add(out, " %s | %s | %s |\n", a->source, a->address, a->as_of);
    }
}
