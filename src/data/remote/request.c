/* See remote/request.h. */
#include "data/remote/request.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "stoker/data/cache.h"

static _Thread_local const _Atomic bool *stop_when;
static _Atomic int64_t give_up_ns; /* 0: never */

void stk_request_stop_when(const _Atomic bool *stop)
{
    stop_when = stop;
}

void stk_addresses_give_up_after(double seconds)
{
    atomic_store(&give_up_ns, seconds > 0 ? stk_clock_ns() + (int64_t)(seconds * 1e9) : 0);
}

double stk_request_seconds_left(void)
{
    int64_t at = atomic_load(&give_up_ns);
    if (stop_when && atomic_load(stop_when)) return 0;
    if (at == 0) return STK_REQUEST_NO_END;
    int64_t left = at - stk_clock_ns();
    return left > 0 ? (double)left * 1e-9 : 0;
}

/* --- whom to trust --- */

static pthread_mutex_t trust_lock = PTHREAD_MUTEX_INITIALIZER;
static char *trusted; /* guarded by trust_lock; NULL: as the environment says */

stk_status stk_addresses_trust(const char *file)
{
    char *copy = file && file[0] ? strdup(file) : NULL;
    if (file && file[0] && !copy) return stk_fail_memory(strlen(file));
    pthread_mutex_lock(&trust_lock);
    free(trusted);
    trusted = copy;
    pthread_mutex_unlock(&trust_lock);
    return STK_OK;
}

#ifdef STK_HAS_CURL

#include <stdio.h>
#include <strings.h>

#include <curl/curl.h>

#include "base/thread.h"

enum {
    CONNECT_SECONDS = 10,
    STALL_SECONDS = 15, /* with hardly a byte; STOKER_TIMEOUT has another */
    STALL_BYTES_PER_S = 512,
    MOST_REDIRECTS = 10,
    MOST_HEADERS = 256 << 10,
    MOST_ERROR_TEXT = 4096,
};

/* --- a handle for each thread --- */

static stk_once curl_once = STK_ONCE_INIT;
static pthread_key_t curl_key;
static bool curl_works;
static long stall_seconds;

static void close_handle(void *handle)
{
    curl_easy_cleanup(handle);
}

static void start_curl(void)
{
    const char *wanted = getenv("STOKER_TIMEOUT");
    long seconds = wanted ? strtol(wanted, NULL, 10) : 0;
    stall_seconds = seconds >= 1 && seconds <= 3600 ? seconds : STALL_SECONDS;
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

/* --- what comes back --- */

static size_t take_part(stk_answer *a, const char *data, size_t n)
{
    if (n > a->room - a->n) {
        a->too_long = true;
        return 0;
    }
    memcpy(a->dst + a->n, data, n);
    a->n += n;
    return n;
}

/* Returning less than came ends the request. */
static size_t take_body(char *data, size_t size, size_t n_items, void *user)
{
    stk_answer *a = user;
    size_t n = size * n_items;
    if (a->code == 206 && a->dst) return take_part(a, data, n);
    if (a->code == 200 && a->dst) return 0; /* the whole file: nobody has asked for it */
    size_t most = a->code == 200 ? STK_ANSWER_MOST_TEXT : MOST_ERROR_TEXT, left = most - a->text.n;
    if (n > left && a->code == 200) {
        a->too_long = true;
        return 0;
    }
    stk_text_add_bytes(&a->text, data, n < left ? n : left);
    return n;
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

static void keep_value(const char *line, size_t n_line, const char *name, char *out, size_t out_bytes)
{
    size_t n;
    const char *text = value_of(line, n_line, name, &n);
    if (text && n < out_bytes) snprintf(out, out_bytes, "%.*s", (int)n, text);
}

static void take_range(stk_answer *a, const char *text)
{
    long long first, last, total;
    if (sscanf(text, "bytes %lld-%lld/%lld", &first, &last, &total) == 3) {
        a->first = first;
        a->total = total;
    } else if (sscanf(text, "bytes */%lld", &total) == 1) {
        a->total = total;
    }
}

static size_t take_header(char *line, size_t size, size_t n_items, void *user)
{
    stk_answer *a = user;
    size_t n = size * n_items;
    int code;
    char range[96] = "";
    a->header_bytes += n;
    if (a->header_bytes > MOST_HEADERS) return 0;
    if (n > 5 && !strncmp(line, "HTTP/", 5) && sscanf(line, "HTTP/%*s %d", &code) == 1) a->code = code;
    keep_value(line, n, "Content-Range", range, sizeof(range));
    if (range[0]) take_range(a, range);
    keep_value(line, n, "ETag", a->etag, sizeof(a->etag));
    keep_value(line, n, "Last-Modified", a->modified, sizeof(a->modified));
    keep_value(line, n, "x-amz-bucket-region", a->region, sizeof(a->region));
    return n;
}

static stk_sent judge(CURLcode result)
{
    switch (result) {
    case CURLE_OK: return STK_SENT_ANSWERED;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SSL_CONNECT_ERROR: return STK_SENT_BROKEN;
    default: return STK_SENT_HOPELESS;
    }
}

/* --- sending --- */

static stk_status make_headers(const stk_store_call *call, struct curl_slist **out)
{
    for (size_t at = 0; at < call->header.n; at += strlen(call->header.data + at) + 1) {
        struct curl_slist *grown = curl_slist_append(*out, call->header.data + at);
        if (!grown) return stk_fail_memory(call->header.n);
        *out = grown;
    }
    return STK_OK;
}

static int ask_to_go_on(void *user, curl_off_t total, curl_off_t now, curl_off_t total_sent, curl_off_t sent)
{
    (void)user, (void)total, (void)now, (void)total_sent, (void)sent;
    return stk_request_seconds_left() <= 0;
}

/* libcurl copies the name. The variables are those of curl's program and of OpenSSL; libcurl itself reads neither. */
static void set_trust(CURL *h)
{
    const char *bundle = getenv("CURL_CA_BUNDLE"), *file = getenv("SSL_CERT_FILE");
    pthread_mutex_lock(&trust_lock);
    const char *chosen = trusted ? trusted : bundle && bundle[0] ? bundle : file && file[0] ? file : NULL;
    if (chosen) curl_easy_setopt(h, CURLOPT_CAINFO, chosen);
    pthread_mutex_unlock(&trust_lock);
}

static void set_options(CURL *h, const stk_store_call *call, struct curl_slist *headers, stk_answer *a)
{
    bool is_store = call->store != STK_STORE_NONE;
    curl_easy_setopt(h, CURLOPT_URL, stk_text_get(&call->url));
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, a);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, a);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    set_trust(h);
    /* A signature is for one host and path, and a key may have dots in it. */
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, is_store ? 0L : 1L);
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, is_store ? 1L : 0L);
    curl_easy_setopt(h, CURLOPT_MAXREDIRS, (long)MOST_REDIRECTS);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES_PER_S);
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, stall_seconds);
    double left = stk_request_seconds_left();
    /* A little after the end, as libcurl counts whole milliseconds: whatever it stops is late by our clock, too. */
    if (left < STK_REQUEST_NO_END) curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)(left * 1000) + 10);
    curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, ask_to_go_on);
    curl_easy_setopt(h, CURLOPT_USERAGENT, "stoker/" STK_VERSION);
}

static void take_times(CURL *h, stk_answer *a)
{
    double sent = 0, first = 0;
    curl_off_t retry_after = 0;
    curl_easy_getinfo(h, CURLINFO_PRETRANSFER_TIME, &sent);
    curl_easy_getinfo(h, CURLINFO_STARTTRANSFER_TIME, &first);
    curl_easy_getinfo(h, CURLINFO_TOTAL_TIME, &a->seconds);
    curl_easy_getinfo(h, CURLINFO_RETRY_AFTER, &retry_after);
    a->latency_s = first > sent ? first - sent : 0;
    a->retry_after_s = retry_after > 0 ? (double)retry_after : 0;
}

stk_status stk_request(const stk_store_ask *ask, stk_answer *a)
{
    stk_store_call call;
    struct curl_slist *headers = NULL;
    char error[CURL_ERROR_SIZE] = "";
    stk_status status;
    CURL *h = handle_of_thread();
    if (!h) return stk_fail(STK_NO_MEMORY, "cannot set up libcurl");
    a->first = a->total = -1;
    STK_TRY(stk_store_prepare(ask, &call));
    STK_TRY(make_headers(&call, &headers));
    set_options(h, &call, headers, a);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, error);
    CURLcode result = curl_easy_perform(h);
    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &a->code);
    a->sent = judge(result);
    a->has_keys = call.has_keys;
    if (result != CURLE_OK) snprintf(a->error, sizeof(a->error), "%s", error[0] ? error : curl_easy_strerror(result));
    if (a->header_bytes > MOST_HEADERS)
        snprintf(a->error, sizeof(a->error), "the answer's headers have more than %d KiB", MOST_HEADERS >> 10);
    if (result != CURLE_OK && stk_request_seconds_left() <= 0)
        snprintf(a->error, sizeof(a->error), "no whole answer came within the time that was given");
    take_times(h, a);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, NULL);
    STK_TRY(stk_text_status(&a->text));
done:
    curl_slist_free_all(headers);
    stk_store_call_free(&call);
    return status;
}

#else

stk_status stk_request(const stk_store_ask *ask, stk_answer *a)
{
    (void)a;
    return stk_fail(STK_UNSUPPORTED, "cannot read '%s': this build of Stoker has no libcurl", ask->path);
}

#endif
