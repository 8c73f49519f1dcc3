#include "data/remote/http.h"

#include <string.h>

bool stk_is_remote(const char *path)
{
    return !strncmp(path, "http://", 7) || !strncmp(path, "https://", 8);
}

#ifdef STK_HAS_CURL

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <curl/curl.h>

#include "base/error.h"
#include "base/thread.h"

enum {
    RETRIES = 5,
    FIRST_PAUSE_MS = 200, /* doubled each time */
    CONNECT_SECONDS = 10,
    STALL_SECONDS = 15, /* without a byte */
    TOO_MANY_REDIRECTS = 10,
};

/* --- a handle for each thread, whose connections stay open --- */

static stk_once curl_once = STK_ONCE_INIT;
static pthread_key_t curl_key;
static bool curl_works;

static void close_handle(void *handle)
{
    curl_easy_cleanup(handle);
}

static void start_curl(void)
{
    curl_works = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK && pthread_key_create(&curl_key, close_handle) == 0;
}

static CURL *handle_of_thread(void)
{
    stk_once_run(&curl_once, start_curl);
    if (!curl_works) return NULL;
    CURL *handle = pthread_getspecific(curl_key);
    if (handle) {
        curl_easy_reset(handle); /* keeps connections and DNS answers */
        return handle;
    }
    handle = curl_easy_init();
    if (!handle || pthread_setspecific(curl_key, handle) == 0) return handle;
    curl_easy_cleanup(handle);
    return NULL;
}

/* --- one request --- */

typedef struct answer {
    uint8_t *dst; /* NULL: the body is not wanted */
    size_t room, n;
    bool too_long;
    int64_t total; /* of the file, from Content-Range; -1: not told */
    char etag[128], modified[64];
    long code;
    CURLcode result;
    char error[CURL_ERROR_SIZE];
    double latency_s, seconds;
} answer;

/* Only the body of a good answer goes to dst. */
static size_t take_body(char *data, size_t size, size_t n, void *user)
{
    answer *a = user;
    size_t bytes = size * n;
    if (a->code == 200) return 0; /* the whole file: nobody has asked for it */
    if (!a->dst || a->code != 206) return bytes;
    if (bytes > a->room - a->n) {
        a->too_long = true;
        return 0;
    }
    memcpy(a->dst + a->n, data, bytes);
    a->n += bytes;
    return bytes;
}

static const char *value_of(const char *line, size_t n, const char *name, size_t *n_value)
{
    size_t m = strlen(name);
    if (n <= m || strncasecmp(line, name, m) != 0 || line[m] != ':') return NULL;
    const char *p = line + m + 1, *end = line + n;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (end > p && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
        end--;
    *n_value = (size_t)(end - p);
    return p;
}

static void keep_text(char *out, size_t out_bytes, const char *text, size_t n)
{
    if (text && n < out_bytes) snprintf(out, out_bytes, "%.*s", (int)n, text);
}

static size_t take_header(char *line, size_t size, size_t n_items, void *user)
{
    answer *a = user;
    size_t n = size * n_items, m = 0;
    int code;
    char text[64] = "";
    if (n > 5 && !strncmp(line, "HTTP/", 5) && sscanf(line, "HTTP/%*s %d", &code) == 1) a->code = code;
    const char *range = value_of(line, n, "Content-Range", &m);
    keep_text(text, sizeof(text), range, m);
    const char *slash = strchr(text, '/');
    if (range && slash && slash[1] >= '0' && slash[1] <= '9') a->total = strtoll(slash + 1, NULL, 10);
    const char *etag = value_of(line, n, "ETag", &m);
    keep_text(a->etag, sizeof(a->etag), etag, m);
    const char *modified = value_of(line, n, "Last-Modified", &m);
    keep_text(a->modified, sizeof(a->modified), modified, m);
    return n;
}

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value, bool *bad)
{
    char line[2304];
    if (!value[0]) return list;
    snprintf(line, sizeof(line), "%s: %s", name, value);
    struct curl_slist *grown = curl_slist_append(list, line);
    *bad = *bad || !grown;
    return grown ? grown : list;
}

/* Bytes [at, at + n) into a->dst; etag "": whatever state the file is in. */
static stk_status request(const char *url, uint64_t at, size_t n, const char *etag, answer *a)
{
    CURL *h = handle_of_thread();
    char range[64];
    bool bad = !h;
    struct curl_slist *headers = NULL;
    if (!h) return stk_fail(STK_NO_MEMORY, "cannot set up libcurl");
    snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, at, at + (n ? n : 1) - 1);
    a->total = -1;
    headers = add_header(headers, "If-Match", etag, &bad);
    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_RANGE, range);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, a);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, a);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, a->error);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(h, CURLOPT_MAXREDIRS, (long)TOO_MANY_REDIRECTS);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS);
    curl_easy_setopt(h, CURLOPT_USERAGENT, "stoker/" STK_VERSION);
    if (!bad) a->result = curl_easy_perform(h);
    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &a->code);
    double sent = 0, first = 0;
    curl_easy_getinfo(h, CURLINFO_PRETRANSFER_TIME, &sent);
    curl_easy_getinfo(h, CURLINFO_STARTTRANSFER_TIME, &first);
    curl_easy_getinfo(h, CURLINFO_TOTAL_TIME, &a->seconds);
    a->latency_s = first > sent ? first - sent : 0;
    curl_slist_free_all(headers);
    return bad ? stk_fail_memory(sizeof(range)) : STK_OK;
}

/* --- judging answers --- */

static bool may_pass(const answer *a, size_t n)
{
    if (a->too_long) return false;
    switch (a->result) {
    case CURLE_OK: break;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SSL_CONNECT_ERROR: return true;
    default: return false;
    }
    if (a->code == 206) return a->dst && a->n < n;
    return a->code == 408 || a->code == 429 || a->code >= 500;
}

static stk_status fail_answer(const char *url, const answer *a, size_t n, int n_tries)
{
    char tries[32] = "";
    if (n_tries > 1) snprintf(tries, sizeof(tries), ", %d times", n_tries);
    if (a->result != CURLE_OK && !a->too_long && a->code != 200)
        return stk_fail(STK_IO, "cannot read '%s': %s%s", url, a->error[0] ? a->error : curl_easy_strerror(a->result),
                        tries);
    switch (a->code) {
    case 401:
    case 403: return stk_fail(STK_IO, "cannot read '%s': the server refuses it (%ld)", url, a->code);
    case 404: return stk_fail(STK_NOT_FOUND, "there is no '%s' (404)", url);
    case 412: return stk_fail(STK_CORRUPT, "'%s' has changed while it was in use", url);
    case 200: return stk_fail(STK_UNSUPPORTED, "the server of '%s' gives whole files only (no range requests)", url);
    case 206:
        return stk_fail(STK_CORRUPT, "the server of '%s' sent %s %zu bytes%s", url,
                        a->too_long ? "more than" : "less than", n, tries);
    default: return stk_fail(STK_IO, "cannot read '%s': the server says %ld%s", url, a->code, tries);
    }
}

static void pause_before(int i_try)
{
    int64_t ms = (int64_t)FIRST_PAUSE_MS << (i_try - 1);
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Until an answer is good or beyond hope. */
static stk_status ask(const char *url, uint64_t at, size_t n, const char *etag, uint8_t *dst, answer *a)
{
    for (int i_try = 0;; i_try++) {
        if (i_try > 0) pause_before(i_try);
        *a = (answer){.dst = dst, .room = n};
        STK_RETURN_IF_ERROR(request(url, at, n, etag, a));
        bool good = a->result == CURLE_OK && a->code == 206 && (!dst || a->n == n);
        if (good) return STK_OK;
        if (!may_pass(a, n) || i_try == RETRIES) return fail_answer(url, a, n, i_try + 1);
    }
}

stk_status stk_http_stat(const char *url, stk_http_file *out)
{
    answer a;
    uint8_t first;
    *out = (stk_http_file){0};
    stk_status status = ask(url, 0, 1, "", &first, &a);
    /* An empty file has no first byte: "416, bytes * / 0". */
    if (status != STK_OK && !(a.code == 416 && a.total == 0)) return status;
    if (a.total < 0) return stk_fail(STK_UNSUPPORTED, "the server of '%s' does not tell its size", url);
    out->n_bytes = (uint64_t)a.total;
    out->latency_s = a.latency_s;
    /* A weak one does not promise equal bytes. */
    if (strncmp(a.etag, "W/", 2) != 0) memcpy(out->etag, a.etag, sizeof(out->etag));
    memcpy(out->modified, a.modified, sizeof(out->modified));
    return STK_OK;
}

stk_status stk_http_read(const char *url, const stk_http_file *file, uint64_t at, size_t n, void *dst,
                         double *latency_s, double *seconds)
{
    answer a;
    STK_RETURN_IF_ERROR(ask(url, at, n, file->etag, dst, &a));
    if (a.total >= 0 && (uint64_t)a.total != file->n_bytes)
        return stk_fail(STK_CORRUPT, "'%s' has changed while it was in use", url);
    if (latency_s) *latency_s = a.latency_s;
    if (seconds) *seconds = a.seconds;
    return STK_OK;
}

#else

#include "base/error.h"

stk_status stk_http_stat(const char *url, stk_http_file *out)
{
    *out = (stk_http_file){0};
    return stk_fail(STK_UNSUPPORTED, "cannot read '%s': this build of Stoker has no libcurl", url);
}

stk_status stk_http_read(const char *url, const stk_http_file *file, uint64_t at, size_t n, void *dst,
                         double *latency_s, double *seconds)
{
    (void)file, (void)at, (void)n, (void)dst, (void)latency_s, (void)seconds;
    return stk_fail(STK_UNSUPPORTED, "cannot read '%s': this build of Stoker has no libcurl", url);
}

#endif
