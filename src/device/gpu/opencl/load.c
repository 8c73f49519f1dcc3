/* Finding the ICD loader, platforms and devices. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "device/gpu/opencl/opencl.h"

cl_symbols cl;

enum { MOST_CHIPS = STK_MOST_DEVICES };

typedef struct found_chip {
    cl_platform_id platform;
    cl_device_id device;
    bool is_gpu;
} found_chip;

static stk_once once = STK_ONCE_INIT;
static stk_status loaded;
static char complaint[512];
static found_chip chip_list[MOST_CHIPS]; /* GPUs first */
static int n_chips;

stk_status opencl_check(cl_int code, const char *call)
{
    static const struct {
        cl_int code;
        const char *text;
        stk_status status;
    } known[] = {
        {CL_DEVICE_NOT_AVAILABLE, "the device is not available", STK_DEVICE},
        {CL_MEM_OBJECT_ALLOCATION_FAILURE, "the device's memory does not suffice", STK_NO_MEMORY},
        {CL_INVALID_BUFFER_SIZE, "more memory in one piece than the device gives out", STK_NO_MEMORY},
        {CL_OUT_OF_RESOURCES, "out of resources", STK_DEVICE},
        {CL_OUT_OF_HOST_MEMORY, "out of memory", STK_NO_MEMORY},
    };
    if (code == CL_SUCCESS) return STK_OK;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].code == code) return stk_fail(known[i].status, "%s: %s (%d)", call, known[i].text, (int)code);
    return stk_fail(STK_DEVICE, "%s: error %d of OpenCL", call, (int)code);
}

/* --- loading --- */

static stk_status load_library(void)
{
    const char *own = getenv("STOKER_OPENCL");
    const char *names[] = {own, "libOpenCL.so.1", "libOpenCL.so", NULL};
    void *library = NULL;
    const char *name = names[0];
    for (int i = own && *own ? 0 : 1; names[i] && !library; i++) {
        name = names[i];
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (i == 0) break; /* What is asked for is not replaced by something else. */
    }
    if (!library)
        return stk_fail(STK_NO_DEVICE,
                        "cannot load '%s' (OpenCL's loader; Debian: apt install ocl-icd-libopencl1 and a "
                        "driver, as pocl-opencl-icd)",
                        own && *own ? own : "libOpenCL.so.1");
#define X(result, symbol, parameters)                                                                                  \
    *(void **)&cl.symbol = dlsym(library, #symbol);                                                                    \
    if (!cl.symbol) return stk_fail(STK_NO_DEVICE, "'%s' has no %s: OpenCL 1.2 or newer is wanted", name, #symbol);
    CL_SYMBOL_LIST(X)
#undef X
    return STK_OK;
}

static void add_chips(cl_platform_id platform, bool gpus)
{
    cl_device_id devices[MOST_CHIPS];
    cl_uint n = 0;
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST_CHIPS, devices, &n) != CL_SUCCESS) return;
    for (cl_uint i = 0; i < n && i < MOST_CHIPS && n_chips < MOST_CHIPS; i++) {
        cl_bitfield type = 0;
        cl_uint available = 0, little = 0;
        cl.clGetDeviceInfo(devices[i], CL_DEVICE_TYPE, sizeof(type), &type, NULL);
        cl.clGetDeviceInfo(devices[i], CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL);
        cl.clGetDeviceInfo(devices[i], CL_DEVICE_ENDIAN_LITTLE, sizeof(little), &little, NULL);
        bool is_gpu = (type & CL_DEVICE_TYPE_GPU) != 0;
        if (!available || !little || is_gpu != gpus) continue;
        chip_list[n_chips++] = (found_chip){platform, devices[i], is_gpu};
    }
}

static stk_status find_chips(void)
{
    cl_platform_id platforms[16];
    cl_uint n = 0;
    cl_int code = cl.clGetPlatformIDs(16, platforms, &n);
    if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && n == 0))
        return stk_fail(STK_NO_DEVICE, "OpenCL's loader is here and no driver is: /etc/OpenCL/vendors names none "
                                       "(NVIDIA's comes with its driver; Debian, without a GPU: apt install "
                                       "pocl-opencl-icd)");
    STK_RETURN_IF_ERROR(opencl_check(code, "clGetPlatformIDs"));
    for (int gpus = 1; gpus >= 0; gpus--)
        for (cl_uint i = 0; i < n && i < 16; i++)
            add_chips(platforms[i], gpus);
    if (n_chips == 0)
        return stk_fail(STK_NO_DEVICE,
                        "%d driver%s of OpenCL here, without a device that it can use (PoCL needs a folder that it can "
                        "write to: POCL_CACHE_DIR)",
                        (int)n, n == 1 ? "" : "s");
    return STK_OK;
}

static void load_once(void)
{
    loaded = load_library();
    if (loaded == STK_OK) loaded = find_chips();
    if (loaded != STK_OK) snprintf(complaint, sizeof(complaint), "%s", stk_error_text());
}

stk_status opencl_load(void)
{
    stk_once_run(&once, load_once);
    return loaded == STK_OK ? STK_OK : stk_fail(loaded, "%s", complaint);
}

int opencl_count(void)
{
    return opencl_load() == STK_OK ? n_chips : 0;
}

int opencl_best_gpu(void)
{
    return opencl_count() > 0 && chip_list[0].is_gpu ? 0 : -1;
}

/* --- opening --- */

static void get_text(cl_device_id device, cl_uint what, char *out, size_t n)
{
    size_t length = 0;
    if (cl.clGetDeviceInfo(device, what, n, out, &length) != CL_SUCCESS) out[0] = '\0';
    out[n - 1] = '\0';
}

/* NVIDIA's driver tells where the chip is; for others nothing is known of it. */
static void find_bus(cl_device_id device, gpu_chip *chip)
{
    cl_uint bus = 0, slot = 0, domain = 0;
    if (cl.clGetDeviceInfo(device, CL_DEVICE_PCI_BUS_NV, sizeof(bus), &bus, NULL) != CL_SUCCESS ||
        cl.clGetDeviceInfo(device, CL_DEVICE_PCI_SLOT_NV, sizeof(slot), &slot, NULL) != CL_SUCCESS)
        return;
    (void)cl.clGetDeviceInfo(device, CL_DEVICE_PCI_DOMAIN_NV, sizeof(domain), &domain, NULL);
    snprintf(chip->bus, sizeof(chip->bus), "%04x:%02x:%02x.0", domain & 0xffff, bus & 0xff, slot >> 3 & 0x1f);
}

/* STOKER_OPENCL_OPTIMISE=0: for tests of many kernels, which a compiler that optimises takes twice as long for. */
static bool is_unoptimised(void)
{
    const char *optimise = getenv("STOKER_OPENCL_OPTIMISE");
    return optimise && !strcmp(optimise, "0");
}

static void describe(const found_chip *found, gpu_chip *chip)
{
    cl_device_id d = found->device;
    cl_uint units = 0, unified = 0;
    cl_ulong total = 0, most = 0, local = 0;
    char version[64], platform[64] = "";
    const char *fragments = getenv("STOKER_OPENCL_FRAGMENTS"); /* 1, for tests: kernels as CUDA's, in plain C */
    *chip = (gpu_chip){.is_gpu = found->is_gpu, .has_fragments = fragments && !strcmp(fragments, "1")};
    get_text(d, CL_DEVICE_NAME, chip->name, sizeof(chip->name));
    get_text(d, CL_DEVICE_VENDOR, chip->vendor, sizeof(chip->vendor));
    get_text(d, CL_DRIVER_VERSION, version, sizeof(version));
    cl.clGetPlatformInfo(found->platform, CL_PLATFORM_NAME, sizeof(platform) - 1, platform, NULL);
    if (!strcmp(platform, "Portable Computing Language")) snprintf(platform, sizeof(platform), "PoCL");
    snprintf(chip->driver, sizeof(chip->driver), "%.40s %s%s", platform, version,
             is_unoptimised() ? " unoptimised" : "");
    cl.clGetDeviceInfo(d, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL);
    cl.clGetDeviceInfo(d, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(total), &total, NULL);
    cl.clGetDeviceInfo(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most, NULL);
    cl.clGetDeviceInfo(d, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(local), &local, NULL);
    cl.clGetDeviceInfo(d, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(unified), &unified, NULL);
    cl.clGetDeviceInfo(d, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(chip->most_group), &chip->most_group, NULL);
    chip->n_units = (int)units;
    chip->total_bytes = (size_t)total;
    chip->most_alloc_bytes = (size_t)most;
    chip->local_bytes = (size_t)local;
    chip->unified = unified != 0;
    if (strstr(chip->vendor, "NVIDIA")) find_bus(d, chip);
}

/* Command buffers where the device has them, all of their functions, and nobody says STOKER_OPENCL_BUFFERS=0. */
static void find_command_buffers(gpu_context *context)
{
    char extensions[8192];
    const char *off = getenv("STOKER_OPENCL_BUFFERS");
    get_text(context->device, CL_DEVICE_EXTENSIONS, extensions, sizeof(extensions));
    if (!strstr(extensions, "cl_khr_command_buffer") || (off && !strcmp(off, "0"))) return;
    context->has_command_buffers = true;
    cl_bitfield capabilities = 0;
    cl.clGetDeviceInfo(context->device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof(capabilities), &capabilities,
                       NULL);
    context->buffers_overlap = (capabilities & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) != 0;
#define X(result, symbol, parameters)                                                                                  \
    *(void **)&context->buffers.symbol = cl.clGetExtensionFunctionAddressForPlatform(context->platform, #symbol);      \
    if (!context->buffers.symbol) context->has_command_buffers = false;
    CL_COMMAND_BUFFER_LIST(X)
#undef X
}

void opencl_close(gpu_context *context)
{
    if (!context) return;
    for (int i = 0; i < context->n_blocks && !context->hangs; i++)
        cl.clReleaseMemObject(context->block[i].memory);
    if (context->queue && !context->hangs) cl.clReleaseCommandQueue(context->queue);
    if (context->context && !context->hangs) cl.clReleaseContext(context->context);
    free(context->block);
    free(context->mapping);
    free(context);
}

stk_status opencl_open(int number, gpu_chip *chip, gpu_context **out)
{
    stk_status status = STK_OK;
    cl_int code;
    STK_RETURN_IF_ERROR(opencl_load());
    gpu_context *context = calloc(1, sizeof(*context));
    if (!context) return stk_fail_memory(sizeof(*context));
    context->platform = chip_list[number].platform;
    context->device = chip_list[number].device;
    context->next = (uintptr_t)1 << 44;
    context->unoptimised = is_unoptimised();
    describe(&chip_list[number], chip);
    STK_TRY(gpu_read_wait_seconds(chip, &context->wait_seconds));
    if (chip->local_bytes < 32768 || chip->most_group < 256)
        STK_TRY(stk_fail(STK_NO_DEVICE,
                         "'%s' has %zu bytes of local memory and groups of %zu work-items: 32 KiB and 256 "
                         "are wanted",
                         chip->name, chip->local_bytes, chip->most_group));
    context->context = cl.clCreateContext(NULL, 1, &context->device, NULL, NULL, &code);
    STK_TRY(opencl_check(code, "clCreateContext"));
    context->queue = cl.clCreateCommandQueue(context->context, context->device, CL_QUEUE_PROFILING_ENABLE, &code);
    STK_TRY(opencl_check(code, "clCreateCommandQueue"));
    find_command_buffers(context);
    chip->command_list = context->has_command_buffers;
    *out = context;
    context = NULL;
done:
    opencl_close(context);
    return status;
}
