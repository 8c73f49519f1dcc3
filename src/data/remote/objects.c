/* See remote/objects.h. */
#include "data/remote/objects.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "data/remote/cache.h"
#include "data/remote/http.h"
#include "data/remote/listing.h"
#include "data/remote/sign.h"
#include "data/remote/store.h"

enum { SCHEME_BYTES = 5 };

bool stk_objects_is_pattern(const char *path)
{
    return strpbrk(path, "*?[") != NULL;
}

void stk_objects_free(stk_objects *objects)
{
    for (size_t i = 0; i < objects->n; i++)
        free(objects->object[i].path);
    free(objects->object);
    *objects = (stk_objects){0};
}

/* --- adding --- */

/* root and key make the path. */
static stk_status add(stk_objects *out, const char *root, size_t n_root, const char *key, const char *etag,
                      uint64_t n_bytes)
{
    size_t n_key = strlen(key), n_etag = strlen(etag);
    if (out->n == out->capacity) {
        size_t grown = 2 * out->capacity + 64;
        stk_object *p = realloc(out->object, grown * sizeof(*p));
        if (!p) return stk_fail_memory(grown * sizeof(*p));
        out->object = p;
        out->capacity = grown;
    }
    char *path = malloc(n_root + n_key + n_etag + 2);
    if (!path) return stk_fail_memory(n_root + n_key + n_etag + 2);
    memcpy(path, root, n_root);
    memcpy(path + n_root, key, n_key + 1);
    memcpy(path + n_root + n_key + 1, etag, n_etag + 1);
    out->object[out->n++] = (stk_object){path, n_bytes};
    return STK_OK;
}

/* What of a listing is wanted. */
typedef struct taker {
    stk_objects *out;
    const char *root; /* "s3://BUCKET/" */
    size_t n_root;
    const char *pattern; /* of the key; NULL: all */
} taker;

static stk_status take(void *user, const stk_listed *object)
{
    taker *t = user;
    size_t n = strlen(object->key);
    if (object->key[n - 1] == '/') return STK_OK; /* a folder that somebody has made */
    if (t->pattern && strcmp(t->pattern, object->key) != 0 &&
        fnmatch(t->pattern, object->key, FNM_PATHNAME | FNM_PERIOD) != 0)
        return STK_OK;
    return add(t->out, t->root, t->n_root, object->key, object->etag, object->n_bytes);
}

/* The keys that begin with n bytes of prefix. flat: without those that have a slash after it. */
static stk_status list(const char *path, const char *prefix, size_t n, bool flat, taker *t)
{
    stk_text token = {0}, query = {0}, answer = {0};
    stk_status status;
    do {
        stk_text_free(&query);
        stk_text_free(&answer);
        if (token.n) {
            stk_text_add(&query, "continuation-token=");
            stk_percent_encode(token.data, token.n, false, &query);
            stk_text_add(&query, "&");
        }
        stk_text_add(&query, "%slist-type=2&prefix=", flat ? "delimiter=%2F&" : "");
        stk_percent_encode(prefix, n, false, &query);
        STK_TRY(stk_text_status(&query));
        STK_TRY(stk_http_query(path, query.data, &answer));
        stk_text_free(&token);
        STK_TRY(stk_listing_parse((stk_span){(const uint8_t *)answer.data, answer.n}, take, t, &token));
    } while (token.n);
done:
    stk_text_free(&token);
    stk_text_free(&query);
    stk_text_free(&answer);
    return status == STK_OK || strstr(stk_error_text(), path) ? status : stk_fail_prefix(status, "'%s': ", path);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const stk_object *)a)->path, ((const stk_object *)b)->path);
}

static stk_status list_sorted(const char *path, const char *pattern, size_t n_prefix, bool flat, stk_objects *out)
{
    const char *slash = strchr(path + SCHEME_BYTES, '/');
    if (!slash) return stk_fail(STK_INVALID, "'%s' names a bucket and no object", path);
    taker t = {out, path, (size_t)(slash + 1 - path), pattern};
    size_t before = out->n;
    STK_RETURN_IF_ERROR(list(path, slash + 1, n_prefix, flat, &t));
    if (out->n > before) qsort(out->object + before, out->n - before, sizeof(*out->object), compare);
    return STK_OK;
}

stk_status stk_objects_match(const char *pattern, stk_objects *out)
{
    const char *slash = strchr(pattern + SCHEME_BYTES, '/'), *key = slash ? slash + 1 : "";
    size_t n_plain = strcspn(key, "*?["), before = out->n;
    STK_RETURN_IF_ERROR(list_sorted(pattern, key, n_plain, !strchr(key + n_plain, '/'), out));
    return out->n > before ? STK_OK : stk_fail(STK_NOT_FOUND, "no object matches '%s'", pattern);
}

stk_status stk_objects_below(const char *folder, stk_objects *out)
{
    size_t n = strlen(folder);
    char *path = malloc(n + 2);
    if (!path) return stk_fail_memory(n);
    memcpy(path, folder, n + 1);
    if (path[n - 1] != '/') memcpy(path + n++, "/", 2);
    const char *slash = strchr(path + SCHEME_BYTES, '/');
    stk_status status = list_sorted(path, NULL, (size_t)(path + n - (slash + 1)), false, out);
    free(path);
    return status;
}

stk_status stk_objects_find(const char *path, stk_objects *out)
{
    stk_http_file file;
    size_t before = out->n;
    bool is_store = stk_store_of(path) != STK_STORE_NONE; /* others do not tell what they hold */
    if (is_store && stk_objects_is_pattern(path)) return stk_objects_match(path, out);
    if (is_store) STK_RETURN_IF_ERROR(stk_objects_below(path, out));
    if (out->n > before) return STK_OK;
    STK_RETURN_IF_ERROR(stk_http_stat(path, &file));
    return add(out, path, strlen(path), "", file.etag, file.n_bytes);
}

/* --- reading --- */

stk_status stk_objects_read(const stk_objects *objects, size_t i, void *dst)
{
    const stk_object *o = &objects->object[i];
    const char *etag = o->path + strlen(o->path) + 1;
    stk_http_file file = {.n_bytes = o->n_bytes};
    uint64_t id = stk_hash64(o->path, strlen(o->path), stk_hash64(etag, strlen(etag), o->n_bytes));
    stk_block_place place = {id, 0, (size_t)o->n_bytes};
    if (o->n_bytes == 0 || stk_cache_read_whole(&place, dst)) return STK_OK;
    if (strlen(etag) < sizeof(file.etag)) memcpy(file.etag, etag, strlen(etag) + 1);
    STK_RETURN_IF_ERROR(stk_http_read(o->path, &file, 0, (size_t)o->n_bytes, dst, NULL, NULL));
    stk_cache_write(&place, dst);
    return STK_OK;
}
