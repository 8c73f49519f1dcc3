/* stoker get cuda-libs: NVIDIA's compiler and products, which the device 'cuda' wants and the driver does not bring.
 * They come from NVIDIA's wheels on PyPI, into the folder of Stoker's cache where the device looks; nothing is
 * installed. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "get.h"
#include "stoker/data/wheel.h"
#include "stoker/graph/device.h"

enum { MOST_LIBRARIES = 8, MOST_FILES = 8 };

/* A package that is to be fetched. */
typedef struct missing {
    stk_cuda_library library;
    stk_wheel wheel;
} missing;

static int find_major(const cli_args *args, int *out)
{
    int64_t wanted;
    if (!cli_number(args, "--cuda", 12, 99, 0, &wanted)) return CLI_USAGE;
    int here = stk_cuda_driver_major();
    *out = wanted ? (int)wanted : here;
    if (here) cli_printf("driver    of CUDA %d\n", here);
    if (*out >= 12) return CLI_OK;
    if (here) {
        cli_error("the driver is of CUDA %d, and 12 is the oldest that the device 'cuda' takes: a newer driver first",
                  here);
        return CLI_FAILED;
    }
    cli_error("no driver of NVIDIA's is here to say which CUDA it is; for another machine: --cuda 12 or --cuda 13");
    return CLI_FAILED;
}

/* Says what is here; out[]: what is not. */
static int look(int major, missing out[MOST_LIBRARIES], int *n)
{
    stk_status status;
    *n = 0;
    for (int i = 0; i < MOST_LIBRARIES; i++) {
        stk_cuda_library *library = &out[*n].library;
        status = stk_cuda_library_at(i, major, library);
        if (status == STK_NOT_FOUND) break;
        if (status != STK_OK) return cli_fail();
        if (library->path[0])
            cli_printf("%-9s is here: %s\n", library->name, library->path);
        else
            cli_printf("%-9s is missing: %s%s\n", library->name, library->about,
                       library->is_optional ? "; without it own kernels compute, slower" : "");
        *n += !library->path[0];
    }
    return CLI_OK;
}

static int find_wheels(int major, const char *index, missing *list, int n, int64_t *n_bytes)
{
    char a[CLI_TEXT];
    *n_bytes = 0;
    for (int i = 0; i < n; i++) {
        stk_wheel *wheel = &list[i].wheel;
        if (stk_wheel_find(list[i].library.package, major, index, wheel) != STK_OK) return cli_fail();
        cli_printf("%s %s: %s; licence: %s\n  from %s\n  %s\n", list[i].library.package, wheel->version,
                   cli_bytes((double)wheel->n_bytes, a), wheel->licence, wheel->url, wheel->checksum);
        *n_bytes += wheel->n_bytes;
    }
    return CLI_OK;
}

/* Whether somebody says yes; 0 where nobody can be asked is wrong usage. */
static int ask(const cli_args *args, int64_t n_bytes, const char *folder)
{
    char a[CLI_TEXT], answer[16] = "";
    if (cli_has(args, "--yes")) return CLI_OK;
    if (!isatty(STDIN_FILENO) || !cli_is_terminal(stdout))
        return cli_usage(args->verb, "%s would be downloaded to '%s': --yes where nobody can be asked",
                         cli_bytes((double)n_bytes, a), cli_shown(folder));
    printf("download %s to %s? [y/N] ", /* Its line ends with the answer. */
           cli_bytes((double)n_bytes, a), cli_shown(folder));
    fflush(stdout);
    if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y')) return CLI_OK;
    cli_printf("nothing was downloaded\n");
    return CLI_FAILED;
}

/* What is wanted of the wheel, and the licence's text. */
static int fetch(const missing *m, const char *folder)
{
    char name[128], out[CLI_PATH];
    const char *keep[MOST_FILES] = {"License", "LICENSE"};
    for (int i = 0; m->library.files[i] && i + 3 < MOST_FILES; i++)
        keep[i + 2] = m->library.files[i];
    snprintf(name, sizeof(name), "%s-%s", m->library.package, m->wheel.version);
    if ((size_t)snprintf(out, sizeof(out), "%s/%s", folder, name) >= sizeof(out)) return CLI_FAILED;
    stk_download_file file = {m->wheel.file, m->wheel.url, m->wheel.n_bytes, m->wheel.checksum};
    stk_download_set set = {.name = name,
                            .about = m->library.about,
                            .licence = m->wheel.licence,
                            .file = &file,
                            .n_files = 1,
                            .form = STK_DOWNLOAD_ARCHIVE,
                            .keep = keep};
    return get_fetch(&set, out, NULL);
}

int get_cuda_libs(const cli_args *args)
{
    static missing list[MOST_LIBRARIES + 1];
    char cache[CLI_PATH / 2], folder[CLI_PATH];
    int major, n, code;
    int64_t n_bytes;
    if (cli_value(args, "--out") || cli_value(args, "--train") || cli_value(args, "--test") ||
        cli_value(args, "--seed") || cli_value(args, "--size") || cli_value(args, "--threads") ||
        cli_value(args, "--checksum"))
        return cli_usage(args->verb, "'cuda-libs' takes --cuda, --yes and --mirror only");
    if (stk_cache_folder(cache, sizeof(cache)) != STK_OK) return cli_fail();
    snprintf(folder, sizeof(folder), "%s/cuda", cache);
    if ((code = find_major(args, &major)) != CLI_OK || (code = look(major, list, &n)) != CLI_OK) return code;
    if (n == 0) {
        cli_printf("nothing is missing\n");
        return CLI_OK;
    }
    if ((code = find_wheels(major, cli_value(args, "--mirror"), list, n, &n_bytes)) != CLI_OK) return code;
    if ((code = ask(args, n_bytes, folder)) != CLI_OK) return code;
    for (int i = 0; i < n; i++)
        if ((code = fetch(&list[i], folder)) != CLI_OK) return code;
    cli_printf("the device 'cuda' looks there; 'stoker devices' shows it\n");
    return CLI_OK;
}
