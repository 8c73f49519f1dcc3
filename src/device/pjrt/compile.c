/* XLA's options (a CompileOptionsProto), and compiling for chips that are not here: pjrt.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/pjrt/pjrt.h"

/* --- options --- */

static void add_number(stk_text *text, uint64_t x)
{
    do {
        unsigned char byte = (unsigned char)((x & 127) | (x > 127 ? 128 : 0));
        stk_text_add_bytes(text, &byte, 1);
        x >>= 7;
    } while (x);
}

/* A field of a protocol buffer: a number, or bytes. */
static void add_number_field(stk_text *text, int field, int64_t x)
{
    add_number(text, (uint64_t)field << 3);
    add_number(text, (uint64_t)x);
}

static void add_bytes_field(stk_text *text, int field, stk_text *bytes)
{
    add_number(text, (uint64_t)field << 3 | 2);
    add_number(text, bytes->n);
    stk_text_add_bytes(text, stk_text_get(bytes), bytes->n);
    stk_text_free(bytes);
}

/* A flag of XLA's by name. */
static void add_flag(stk_text *options, const char *name, bool on)
{
    stk_text key = {0}, value = {0}, entry = {0};
    stk_text_add(&key, "%s", name);
    add_number_field(&value, 2, on);
    add_bytes_field(&entry, 1, &key);
    add_bytes_field(&entry, 2, &value);
    add_bytes_field(options, 7, &entry);
}

void pjrt_print_options(const pjrt_plugin *plugin, const int *chip_id, int n, stk_text *out)
{
    stk_text ids = {0}, computation = {0}, assignment = {0}, build = {0};
    for (int i = 0; i < n; i++)
        add_number(&ids, (uint64_t)chip_id[i]);
    add_bytes_field(&computation, 1, &ids);
    add_number_field(&assignment, 1, n);
    add_number_field(&assignment, 2, 1);
    add_bytes_field(&assignment, 3, &computation);
    add_number_field(&build, 1, -1);
    add_number_field(&build, 4, n);
    add_number_field(&build, 5, 1);
    add_bytes_field(&build, 9, &assignment);
    add_bytes_field(out, 3, &build);
    /* A maximum of a NaN and a number would be the number on processors, and a ReLU hide what has gone wrong. */
    if (!strcmp(plugin->platform, "cpu")) add_flag(out, "xla_cpu_enable_fast_min_max", false);
}

pjrt_program pjrt_make_program(const stk_text *text)
{
    static const char format[] = "mlir";
    return (pjrt_program){
        .head = {sizeof(pjrt_program), NULL},
        .code = text->data,
        .code_bytes = text->n,
        .format = format,
        .format_bytes = sizeof(format) - 1,
    };
}

/* --- ahead of time --- */

static stk_status make_topology(const pjrt_plugin *compiler, const char *name, pjrt_topology **out)
{
    static const int64_t one_chip[] = {1, 1, 1};
    static const char bounds[] = "chips_per_host_bounds";
    pjrt_named_value option = {
        .head = {sizeof(option), NULL},
        .name = bounds,
        .name_bytes = sizeof(bounds) - 1,
        .type = PJRT_VALUE_INTEGERS,
        .integers = one_chip,
        .n = 3,
    };
    pjrt_topology_create_args args = {
        .head = {sizeof(args), NULL},
        .name = name,
        .name_bytes = strlen(name),
        .option = &option,
        .n_options = strstr(name, ":1x1") != NULL, /* hosts have four chips otherwise */
    };
    STK_RETURN_IF_ERROR(pjrt_call(compiler, PJRT_TOPOLOGY_CREATE, &args, "describing the chips"));
    *out = args.topology;
    return STK_OK;
}

/* The ids of the first n chips, and their name. */
static stk_status find_chips(const pjrt_plugin *compiler, pjrt_topology *topology, int n, int *id, char name[64])
{
    pjrt_descriptions_args args = {.head = {sizeof(args), NULL}, .topology = topology};
    STK_RETURN_IF_ERROR(pjrt_call(compiler, PJRT_TOPOLOGY_DESCRIPTIONS, &args, "describing the chips"));
    if ((int64_t)args.n < n || args.n == 0)
        return stk_fail(STK_NO_DEVICE, "%d replicas want a chip each, and there are %zu", n, args.n);
    for (int i = 0; i < n; i++) {
        pjrt_id_args number = {.head = {sizeof(number), NULL}, .about = args.about[i]};
        STK_RETURN_IF_ERROR(pjrt_call(compiler, PJRT_DESCRIPTION_ID, &number, "describing the chips"));
        id[i] = number.id;
    }
    pjrt_text_args kind = {.head = {sizeof(kind), NULL}, .of = args.about[0]};
    STK_RETURN_IF_ERROR(pjrt_call(compiler, PJRT_DESCRIPTION_KIND, &kind, "describing the chips"));
    snprintf(name, 64, "%.*s", (int)(kind.n < 63 ? kind.n : 63), kind.text);
    return STK_OK;
}

static bool is_named(const pjrt_named_value *value, const char *name)
{
    return value->name_bytes == strlen(name) && !memcmp(value->name, name, value->name_bytes) &&
           value->type == PJRT_VALUE_FLOAT;
}

stk_status pjrt_analyse_executable(const pjrt_plugin *compiler, pjrt_unloaded *executable, stk_compiled_program *out)
{
    pjrt_unloaded_memory_args memory = {.head = {sizeof(memory), NULL}, .executable = executable};
    pjrt_cost_args cost = {.head = {sizeof(cost), NULL}, .executable = executable};
    STK_RETURN_IF_ERROR(pjrt_call(compiler, PJRT_UNLOADED_MEMORY, &memory, "asking for a program's memory"));
    out->argument_bytes = memory.arguments;
    out->result_bytes = memory.results - memory.alias;
    out->scratch_bytes = memory.scratch;
    out->code_bytes = memory.code;
    pjrt_call_quietly(compiler, PJRT_UNLOADED_COST, &cost);
    for (size_t i = 0; cost.value && i < cost.n; i++) {
        if (is_named(&cost.value[i], "flops")) out->flops = (double)cost.value[i].number;
        if (is_named(&cost.value[i], "bytes accessed")) out->bytes = (double)cost.value[i].number;
    }
    return STK_OK;
}

static stk_status compile_for(const pjrt_plugin *compiler, pjrt_topology *topology, int n, const stk_text *module,
                              stk_compiled_program *out)
{
    int *id = calloc((size_t)n, sizeof(*id));
    stk_text options = {0};
    pjrt_program program = pjrt_make_program(module);
    pjrt_compile_ahead_args args = {
        .head = {sizeof(args), NULL},
        .topology = topology,
        .program = &program,
    };
    stk_status status = STK_OK;
    if (!id) return stk_fail_memory((size_t)n * sizeof(*id));
    STK_TRY(find_chips(compiler, topology, n, id, out->chip));
    pjrt_print_options(compiler, id, n, &options);
    STK_TRY(stk_text_status(&options));
    args.options = options.data;
    args.options_bytes = options.n;
    int64_t start_ns = stk_clock_ns();
    STK_TRY(pjrt_call(compiler, PJRT_COMPILE, &args, "compiling a program"));
    out->compile_ns = stk_clock_ns() - start_ns;
    status = pjrt_analyse_executable(compiler, args.executable, out);
    pjrt_unloaded_args destroy = {.head = {sizeof(destroy), NULL}, .executable = args.executable};
    pjrt_call_quietly(compiler, PJRT_UNLOADED_DESTROY, &destroy);
done:
    stk_text_free(&options);
    free(id);
    return status;
}

/* Without hardware libtpu asks for what machines of Google's tell, waits, and complains. What the user has set stays.
 */
static void set_alone(void)
{
    static const char *const variables[][2] = {
        {"TPU_SKIP_MDS_QUERY", "1"},   {"TPU_ACCELERATOR_TYPE", "v5litepod-1"},
        {"TPU_STDERR_LOG_LEVEL", "3"}, {"TPU_WORKER_HOSTNAMES", "localhost"},
        {"TPU_MIN_LOG_LEVEL", "3"},    {"ALLOW_MULTIPLE_LIBTPU_LOAD", "1"}, /* no TPU is taken */
        {"TF_CPP_MIN_LOG_LEVEL", "3"},
    };
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        (void)setenv(variables[i][0], variables[i][1], false);
}

stk_status pjrt_compile_ahead(const pjrt_device *device, int n_replicas, const stk_text *module,
                              stk_compiled_program *out)
{
    static pjrt_plugin compiler; /* guarded by the caller: plans are made one at a time */
    pjrt_topology *chips;
    const char *topology = device->base.absent;
    *out = (stk_compiled_program){.n_chips = n_replicas};
    pjrt_describe_absent(topology, out);
    set_alone();
    if (!compiler.api) STK_RETURN_IF_ERROR(pjrt_load_compiler("tpu", &compiler));
    STK_RETURN_IF_ERROR(make_topology(&compiler, topology, &chips));
    stk_status status = compile_for(&compiler, chips, n_replicas, module, out);
    pjrt_topology_args destroy = {.head = {sizeof(destroy), NULL}, .topology = chips};
    pjrt_call_quietly(&compiler, PJRT_TOPOLOGY_DESTROY, &destroy);
    return status;
}
