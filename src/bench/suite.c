#include "bench/suite.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/thread.h"
#include "settings/schema.h"
#include "stoker/graph/device.h"

static const char *const better[] = {"less", "more", NULL};
static const char *const scalings[] = {"strong", "weak", NULL};
static const char *const precisions[] = {"f32", "tf32", "bf16", "f16", "fp8", NULL};
static const char *const limits[] = {"link", NULL};
static const stk_key text_element = {.name = "command", .type = STK_KEY_TEXT};
static const stk_key file_element = {.name = "text", .type = STK_KEY_TEXT};
static const stk_key case_keys[] = {
    {.name = "name", .type = STK_KEY_TEXT, .required = true, .doc = "of the case"},
    {.name = "about", .type = STK_KEY_TEXT, .doc = "what it measures, for readers"},
    {.name = "run", .type = STK_KEY_TEXT, .required = true, .doc = "the command"},
    {.name = "pattern", .type = STK_KEY_TEXT, .doc = "finds the figure in what it prints"},
    {.name = "file", .type = STK_KEY_TEXT, .doc = "a JSON file that it writes, with the figure"},
    {.name = "key", .type = STK_KEY_TEXT, .doc = "of the figure in the file"},
    {.name = "unit", .type = STK_KEY_TEXT, .doc = "of the figure"},
    {.name = "better",
     .type = STK_KEY_WORD,
     .words = better,
     .default_value = "more",
     .doc = "which figures are better"},
    {.name = "precision",
     .type = STK_KEY_WORD,
     .words = precisions,
     .doc = "of products: bf16; what is measured in one is set against its peak"},
    {.name = "scaling",
     .type = STK_KEY_WORD,
     .words = scalings,
     .doc = "the same work for more replicas, or more of it"},
    {.name = "replicas",
     .type = STK_KEY_INT,
     .default_value = "1",
     .least = 1,
     .most = 4096,
     .doc = "that share the work"},
    {.name = "cores",
     .type = STK_KEY_INT,
     .default_value = "1",
     .least = 1,
     .most = 4096,
     .doc = "with fewer the case is left out"},
    {.name = "devices",
     .type = STK_KEY_INT,
     .default_value = "1",
     .least = 1,
     .most = 64,
     .doc = "of the measured kind; with fewer the case is left out"},
    {.name = "limit",
     .type = STK_KEY_WORD,
     .words = limits,
     .doc = "what bounds figures in GB/s: the link of the measured GPU to its host"},
    {.name = "peak", .type = STK_KEY_REAL, .doc = "what no figure can exceed", .least = 0, .most = 1e18, .above = true},
    STK_KEY_END};
static const stk_key case_element = {.name = "case", .type = STK_KEY_MAP, .keys = case_keys, .no_short = true};
static const stk_key suite_keys[] = {
    {.name = "name", .type = STK_KEY_TEXT, .required = true, .doc = "of the suite"},
    {.name = "about", .type = STK_KEY_TEXT, .doc = "what it is for"},
    {.name = "seconds", .type = STK_KEY_REAL, .default_value = "60", .least = 1, .most = 1e6, .doc = "for all of it"},
    {.name = "precision",
     .type = STK_KEY_SHARE,
     .default_value = "1%",
     .least = 0.0001,
     .most = 0.5,
     .doc = "half the interval's width"},
    {.name = "runs",
     .type = STK_KEY_INT,
     .default_value = "10",
     .least = 1,
     .most = 2000,
     .doc = "of each case, at least"},
    {.name = "warmup",
     .type = STK_KEY_INT,
     .default_value = "1",
     .least = 0,
     .most = 100,
     .doc = "rounds before the first that counts, at least; 0: none"},
    {.name = "files", .type = STK_KEY_NAMED, .element = &file_element, .doc = "written to the working folder"},
    {.name = "prepare",
     .type = STK_KEY_LIST,
     .element = &text_element,
     .one_is_list = true,
     .doc = "commands that are run once"},
    {.name = "cases", .type = STK_KEY_LIST, .element = &case_element, .required = true, .doc = "what is measured"},
    STK_KEY_END};
static const stk_key suite_root = {.name = "suite", .type = STK_KEY_MAP, .keys = suite_keys, .no_short = true};

/* "cuda" of "cuda:1". */
static size_t kind_length(const char *device)
{
    return strcspn(device, ":");
}

static int device_number(const char *device)
{
    const char *number = device + kind_length(device);
    return *number ? atoi(number + 1) : 0;
}

static int count_here(const char *device)
{
    stk_device_info info;
    int n = 0;
    for (int i = 0; stk_device_get_info(i, &info) == STK_OK; i++)
        n += info.available && strlen(info.name) == kind_length(device) &&
             !strncmp(info.name, device, kind_length(device));
    return n;
}

/* How many there are of the kind that is measured; 0 where the device is told by another name than its number. A child
 * asks: drivers that are loaded make a process larger, which shows in the time and the memory of what it starts. */
static int count_devices(const char *device)
{
    const char *number = device + kind_length(device);
    int how;
    if (*number && !isdigit((unsigned char)number[1])) return 0;
    pid_t child = fork();
    if (child < 0) return count_here(device);
    if (child == 0) _exit(count_here(device));
    while (waitpid(child, &how, 0) < 0)
        if (errno != EINTR) return 0;
    return WIFEXITED(how) ? WEXITSTATUS(how) : 0;
}

/* A word in braces that is nearly one of a suite's: nobody else would notice that it is misspelt. */
static stk_status refuse_misspelt(const stk_yaml_node *node, const char *text)
{
    static const char *const words[] = {"stoker", "work", "device", "other", "cores", "side", NULL};
    char word[16];
    for (const char *at = text; (at = strchr(at, '{')); at++) {
        size_t n = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz");
        if (at[n + 1] != '}' || n >= sizeof(word) || (at > text && at[-1] == '$')) continue;
        snprintf(word, sizeof(word), "%.*s", (int)n, at + 1);
        const char *meant = stk_nearest_name(word, words);
        if (meant && strcmp(meant, word))
            return stk_yaml_fail(node,
                                 "'{%s}' is none of a suite's words; did you mean '{%s}'? ('{ %s}' is left as it is)",
                                 word, meant, word);
    }
    return STK_OK;
}

/* {stoker}, {work}, {device}, {other}, {cores} and {side} in place. Returned: free(). */
static stk_status expand(const stk_bench_suite *suite, const char *program, const char *text, char **out)
{
    stk_text all = {0};
    while (*text) {
        if (!strncmp(text, "{stoker}", 8)) {
            stk_text_add(&all, "%s", program);
            text += 8;
        } else if (!strncmp(text, "{work}", 6)) {
            stk_text_add(&all, "%s", suite->work);
            text += 6;
        } else if (!strncmp(text, "{device}", 8)) {
            stk_text_add(&all, "%s", suite->device);
            text += 8;
        } else if (!strncmp(text, "{other}", 7)) {
            stk_text_add(&all, "%.*s:%d", (int)kind_length(suite->device), suite->device,
                         !device_number(suite->device));
            text += 7;
        } else if (!strncmp(text, "{cores}", 7)) {
            stk_text_add(&all, "%d", stk_n_cores());
            text += 7;
        } else if (!strncmp(text, "{side}", 6)) {
            stk_text_add(&all, strncmp(suite->device, "cpu", 3) ? "8192" : "2048");
            text += 6;
        } else {
            stk_text_add_bytes(&all, text++, 1);
        }
    }
    *out = NULL;
    stk_status status = stk_text_status(&all);
    if (status == STK_OK && !(*out = strdup(stk_text_get(&all)))) status = stk_fail_memory(all.n + 1);
    stk_text_free(&all);
    return status;
}

/* The text of a command or a path in the suite; node is where it stands. */
static stk_status expand_node(const stk_bench_suite *suite, const char *program, const stk_yaml_node *node, char **out)
{
    *out = NULL;
    STK_RETURN_IF_ERROR(refuse_misspelt(node, node->text));
    return expand(suite, program, node->text, out);
}

static stk_status read_case(stk_bench_suite *suite, const stk_yaml_node *node, const char *program)
{
    if (suite->n_cases == STK_BENCH_MOST_CASES) return stk_yaml_fail(node, "more than %d cases", STK_BENCH_MOST_CASES);
    int64_t cores = stk_yaml_int(node, "cores", 1), devices = stk_yaml_int(node, "devices", 1);
    bool of_devices = devices > 1 && devices > count_devices(suite->device);
    if (cores > stk_n_cores() || of_devices) {
        int k = suite->n_left_out < STK_BENCH_MOST_CASES ? suite->n_left_out++ : STK_BENCH_MOST_CASES - 1;
        suite->left_out[k].name = stk_yaml_text(node, "name");
        suite->left_out[k].wants = of_devices ? devices : cores;
        suite->left_out[k].of_devices = of_devices;
        return STK_OK;
    }
    int i = suite->n_cases++;
    stk_bench_case *c = &suite->cases[i];
    const char *file = stk_yaml_text(node, "file");
    c->name = stk_yaml_text(node, "name");
    c->pattern = stk_yaml_text(node, "pattern");
    c->key = stk_yaml_text(node, "key");
    c->unit = stk_yaml_text(node, "unit");
    c->peak = stk_yaml_real(node, "peak", 0);
    c->about = stk_yaml_text(node, "about");
    c->precision = stk_yaml_text(node, "precision");
    c->scaling = stk_yaml_text(node, "scaling");
    c->is_by_link = stk_yaml_text(node, "limit") && strncmp(suite->device, "cpu", 3) != 0;
    c->n_replicas = (int)stk_yaml_int(node, "replicas", 1);
    c->less_is_better = stk_yaml_is(node, "better", "less");
    for (int k = 0; k < i; k++)
        if (!strcmp(suite->cases[k].name, c->name))
            return stk_yaml_fail(stk_yaml_get(node, "name"), "there are two cases '%s'", c->name);
    if (!c->pattern && !file) {
        if (c->unit) return stk_yaml_fail(node, "'unit' goes with 'pattern' or 'file'");
        c->unit = "s";
        c->less_is_better = true;
    }
    if (!c->unit) return stk_yaml_fail(node, "a figure needs its 'unit'");
    if (stk_yaml_text(node, "limit") && strcmp(c->unit, "GB/s") != 0)
        return stk_yaml_fail(stk_yaml_get(node, "limit"), "'limit' goes with the unit GB/s");
    if (!file != !c->key) return stk_yaml_fail(node, "'file' and 'key' go together");
    if (file && c->pattern) return stk_yaml_fail(node, "a figure comes by 'pattern' or from a 'file', not by both");
    STK_RETURN_IF_ERROR(expand_node(suite, program, stk_yaml_get(node, "run"), &suite->run[i]));
    if (file) STK_RETURN_IF_ERROR(expand_node(suite, program, stk_yaml_get(node, "file"), &suite->file[i]));
    c->file = suite->file[i];
    return STK_OK;
}

/* Efficiency is compared with one replica of the same kind of scaling, be it left out here. */
static stk_status check_scaling(const stk_yaml_node *list)
{
    for (const stk_yaml_node *node = list->child; node; node = node->next) {
        const char *mode = stk_yaml_text(node, "scaling");
        bool has_one = false;
        if (!mode && stk_yaml_int(node, "replicas", 1) > 1)
            return stk_yaml_fail(stk_yaml_get(node, "replicas"), "'replicas' goes with 'scaling': strong or weak");
        for (const stk_yaml_node *other = list->child; other && mode; other = other->next)
            has_one |= stk_yaml_is(other, "scaling", mode) && stk_yaml_int(other, "replicas", 1) == 1;
        if (mode && !has_one)
            return stk_yaml_fail(stk_yaml_get(node, "scaling"), "no case of %s scaling has one replica to compare with",
                                 mode);
    }
    return STK_OK;
}

static stk_status write_files(const stk_bench_suite *suite, const char *program)
{
    char path[256], *text;
    const stk_yaml_node *files = stk_yaml_get(suite->yaml->root, "files");
    for (const stk_yaml_node *file = files ? files->child : NULL; file; file = file->next) {
        if (strchr(file->key, '/') || file->key[0] == '.')
            return stk_yaml_fail_key(file, "'%s' is not the name of a file", file->key);
        STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), suite->work, file->key));
        STK_RETURN_IF_ERROR(expand(suite, program, file->text ? file->text : "", &text));
        stk_status status = stk_file_write_durably(path, text, strlen(text));
        free(text);
        STK_RETURN_IF_ERROR(status);
    }
    return STK_OK;
}

static stk_status read_suite(stk_bench_suite *suite, const char *program)
{
    const stk_yaml_node *root = suite->yaml->root, *list = stk_yaml_get(root, "cases");
    suite->name = stk_yaml_text(root, "name");
    if (strchr(suite->name, '/') || suite->name[0] == '.')
        return stk_yaml_fail(stk_yaml_get(root, "name"), "'%s' must be a name that a folder can have", suite->name);
    suite->seconds = stk_yaml_real(root, "seconds", 60);
    suite->precision = stk_yaml_real(root, "precision", 0.01);
    suite->least_rounds = (int)stk_yaml_int(root, "runs", 10);
    suite->least_warmups = (int)stk_yaml_int(root, "warmup", 1);
    STK_RETURN_IF_ERROR(check_scaling(list));
    for (const stk_yaml_node *node = list->child; node; node = node->next)
        STK_RETURN_IF_ERROR(read_case(suite, node, program));
    if (!suite->n_cases)
        return stk_yaml_fail(list, suite->n_left_out ? "every case wants more cores or devices than there are"
                                                     : "there is no case");
    list = stk_yaml_get(root, "prepare");
    for (const stk_yaml_node *node = list ? list->child : NULL; node; node = node->next) {
        if (suite->n_prepare == STK_BENCH_MOST_CASES)
            return stk_yaml_fail(node, "more than %d commands", STK_BENCH_MOST_CASES);
        STK_RETURN_IF_ERROR(expand_node(suite, program, node, &suite->prepare[suite->n_prepare++]));
    }
    return STK_OK;
}

stk_status stk_bench_suite_open(const stk_bench_builtin *builtin, const char *path, const char *program,
                                const char *device, stk_bench_suite *out)
{
    memset(out, 0, sizeof(*out));
    out->device = device;
    if (builtin)
        STK_RETURN_IF_ERROR(stk_yaml_parse(builtin->name, builtin->text, strlen(builtin->text), &out->yaml));
    else
        STK_RETURN_IF_ERROR(stk_yaml_read(path, &out->yaml));
    STK_RETURN_IF_ERROR(stk_schema_check(out->yaml, out->yaml->root, &suite_root));
    const char *folder = getenv("TMPDIR");
    if (!folder || strlen(folder) > 30) folder = "/tmp";
    char work[64];
    snprintf(work, sizeof(work), "%s/stoker-bench-XXXXXX", folder);
    if (!mkdtemp(work)) return stk_fail(STK_IO, "cannot make '%s': %s", work, stk_errno_text(errno));
    memcpy(out->work, work, sizeof(out->work));
    STK_RETURN_IF_ERROR(write_files(out, program));
    return read_suite(out, program);
}

void stk_bench_suite_close(stk_bench_suite *suite)
{
    if (suite->work[0]) (void)stk_tree_remove(suite->work);
    for (int i = 0; i < STK_BENCH_MOST_CASES; i++) {
        free(suite->run[i]);
        free(suite->file[i]);
        free(suite->prepare[i]);
    }
    stk_yaml_free(suite->yaml);
    memset(suite, 0, sizeof(*suite));
}
