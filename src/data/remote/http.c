/* See remote/http.h. */
#include "data/remote/http.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "data/remote/request.h"

enum {
    RETRIES = 5,
    FIRST_PAUSE_MS = 200, /* doubled each time */
    MOST_PAUSE_MS = 60000,
    MOST_PIECE_MS = 50,
};

bool stk_is_remote(const char *path)
{
    return !strncmp(path, "http://", 7) || !strncmp(path, "https://", 8) || stk_store_of(path) != STK_STORE_NONE;
}

/* What is wanted, and in what state. */
typedef struct wish {
    const char *path, *query;
    const stk_http_file *file; /* NULL: whatever state it is in */
    uint64_t at;
    size_t n;     /* bytes; 0: the answer to a query */
    uint8_t *dst; /* [n] */
    bool once;    /* is not to be tried again */
} wish;

/* --- judging answers --- */

static bool is_weak(const char *etag)
{
    return !strncmp(etag, "W/", 2);
}

/* Some servers look past If-Match. */
static bool has_changed(const wish *w, const stk_answer *a)
{
    if (!w->file || a->code != 206) return a->code == 412;
    if (a->total >= 0 && (uint64_t)a->total != w->file->n_bytes) return true;
    if (w->file->etag[0]) return a->etag[0] && !is_weak(a->etag) && strcmp(a->etag, w->file->etag) != 0;
    return w->file->modified[0] && a->modified[0] && strcmp(a->modified, w->file->modified) != 0;
}

static bool is_good(const wish *w, const stk_answer *a)
{
    if (a->sent != STK_SENT_ANSWERED) return false;
    if (!w->dst) return a->code == 200;
    return a->code == 206 && a->n == w->n && a->first == (int64_t)w->at && !has_changed(w, a);
}

static bool may_pass(const wish *w, const stk_answer *a)
{
    if (a->too_long || has_changed(w, a)) return false;
    if (a->sent != STK_SENT_ANSWERED) return a->sent == STK_SENT_BROKEN;
    if (a->code == 206) return w->dst != NULL;
    return a->code == 408 || a->code == 429 || a->code >= 500;
}

/* --- telling what is wrong --- */

/* The code in a store's answer, <Code>NoSuchKey</Code>; "" where there is none. */
static void find_code(const stk_text *text, char out[64])
{
    const char *start = strstr(stk_text_get(text), "<Code>");
    size_t n = 0;
    out[0] = 0;
    if (start) n = strspn(start + 6, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.");
    if (n > 0 && n < 64 && start[6 + n] == '<') snprintf(out, 64, "%.*s", (int)n, start + 6);
}

static const char *explain_code(const char *code, const stk_answer *a)
{
    static const struct {
        const char *code, *text;
    } known[] = {
        {"SignatureDoesNotMatch", ": the secret key does not belong to the key id"},
        {"InvalidAccessKeyId", ": the store does not know the key id"},
        {"ExpiredToken", ": the session's keys have expired"},
        {"InvalidToken", ": the session token does not belong to the keys"},
        {"RequestTimeTooSkewed", ": the clock of this machine is wrong"},
        {"AuthorizationHeaderMalformed", ": set AWS_REGION to the region of the bucket"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(code, known[i].code)) return known[i].text;
    return a->has_keys ? ": the keys may not read it" : ": no keys were found, and anonymous requests are not allowed";
}

static stk_status fail_refused(const char *where, const char *path, const stk_answer *a)
{
    char code[64];
    find_code(&a->text, code);
    if (stk_store_of(path) == STK_STORE_NONE)
        return stk_fail(STK_IO, "cannot read %s: the server refuses it (%ld)", where, a->code);
    return stk_fail(STK_IO, "cannot read %s: the store refuses it (%ld%s%s)%s", where, a->code, code[0] ? " " : "",
                    code, explain_code(code, a));
}

static stk_status fail_other(const char *where, const char *tries, const stk_answer *a)
{
    char code[64];
    find_code(&a->text, code);
    if (a->code >= 300 && a->code < 400 && a->region[0])
        return stk_fail(STK_IO, "cannot read %s: the bucket lies in '%s'; set AWS_REGION to that", where, a->region);
    return stk_fail(STK_IO, "cannot read %s: the server says %ld%s%s%s", where, a->code, code[0] ? " " : "", code,
                    tries);
}

static stk_status fail_part(const wish *w, const char *tries, const stk_answer *a)
{
    if (a->first != (int64_t)w->at)
        return stk_fail(STK_CORRUPT,
                        "the server of '%s' was asked for byte %" PRIu64 " and sent what begins at %" PRId64 "%s",
                        w->path, w->at, a->first, tries);
    return stk_fail(STK_CORRUPT, "the server of '%s' sent %s %zu bytes from byte %" PRIu64 " on%s", w->path,
                    a->too_long ? "more than" : "less than", w->n, w->at, tries);
}

static stk_status fail_answer(const wish *w, const stk_answer *a, int n_tries)
{
    char tries[32] = "", where[4608];
    if (n_tries > 1) snprintf(tries, sizeof(tries), ", %d times", n_tries);
    if (w->file)
        snprintf(where, sizeof(where), "'%s' at byte %" PRIu64, w->path, w->at);
    else
        snprintf(where, sizeof(where), "'%s'", w->path);
    if (has_changed(w, a)) return stk_fail(STK_CORRUPT, "'%s' has changed while it was in use", w->path);
    if (a->code == 200 && w->dst)
        return stk_fail(STK_UNSUPPORTED, "the server of '%s' gives whole files only (no range requests)", w->path);
    if (a->sent != STK_SENT_ANSWERED && !a->too_long)
        return stk_fail(STK_IO, "cannot read %s: %s%s", where, a->error, tries);
    switch (a->code) {
    case 200:
        return stk_fail(STK_CORRUPT, "the answer about '%s' is too long: more than %d MiB", w->path,
                        STK_ANSWER_MOST_TEXT >> 20);
    case 206: return fail_part(w, tries, a);
    case 401:
    case 403: return fail_refused(where, w->path, a);
    case 400: return stk_store_of(w->path) ? fail_refused(where, w->path, a) : fail_other(where, tries, a);
    case 404:
        return stk_fail(STK_NOT_FOUND, "there is no '%s' (404)%s", w->path,
                        strchr(w->path, '*') && !stk_store_of(w->path)
                            ? "; web servers list no files, so that patterns find none"
                            : "");
    default: return fail_other(where, tries, a);
    }
}

/* --- trying --- */

static void pause_before(int i_try, double retry_after_s)
{
    double ms = (double)((int64_t)FIRST_PAUSE_MS << (i_try - 1));
    uint64_t draw = stk_mix64((uint64_t)stk_clock_ns() ^ (uint64_t)(uintptr_t)&i_try);
    ms *= 0.5 + 0.5 * (double)(draw >> 11) * 0x1p-53;
    if (retry_after_s * 1000 > ms) ms = retry_after_s * 1000;
    if (ms > MOST_PAUSE_MS) ms = MOST_PAUSE_MS;
    /* In pieces: whoever closes the data meanwhile need not wait for the next try. */
    for (double left; ms > 0 && (left = 1000 * stk_request_seconds_left()) > 0;) {
        double piece = ms < MOST_PIECE_MS ? ms : MOST_PIECE_MS;
        if (piece > left) piece = left;
        struct timespec t = {.tv_nsec = (long)(piece * 1e6)};
        while (nanosleep(&t, &t) != 0)
            ;
        ms -= piece;
    }
}

/* Until an answer is good or beyond hope. The caller frees a->text. */
static stk_status ask(const wish *w, stk_answer *a)
{
    char range[64] = "";
    bool moved = false;
    if (w->dst) snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, w->at, w->at + w->n - 1);
    stk_store_ask one = {w->path, w->query, range, w->file ? w->file->etag : ""};
    *a = (stk_answer){0};
    for (int i_try = 0;; i_try++) {
        if (i_try > 0 && !moved) pause_before(i_try, a->retry_after_s);
        if (i_try > 0 && stk_request_seconds_left() <= 0) return fail_answer(w, a, i_try);
        stk_text_free(&a->text);
        *a = (stk_answer){.dst = w->dst, .room = w->n};
        STK_RETURN_IF_ERROR(stk_request(&one, a));
        if (is_good(w, a)) return STK_OK;
        moved = a->sent == STK_SENT_ANSWERED && a->code >= 300 && a->code < 404 && a->region[0] &&
                stk_store_of(w->path) == STK_STORE_S3 && stk_store_learn_region(w->path, a->region);
        if (i_try == RETRIES || w->once || !(moved || may_pass(w, a))) return fail_answer(w, a, i_try + 1);
    }
}

stk_status stk_http_stat(const char *url, stk_http_file *out)
{
    stk_answer a;
    uint8_t first;
    *out = (stk_http_file){0};
    stk_status status = ask(&(wish){.path = url, .query = "", .n = 1, .dst = &first}, &a);
    stk_text_free(&a.text);
    /* An empty file has no first byte: "416, bytes * / 0". Some stores leave the size out. */
    bool is_empty = status != STK_OK && a.code == 416 && (a.total == 0 || (a.total < 0 && stk_store_of(url)));
    if (status != STK_OK && !is_empty) return status;
    if (a.total < 0 && !is_empty) return stk_fail(STK_UNSUPPORTED, "the server of '%s' does not tell its size", url);
    out->n_bytes = is_empty ? 0 : (uint64_t)a.total;
    out->latency_s = a.latency_s;
    /* A weak one does not promise equal bytes. */
    if (!is_weak(a.etag)) memcpy(out->etag, a.etag, sizeof(out->etag));
    memcpy(out->modified, a.modified, sizeof(out->modified));
    return STK_OK;
}

stk_status stk_http_read(const char *url, const stk_http_file *file, uint64_t at, size_t n, void *dst, bool once,
                         double *latency_s, double *seconds)
{
    stk_answer a;
    if (n == 0) return STK_OK;
    stk_status status = ask(&(wish){url, "", file, at, n, dst, once}, &a);
    stk_text_free(&a.text);
    /* It was there and was right: whatever is wrong now is wrong with the source, and not with a record of it. */
    if (status == STK_CORRUPT || status == STK_NOT_FOUND || status == STK_UNSUPPORTED)
        status = stk_fail(STK_IO, "%s", stk_error_text());
    if (latency_s) *latency_s = a.latency_s;
    if (seconds) *seconds = a.seconds;
    return status;
}

stk_status stk_http_query(const char *path, const char *query, stk_text *out)
{
    stk_answer a;
    stk_status status = ask(&(wish){.path = path, .query = query}, &a);
    *out = a.text;
    return status;
}
