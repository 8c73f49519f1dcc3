/* Reading PyPI's JSON: https://docs.pypi.org/api/json. See stoker/data/wheel.h. */
#include "stoker/data/wheel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_size.h"
#include "base/text.h"
#include "data/remote/http.h"

enum { MOST_TREE = 256 << 20, N_PARTS = 5, PATH_BYTES = 4096 };

static const char pypi[] = "https://pypi.org/pypi";

/* --- versions --- */

/* "13.10.0.20" as numbers; false: a candidate, or of another form. */
static bool read_version(const char *text, long part[N_PARTS])
{
    char *end = (char *)(uintptr_t)text;
    for (int i = 0; i < N_PARTS; i++) {
        part[i] = 0;
        if (i > 0 && *end == 0) continue;
        if (i > 0 && *end++ != '.') return false;
        if (*end < '0' || *end > '9') return false;
        part[i] = strtol(end, &end, 10);
    }
    return *end == 0;
}

static bool is_newer(const long a[N_PARTS], const long b[N_PARTS])
{
    for (int i = 0; i < N_PARTS; i++)
        if (a[i] != b[i]) return a[i] > b[i];
    return false;
}

/* --- one release --- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool has_end(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && !strcmp(text + n - n_end, end);
}

/* "nvidia_cublas-13.0.2-py3-none-manylinux_2_27_x86_64.whl" on such a processor. */
static bool fits_here(const json_t *file)
{
    struct utsname here;
    char end[96];
    const char *name = text_of(file, "filename");
    if (uname(&here) != 0 || json_is_true(json_object_get(file, "yanked"))) return false;
    snprintf(end, sizeof(end), "_%.80s.whl", here.machine);
    return has_end(name, end) && strstr(name, "-manylinux") && !strchr(name, '/') && name[0] != '.';
}

/* A relative address counts from the index's own. */
static stk_status take_url(const char *from, const char *url, stk_wheel *out)
{
    const bool is_relative = !strstr(url, "://") && url[0] != '/';
    const char *slash = strrchr(from, '/');
    int n =
        snprintf(out->url, sizeof(out->url), "%.*s%s", is_relative && slash ? (int)(slash + 1 - from) : 0, from, url);
    return n > 0 && (size_t)n < sizeof(out->url) ? STK_OK : stk_fail(STK_CORRUPT, "'%s': an address is too long", from);
}

static stk_status take(const char *from, const char *version, const json_t *file, stk_wheel *out)
{
    const char *sum = text_of(json_object_get(file, "digests"), "sha256"), *name = text_of(file, "filename");
    if (strlen(sum) != 64 || strspn(sum, "0123456789abcdef") != 64 || strlen(name) >= sizeof(out->file) ||
        strlen(version) >= sizeof(out->version) || !*text_of(file, "url"))
        return stk_fail(STK_CORRUPT, "'%s': '%.80s' has no address or no checksum", from, name);
    snprintf(out->version, sizeof(out->version), "%s", version);
    snprintf(out->file, sizeof(out->file), "%s", name);
    snprintf(out->checksum, sizeof(out->checksum), "sha256:%s", sum);
    out->n_bytes = (int64_t)json_integer_value(json_object_get(file, "size"));
    return take_url(from, text_of(file, "url"), out);
}

/* --- the index --- */

static stk_status read_index(const char *from, json_t **out)
{
    stk_text text = {0};
    stk_span content = {0};
    json_error_t error;
    stk_status status;
    *out = NULL;
    if (stk_is_remote(from)) {
        STK_TRY(stk_http_query(from, "", &text));
        content = (stk_span){(const uint8_t *)stk_text_get(&text), text.n};
    } else {
        STK_TRY(stk_file_load(from, &content));
    }
    STK_TRY(stk_json_check(content, MOST_TREE));
    status = stk_json_parse(content.data, content.n, 0, out, &error);
    if (status == STK_CORRUPT) STK_TRY(stk_fail(STK_CORRUPT, "'%s' is not JSON: %s", from, error.text));
done:
    if (!stk_is_remote(from)) stk_file_unload(content);
    stk_text_free(&text);
    return status;
}

static stk_status find_newest(const json_t *root, const char *from, int major, stk_wheel *out)
{
    long best[N_PARTS] = {-1}, part[N_PARTS];
    const char *version;
    const json_t *files, *file;
    size_t i;
    /* jansson's loops take what is not const. */
    json_object_foreach((json_t *)(uintptr_t)json_object_get(root, "releases"), version, files)
    {
        if (!read_version(version, part) || (major && part[0] != major) || !is_newer(part, best)) continue;
        json_array_foreach(files, i, file)
        {
            if (!fits_here(file)) continue;
            STK_RETURN_IF_ERROR(take(from, version, file, out));
            memcpy(best, part, sizeof(best));
            break;
        }
    }
    return STK_OK;
}

stk_status stk_wheel_find(const char *package, int major, const char *index, stk_wheel *out)
{
    STK_NEED(package);
    STK_NEED(out);
    char from[PATH_BYTES];
    json_t *root;
    *out = (stk_wheel){0};
    if (snprintf(from, sizeof(from), "%s/%s/json", index ? index : pypi, package) >= PATH_BYTES)
        return stk_fail(STK_INVALID, "address '%.60s...' is too long", from);
    STK_RETURN_IF_ERROR(read_index(from, &root));
    stk_status status = find_newest(root, from, major, out);
    const json_t *info = json_object_get(root, "info");
    const char *licence = text_of(info, "license_expression");
    if (!*licence) licence = text_of(info, "license");
    snprintf(out->licence, sizeof(out->licence), "%.127s", *licence ? licence : "not named");
    json_decref(root);
    if (status == STK_OK && !out->version[0])
        status = stk_fail(STK_NOT_FOUND, "'%s' has no wheel of %s %d for this processor", from, package, major);
    return status;
}
