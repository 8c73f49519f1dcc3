/* Finding the driver, its chips and NVRTC; opening a chip. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "device/gpu/cuda/convolution.h"
#include "device/gpu/cuda/product.h"

cu_symbols cu;
nvrtc_symbols nvrtc;

/* Kernels want what chips since Turing have; libraries of CUDA 12 and newer are looked for. */
enum { MOST_CHIPS = STK_MOST_DEVICES, LEAST_CAPABILITY = 75, LEAST_DRIVER = 12000 };

static stk_once once = STK_ONCE_INIT;
static stk_status loaded;
static char complaint[1024];
static cuda_chip chip_list[MOST_CHIPS];
static int n_chips, driver_version;
static cuda_library compiler;

/* --- the driver --- */

typedef int (*get_proc)(const char *name, void **out, int version, uint64_t flags, int *found);

static stk_status open_driver(void **library, const char **name)
{
    const char *own = getenv("STOKER_CUDA");
    *name = own && *own ? own : "libcuda.so.1";
    *library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    if (*library) return STK_OK;
    const char *why = dlerror();
    if (own && *own) return stk_fail(STK_NO_DEVICE, "cannot load STOKER_CUDA: %s", why ? why : own);
    return stk_fail(STK_NO_DEVICE, "cannot load 'libcuda.so.1' (NVIDIA's driver; Debian: apt install nvidia-driver; in "
                                   "a container: --gpus all)");
}

/* By the driver's own search, which hands out the version of a function that was asked for. */
static stk_status find_symbols(void *library, const char *name)
{
    get_proc get;
    *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
    if (!get) return stk_fail(STK_NO_DEVICE, "'%s' has no cuGetProcAddress_v2: it is no driver of CUDA 12", name);
#define X(symbol, version, parameters)                                                                                 \
    if (get(#symbol, (void **)&cu.symbol, version, CU_PROC_DEFAULT, NULL) != CU_SUCCESS || !cu.symbol)                 \
        return stk_fail(STK_NO_DEVICE, "'%s', CUDA %d.%d, has no %s", name, driver_version / 1000,                     \
                        driver_version % 1000 / 10, #symbol);
    CU_SYMBOL_LIST(X)
#undef X
    return STK_OK;
}

static stk_status load_driver(void)
{
    void *library;
    const char *name;
    int (*get_version)(int *);
    STK_RETURN_IF_ERROR(open_driver(&library, &name));
    *(void **)&get_version = dlsym(library, "cuDriverGetVersion");
    if (!get_version) return stk_fail(STK_NO_DEVICE, "'%s' has no cuDriverGetVersion: it is no driver of CUDA", name);
    STK_RETURN_IF_ERROR(cuda_check(get_version(&driver_version), name));
    if (driver_version < LEAST_DRIVER)
        return stk_fail(STK_NO_DEVICE,
                        "the driver '%s' is of CUDA %d.%d, and 12.0 is wanted (version 525 of NVIDIA's driver; Debian: "
                        "apt install nvidia-driver)",
                        name, driver_version / 1000, driver_version % 1000 / 10);
    STK_RETURN_IF_ERROR(find_symbols(library, name));
    return cuda_check(cu.cuInit(0), "cuInit");
}

/* --- chips --- */

static void write_uuid(cuda_chip *chip)
{
    cu_uuid uuid;
    if (cu.cuDeviceGetUuid(&uuid, chip->device) != CU_SUCCESS) return;
    const bool is_slice = strstr(chip->name, " MIG ") != NULL;
    int n = snprintf(chip->uuid, sizeof(chip->uuid), "%s-", is_slice ? "MIG" : "GPU");
    for (int i = 0; i < 16; i++)
        n += snprintf(chip->uuid + n, sizeof(chip->uuid) - (size_t)n,
                      i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid.bytes[i]);
}

static stk_status describe_chip(int number, cuda_chip *chip)
{
    STK_RETURN_IF_ERROR(cuda_check(cu.cuDeviceGet(&chip->device, number), "cuDeviceGet"));
    STK_RETURN_IF_ERROR(
        cuda_check(cu.cuDeviceGetName(chip->name, sizeof(chip->name), chip->device), "cuDeviceGetName"));
    const struct {
        int what, *to;
    } numbers[] = {{CU_ATTRIBUTE_CAPABILITY_MAJOR, &chip->major},
                   {CU_ATTRIBUTE_CAPABILITY_MINOR, &chip->minor},
                   {CU_ATTRIBUTE_MULTIPROCESSORS, &chip->n_units}};
    for (int i = 0; i < 3; i++)
        STK_RETURN_IF_ERROR(
            cuda_check(cu.cuDeviceGetAttribute(numbers[i].to, numbers[i].what, chip->device), "cuDeviceGetAttribute"));
    write_uuid(chip);
    if (cu.cuDeviceGetPCIBusId(chip->bus, sizeof(chip->bus), chip->device) != CU_SUCCESS) chip->bus[0] = '\0';
    return STK_OK;
}

static stk_status find_chips(void)
{
    int n = 0;
    STK_RETURN_IF_ERROR(cuda_check(cu.cuDeviceGetCount(&n), "cuDeviceGetCount"));
    if (n == 0) return cuda_check(100, "cuDeviceGetCount");
    for (; n_chips < n && n_chips < MOST_CHIPS; n_chips++)
        STK_RETURN_IF_ERROR(describe_chip(n_chips, &chip_list[n_chips]));
    return STK_OK;
}

/* --- NVRTC --- */

static stk_status load_compiler(void)
{
    STK_RETURN_IF_ERROR(cuda_find_library(&cuda_nvrtc, driver_version / 1000, &compiler));
#define X(symbol, version, parameters)                                                                                 \
    *(void **)&nvrtc.symbol = dlsym(compiler.handle, #symbol);                                                         \
    if (!nvrtc.symbol) return stk_fail(STK_NO_DEVICE, "'%s' has no %s", compiler.path, #symbol);
    NVRTC_SYMBOL_LIST(X)
#undef X
    if (nvrtc.nvrtcVersion(&compiler.major, &compiler.minor))
        return stk_fail(STK_NO_DEVICE, "'%s' does not tell its version", compiler.path);
    if (compiler.major > driver_version / 1000)
        return stk_fail(STK_NO_DEVICE,
                        "'%s' is NVRTC %d.%d, whose programs this driver, of CUDA %d.%d, does not run: an older NVRTC, "
                        "or a newer driver",
                        compiler.path, compiler.major, compiler.minor, driver_version / 1000,
                        driver_version % 1000 / 10);
    return STK_OK;
}

static void load_once(void)
{
    loaded = load_driver();
    if (loaded == STK_OK) loaded = find_chips();
    if (loaded == STK_OK && (loaded = load_compiler()) != STK_OK)
        stk_fail_prefix(loaded, "'%s' is here, but ", chip_list[0].name);
    if (loaded != STK_OK) snprintf(complaint, sizeof(complaint), "%s", stk_error_text());
}

stk_status cuda_load(void)
{
    stk_once_run(&once, load_once);
    return loaded == STK_OK ? STK_OK : stk_fail(loaded, "%s", complaint);
}

int cuda_count(void)
{
    return cuda_load() == STK_OK ? n_chips : 0;
}

int cuda_driver_major(void)
{
    return driver_version / 1000;
}

static bool is_too_old(const cuda_chip *chip)
{
    return chip->major * 10 + chip->minor < LEAST_CAPABILITY;
}

/* CUDA numbers the fastest first. */
int cuda_best_gpu(void)
{
    for (int i = 0; i < cuda_count(); i++)
        if (!is_too_old(&chip_list[i])) return i;
    return -1;
}

stk_status cuda_find_chip(const char *name, int *number)
{
    int n_found = 0;
    stk_text here = {0};
    STK_RETURN_IF_ERROR(cuda_load());
    for (int i = 0; i < n_chips; i++) {
        stk_text_add(&here, i ? ", %s" : "%s", chip_list[i].uuid);
        if (strncasecmp(chip_list[i].uuid, name, strlen(name)) != 0) continue;
        *number = i;
        n_found++;
    }
    stk_status status = n_found == 1 ? STK_OK
                                     : stk_fail(STK_NO_DEVICE,
                                                "%s GPU of CUDA has that name; here are %s (a slice of "
                                                "one is where CUDA_VISIBLE_DEVICES names it)",
                                                n_found ? "more than one" : "no", stk_text_get(&here));
    stk_text_free(&here);
    return status;
}

/* --- opening --- */

stk_status cuda_enter(const gpu_context *context)
{
    return cuda_check(cu.cuCtxSetCurrent(context->context), "cuCtxSetCurrent");
}

static stk_status describe(const cuda_chip *from, gpu_chip *to)
{
    size_t total = 0, version;
    int local = 0, integrated = 0;
    cuda_library products;
    STK_RETURN_IF_ERROR(cuda_check(cu.cuDeviceTotalMem(&total, from->device), "cuDeviceTotalMem"));
    STK_RETURN_IF_ERROR(
        cuda_check(cu.cuDeviceGetAttribute(&local, CU_ATTRIBUTE_GROUP_MEMORY, from->device), "cuDeviceGetAttribute"));
    (void)cu.cuDeviceGetAttribute(&integrated, CU_ATTRIBUTE_INTEGRATED, from->device);
    *to = (gpu_chip){.vendor = "NVIDIA",
                     .is_gpu = true,
                     .n_units = from->n_units,
                     .local_bytes = (size_t)local,
                     .most_group = 1024,
                     .most_alloc_bytes = total,
                     .total_bytes = total,
                     .has_fragments = from->major >= 8,
                     .has_tf32 = from->major >= 8 && cuda_load_products(&products, &version) == STK_OK,
                     .unified = integrated != 0};
    snprintf(to->name, sizeof(to->name), "%s", from->name);
    snprintf(to->bus, sizeof(to->bus), "%s", from->bus);
    /* What programs are kept by: another compiler makes other ones, another chip wants other ones. */
    snprintf(to->driver, sizeof(to->driver), "CUDA %d.%d, sm_%d%d, NVRTC %d.%d", driver_version / 1000,
             driver_version % 1000 / 10, from->major, from->minor, compiler.major, compiler.minor);
    return STK_OK;
}

void cuda_describe(const gpu_context *context, stk_text *out)
{
    const cuda_chip *chip = context->chip;
    stk_text_add(out, "compute capability %d.%d, %s%s%s, compiler %s", chip->major, chip->minor, chip->uuid,
                 *chip->bus ? ", bus " : "", chip->bus, compiler.path);
    cuda_library products, convolutions;
    size_t version;
    if (cuda_load_products(&products, &version) == STK_OK)
        stk_text_add(out, ", cuBLASLt %zu.%zu (%s)", version / 10000, version / 100 % 100, products.path);
    else
        stk_text_add(out, ", own products: %.*s", (int)strcspn(stk_error_text(), ";,"), stk_error_text());
    if (cuda_load_convolutions(&convolutions, &version) == STK_OK)
        stk_text_add(out, ", cuDNN %zu.%zu.%zu (%s)", version / 10000, version / 100 % 100, version % 100,
                     convolutions.path);
    else
        stk_text_add(out, ", own convolutions: %.*s", (int)strcspn(stk_error_text(), ";,"), stk_error_text());
}

void cuda_close(gpu_context *context)
{
    if (!context) return;
    if (context->context && !context->hangs && cuda_enter(context) == STK_OK) {
        cuda_close_convolutions(context);
        if (context->products) cublaslt.cublasLtDestroy(context->products);
        if (context->stream) cu.cuStreamDestroy(context->stream);
        for (int i = 0; i < context->n_pins; i++)
            cu.cuMemFreeHost(context->pin[i].p);
    }
    if (context->context && !context->hangs) cu.cuDevicePrimaryCtxRelease(context->chip->device);
    free(context->pin);
    free(context);
}

stk_status cuda_open(int number, gpu_chip *chip, gpu_context **out)
{
    stk_status status = STK_OK;
    const char *graphs = getenv("STOKER_CUDA_GRAPHS");
    STK_RETURN_IF_ERROR(cuda_load());
    const cuda_chip *found = &chip_list[number];
    if (is_too_old(found))
        return stk_fail(STK_NO_DEVICE,
                        "'%s' is of compute capability %d.%d, and 7.5 is wanted; the device 'opencl' may have it",
                        found->name, found->major, found->minor);
    gpu_context *context = calloc(1, sizeof(*context));
    if (!context) return stk_fail_memory(sizeof(*context));
    context->chip = found;
    context->i_launched = -1;
    context->has_graphs = !(graphs && !strcmp(graphs, "0"));
    STK_TRY(describe(found, chip));
    chip->command_list = context->has_graphs;
    STK_TRY(gpu_read_wait_seconds(chip, &context->wait_seconds));
    STK_TRY(cuda_check(cu.cuDevicePrimaryCtxRetain(&context->context, found->device), "cuDevicePrimaryCtxRetain"));
    STK_TRY(cuda_enter(context));
    STK_TRY(cuda_check(cu.cuStreamCreateWithPriority(&context->stream, CU_STREAM_NON_BLOCKING, 0),
                       "cuStreamCreateWithPriority"));
    *out = context;
    context = NULL;
done:
    cuda_close(context);
    return status;
}
