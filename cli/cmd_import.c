/* stoker import */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "stoker/files/exchange.h"

static const cli_option options[] = {
    {"--recipe", "RECIPE", "the recipe of the run: its network takes the weights; default: what the file says"},
    {"--as", "MODEL", "without a recipe: resnet50 and others, with ImageNet's preprocessing; no data are needed"},
    {"--out", "DIR", "the run's folder; default: runs/NAME"},
    {"--leave", "PARTS", "parts of names, comma-separated, that are not loaded, as of a new head: fc."},
    {"--names", "WHOSE", "whose names the file has; default: found out. They stand above"},
    {"--set", "KEY=VALUE", "sets a key of the recipe"},
    {NULL, NULL, NULL}};

static void on_event(void *user, const stk_train_event *event)
{
    (void)user;
    if (event->kind == STK_EVENT_WARNING) cli_warn("%s", cli_shown(event->text));
}

static const char *about_names(const char *name)
{
    const char *known, *about = "";
    for (int i = 0; (known = stk_exchange_names(i, &about)); i++)
        if (!strcmp(known, name)) return about;
    return "";
}

static void print_eval(FILE *file, const void *folder)
{
    fprintf(file, "stoker eval ");
    cli_shell_word(file, folder);
}

static void print_generate(FILE *file, const void *folder)
{
    fprintf(file, "stoker generate ");
    cli_shell_word(file, folder);
    fprintf(file, " PROMPT --tokenizer PATH");
}

static void print_predict(FILE *file, const void *folder)
{
    fprintf(file, "stoker predict ");
    cli_shell_word(file, folder);
    fprintf(file, " FILE");
}

static void print_report(const char *file, const stk_import_report *r, bool has_data)
{
    char a[CLI_TEXT], b[CLI_TEXT];
    cli_printf("read    %s: %s tensors; names: %s (%s)\n", cli_shown(file), cli_count(r->n_file, a), r->names,
               about_names(r->names));
    cli_printf("loaded  %s of the model's %s tensors\n", cli_count(r->n_loaded, a),
               cli_count(r->n_loaded + r->n_left, b));
    if (r->n_left) cli_printf("left    %s, as asked: %s\n", cli_count(r->n_left, a), cli_shown(r->left));
    if (r->n_extra) cli_printf("extra   %s of the file: counters, masks or second names\n", cli_count(r->n_extra, a));
    if (r->n_unused) cli_printf("unused  %s of the file: %s\n", cli_count(r->n_unused, a), cli_shown(r->unused));
    char line[CLI_PATH + 64];
    snprintf(line, sizeof(line), "wrote   %s; try:", cli_shown(r->folder));
    cli_put_command(line, has_data ? print_eval : r->generates ? print_generate : print_predict, r->folder);
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static const char *set[CLI_MOST_ARGS];
    int n_set = 0;
    stk_import_report report;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words != 1) return cli_usage(verb, "import takes one file, and there are %d", args.n_words);
    const char *recipe = cli_value(&args, "--recipe");
    if (recipe && cli_value(&args, "--as")) return cli_usage(verb, "--recipe and --as say the same twice");
    for (int i = 0; i < args.n_found; i++)
        if (!strcmp(args.found[i].option->name, "--set")) set[n_set++] = args.found[i].value;
    stk_run_options run_options = {.set = set, .n_set = n_set, .out = cli_value(&args, "--out"), .on_event = on_event};
    stk_import_options how = {
        .names = cli_value(&args, "--names"), .leave = cli_value(&args, "--leave"), .as = cli_value(&args, "--as")};
    if (stk_run_import(recipe, args.word[0], &run_options, &how, &report) != STK_OK) return cli_fail();
    print_report(args.word[0], &report, recipe != NULL);
    return CLI_OK;
}

const cli_verb cli_import = {
    "import",
    "FILE [--recipe RECIPE|--as MODEL] [OPTION...]",
    "Makes a run of weights in safetensors: PyTorch's, torchvision's, Hugging Face's, or a checkpoint. "
    "FILE: a .safetensors file, its index of shards, or a folder with model.safetensors. Names: pytorch, "
    "headless (saved without its head), tensorflow (a BERT that came from there), hf-resnet, hf-vit, "
    "published-vit (of the files that torchvision has published).",
    options,
    run,
    .makes_files = true};
