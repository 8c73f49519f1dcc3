/* See remote/store.h. */
#include "data/remote/store.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/thread.h"
#include "data/remote/sign.h"

enum { SCHEME_BYTES = 5, MOST_BUCKET = 63, N_LEARNED = 32 };

stk_store stk_store_of(const char *path)
{
    if (!strncmp(path, "s3://", SCHEME_BYTES)) return STK_STORE_S3;
    return !strncmp(path, "gs://", SCHEME_BYTES) ? STK_STORE_GS : STK_STORE_NONE;
}

/* --- regions that stores have told --- */

static stk_once lock_once = STK_ONCE_INIT;
static bool has_lock;
static stk_mutex lock;
static struct {
    char bucket[MOST_BUCKET + 1], region[64];
} learned[N_LEARNED]; /* guarded by lock */
static int n_learned; /* guarded by lock; the oldest are replaced */

static void make_lock(void)
{
    has_lock = stk_mutex_init(&lock) == STK_OK;
}

/* NULL: none of that name. The lock is held. */
static char *learned_region(const char *bucket)
{
    for (int i = 0; i < N_LEARNED; i++)
        if (learned[i].bucket[0] && !strcmp(learned[i].bucket, bucket)) return learned[i].region;
    return NULL;
}

/* --- parts of an address --- */

typedef struct place {
    char bucket[MOST_BUCKET + 1];
    const char *key;
} place;

/* Letters, digits, dots, hyphens and underscores: nothing that means anything in an address. */
static bool is_bucket_name(const char *name, size_t n)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    return n >= 1 && n <= MOST_BUCKET && strspn(name, allowed) >= n && name[0] != '.' && name[0] != '-';
}

static stk_status find_place(const char *path, place *out)
{
    const char *bucket = path + SCHEME_BYTES;
    size_t n = strcspn(bucket, "/");
    if (!is_bucket_name(bucket, n))
        return stk_fail(STK_INVALID, "'%s' names no bucket: addresses are %.5sBUCKET/KEY", path, path);
    memcpy(out->bucket, bucket, n);
    out->bucket[n] = 0;
    out->key = bucket[n] ? bucket + n + 1 : "";
    return STK_OK;
}

static bool is_region_name(const char *region)
{
    size_t n = strlen(region);
    return n > 0 && n < 64 && strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

bool stk_store_learn_region(const char *path, const char *region)
{
    place at;
    if (!is_region_name(region) || find_place(path, &at) != STK_OK) return false;
    stk_once_run(&lock_once, make_lock);
    if (!has_lock) return false;
    stk_mutex_lock(&lock);
    char *known = learned_region(at.bucket);
    bool is_new = !known || strcmp(known, region) != 0;
    if (!known) {
        int i = n_learned++ % N_LEARNED;
        memcpy(learned[i].bucket, at.bucket, sizeof(at.bucket));
        known = learned[i].region;
    }
    snprintf(known, 64, "%s", region);
    stk_mutex_unlock(&lock);
    return is_new;
}

static stk_status choose_region(const place *at, const stk_keys *keys, stk_store_call *out)
{
    const char *region = keys->region ? keys->region : "us-east-1";
    if (!is_region_name(region)) return stk_fail(STK_INVALID, "'%s' is no region: one is called us-east-1", region);
    snprintf(out->region, sizeof(out->region), "%s", region);
    stk_once_run(&lock_once, make_lock);
    if (!has_lock || out->store != STK_STORE_S3) return STK_OK;
    stk_mutex_lock(&lock);
    const char *told = learned_region(at->bucket);
    if (told) snprintf(out->region, sizeof(out->region), "%s", told);
    stk_mutex_unlock(&lock);
    return STK_OK;
}

/* --- requests --- */

/* "https://host" or "https://host/path", and whether the bucket is part of it. */
static void make_root(const place *at, const stk_keys *keys, const stk_store_call *call, stk_text *out,
                      bool *has_bucket)
{
    bool is_gs = call->store == STK_STORE_GS;
    const char *end = !strncmp(call->region, "cn-", 3) ? ".cn" : "";
    *has_bucket = !keys->endpoint && !is_gs && !strchr(at->bucket, '.') && !strchr(at->bucket, '_');
    if (keys->endpoint)
        stk_text_add(out, "%s", keys->endpoint);
    else if (is_gs)
        stk_text_add(out, "https://storage.googleapis.com");
    else
        stk_text_add(out, "https://%s%ss3.%s.amazonaws.com%s", *has_bucket ? at->bucket : "", *has_bucket ? "." : "",
                     call->region, end);
}

static void add_line(stk_store_call *call, const char *name, const char *value)
{
    stk_text_add(&call->header, "%s: %s", name, value);
    stk_text_add_bytes(&call->header, "", 1);
}

static stk_status sign(const char *host, const char *path, const stk_store_ask *ask, const stk_keys *keys,
                       stk_store_call *out)
{
    char now[32];
    struct tm utc;
    time_t seconds = time(NULL);
    stk_text authorization = {0};
    stk_sign_header header[6];
    int n = 0;
    if (!gmtime_r(&seconds, &utc) || !strftime(now, sizeof(now), "%Y%m%dT%H%M%SZ", &utc))
        return stk_fail(STK_IO, "cannot tell the time, which signing a request takes");
    header[n++] = (stk_sign_header){"host", host};
    if (ask->etag[0]) header[n++] = (stk_sign_header){"if-match", ask->etag};
    if (ask->range[0]) header[n++] = (stk_sign_header){"range", ask->range};
    header[n++] = (stk_sign_header){"x-amz-content-sha256", STK_SHA256_OF_NOTHING};
    header[n++] = (stk_sign_header){"x-amz-date", now};
    if (keys->token) header[n++] = (stk_sign_header){"x-amz-security-token", keys->token};
    stk_sign_request request = {.method = "GET",
                                .path = path,
                                .query = ask->query,
                                .header = header,
                                .n_headers = n,
                                .body_sum = STK_SHA256_OF_NOTHING,
                                .time = now,
                                .region = out->region,
                                .service = "s3",
                                .key_id = keys->id,
                                .secret = keys->secret};
    stk_status status = stk_request_sign(&request, &authorization);
    if (status == STK_OK) {
        for (int i = 1; i < n; i++) /* the host is sent in any case */
            add_line(out, header[i].name, header[i].value);
        add_line(out, "authorization", stk_text_get(&authorization));
    }
    stk_text_free(&authorization);
    return status;
}

/* libcurl leaves it out of the header Host, too. */
static void drop_usual_port(const char *root, char *host)
{
    const char *port = !strncmp(root, "https", 5) ? ":443" : ":80";
    size_t n = strlen(host), n_port = strlen(port);
    if (n > n_port && !strcmp(host + n - n_port, port)) host[n - n_port] = 0;
}

static stk_status prepare_store(const stk_store_ask *ask, stk_store_call *out)
{
    place at;
    stk_keys keys = {0};
    stk_text root = {0};
    bool has_bucket;
    stk_status status;
    STK_TRY(find_place(ask->path, &at));
    if (!at.key[0] && !ask->query[0]) STK_TRY(stk_fail(STK_INVALID, "'%s' names a bucket and no object", ask->path));
    STK_TRY(stk_keys_find(out->store, &keys));
    STK_TRY(choose_region(&at, &keys, out));
    make_root(&at, &keys, out, &root, &has_bucket);
    stk_text_add(&out->url, "%s", stk_text_get(&root));
    if (!has_bucket) stk_text_add(&out->url, "/%s", at.bucket);
    if (has_bucket || !ask->query[0]) stk_text_add(&out->url, "/");
    if (!ask->query[0]) stk_percent_encode(at.key, strlen(at.key), true, &out->url);
    STK_TRY(stk_text_status(&root));
    STK_TRY(stk_text_status(&out->url));
    /* "//host:port/path" */
    const char *host_at = strstr(out->url.data, "://") + 3;
    size_t n_host = strcspn(host_at, "/");
    out->has_keys = keys.id != NULL;
    if (out->has_keys) {
        char host[256];
        if (n_host >= sizeof(host)) STK_TRY(stk_fail(STK_INVALID, "the endpoint '%s' is too long", root.data));
        memcpy(host, host_at, n_host);
        host[n_host] = 0;
        drop_usual_port(stk_text_get(&root), host);
        STK_TRY(sign(host, host_at + n_host, ask, &keys, out));
    }
    if (ask->query[0]) stk_text_add(&out->url, "?%s", ask->query);
done:
    stk_keys_free(&keys);
    stk_text_free(&root);
    return status == STK_OK ? stk_text_status(&out->url) : status;
}

stk_status stk_store_prepare(const stk_store_ask *ask, stk_store_call *out)
{
    *out = (stk_store_call){.store = stk_store_of(ask->path)};
    if (out->store == STK_STORE_NONE)
        stk_text_add(&out->url, "%s", ask->path);
    else
        STK_RETURN_IF_ERROR(prepare_store(ask, out));
    if (!out->has_keys && ask->etag[0]) add_line(out, "if-match", ask->etag);
    if (!out->has_keys && ask->range[0]) add_line(out, "range", ask->range);
    STK_RETURN_IF_ERROR(stk_text_status(&out->header));
    return stk_text_status(&out->url);
}

stk_status stk_store_identity(const char *path, stk_text *out)
{
    stk_keys keys = {0};
    stk_store store = stk_store_of(path);
    if (store == STK_STORE_NONE) return STK_OK;
    stk_status status = stk_keys_find(store, &keys);
    const char *region = keys.region ? keys.region : "";
    if (status == STK_OK && keys.endpoint)
        stk_text_add(out, "%s %s", keys.endpoint, keys.id ? keys.id : "");
    else if (status == STK_OK && store == STK_STORE_S3)
        stk_text_add(out, "aws%s",
                     !strncmp(region, "cn-", 3)       ? "-cn"
                     : !strncmp(region, "us-gov-", 7) ? "-us-gov"
                                                      : "");
    stk_keys_free(&keys);
    return status == STK_OK ? stk_text_status(out) : status;
}

void stk_store_call_free(stk_store_call *call)
{
    if (call->header.data) explicit_bzero(call->header.data, call->header.n);
    stk_text_free(&call->url);
    stk_text_free(&call->header);
}
