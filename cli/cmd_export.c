/* stoker export */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "stoker/files/exchange.h"

static const cli_option options[] = {
    {"--safetensors", NULL, "weights for PyTorch, torchvision and Hugging Face"},
    {"--onnx", NULL, "the network for prediction, as an ONNX model"},
    {"--stablehlo", NULL, "the training step of a run or a recipe, as a module that XLA compiles"},
    {"--checkpoint", "best|last|N", "best, last or a step's number; default: best where there was validation"},
    {"--out", "FILE", "where to write; default: RUN/model.safetensors, RUN/model.onnx or RUN/step.mlir"},
    {"--set", "KEY=VALUE", "--stablehlo: changes a key of the recipe; may be given often"},
    {"--names", "WHOSE", "pytorch, the default; headless, tensorflow, hf-resnet, hf-vit or published-vit"},
    {"--dtype", "f32|f16|bf16", "of floats; default: f32"},
    {"--shard", "MIB", "cuts what is larger into shards of N MiB; ONNX: puts its weights next to it"},
    {NULL, NULL, NULL}};

static void on_event(void *user, const stk_train_event *event)
{
    (void)user;
    if (event->kind == STK_EVENT_WARNING) cli_warn("%s", cli_shown(event->text));
}

static void print_report(const stk_export_report *r)
{
    char a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT];
    cli_printf("wrote   %s: %s tensors, %s, of step %s", cli_shown(r->path), cli_count(r->n_tensors, a),
               cli_bytes((double)r->n_bytes, b), cli_count(r->step, c));
    if (r->n_files > 1) cli_printf(", in %s files", cli_count(r->n_files, a));
    cli_printf("\n");
    if (r->inputs[0]) cli_printf("inputs  %s\noutputs %s\n", cli_shown(r->inputs), cli_shown(r->outputs));
}

/* False: a message is out. */
static bool read_dtype(const cli_verb *verb, const char *text, stk_dtype *out)
{
    *out = STK_F32;
    if (!text || !strcmp(text, "f32")) return true;
    *out = !strcmp(text, "f16") ? STK_F16 : STK_BF16;
    if (*out == STK_F16 || !strcmp(text, "bf16")) return true;
    cli_usage(verb, "--dtype is f32, f16 or bf16, not '%s'", text);
    return false;
}

static int export_step(const cli_verb *verb, const cli_args *args)
{
    static const char *set[64];
    stk_run_options run_options = {.on_event = on_event, .set = set};
    stk_export_report report;
    char a[CLI_TEXT];
    for (int i = 0; i < args->n_found; i++) {
        const char *name = args->found[i].option->name, *value = args->found[i].value;
        if (strcmp(name, "--set") != 0) continue;
        if (!value || !strchr(value, '=')) return cli_usage(verb, "option '--set' needs KEY=VALUE, not '%s'", value);
        if (run_options.n_set == 64) return cli_usage(verb, "too many options");
        set[run_options.n_set++] = value;
    }
    if (stk_run_export_stablehlo(args->word[0], cli_value(args, "--out"), &run_options, &report) != STK_OK)
        return cli_fail();
    cli_printf("wrote   %s: the training step, with %s parameters and numbers of the optimiser's by name\n",
               cli_shown(report.path), cli_count(report.n_tensors, a));
    return CLI_OK;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    int64_t shard_mib;
    stk_export_options how = {.names = NULL};
    stk_export_report report;
    stk_run_options run_options = {.on_event = on_event};
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words != 1)
        return cli_usage(verb, "export takes one run folder, or with --stablehlo a recipe, and there are %d%s",
                         args.n_words, args.n_words == 2 ? "; --out FILE says where to write" : "");
    bool onnx = cli_has(&args, "--onnx");
    int n_kinds = onnx + cli_has(&args, "--safetensors") + cli_has(&args, "--stablehlo");
    if (n_kinds != 1)
        return cli_usage(verb, "export writes %s",
                         n_kinds ? "one of --safetensors, --onnx and --stablehlo at a time"
                                 : "--safetensors, --onnx or --stablehlo: name one");
    if (cli_has(&args, "--stablehlo")) return export_step(verb, &args);
    if (cli_has(&args, "--set")) return cli_usage(verb, "--set goes with --stablehlo alone");
    if (!cli_number(&args, "--shard", 1, INT64_C(1) << 30, 0, &shard_mib)) return CLI_USAGE;
    if (!read_dtype(verb, cli_value(&args, "--dtype"), &how.dtype)) return CLI_USAGE;
    run_options.checkpoint = cli_value(&args, "--checkpoint");
    how.names = cli_value(&args, "--names");
    how.shard_bytes = shard_mib << 20;
    const char *out = cli_value(&args, "--out");
    stk_status status = onnx ? stk_run_export_onnx(args.word[0], out, &run_options, &how, &report)
                             : stk_run_export_safetensors(args.word[0], out, &run_options, &how, &report);
    if (status != STK_OK) return cli_fail();
    print_report(&report);
    return CLI_OK;
}

const cli_verb cli_export = {"export",
                             "RUN --safetensors|--onnx|--stablehlo [OPTION...]",
                             "Writes a trained network for other tools.",
                             options,
                             run,
                             .makes_files = true};
