/* See remote/sign.h. */
#include "data/remote/sign.h"

#include <string.h>

#include "base/error.h"

void stk_percent_encode(const char *bytes, size_t n, bool keep_slash, stk_text *out)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                     c == '.' || c == '_' || c == '~' || (c == '/' && keep_slash);
        if (plain)
            stk_text_add_bytes(out, &c, 1);
        else
            stk_text_add(out, "%%%02X", (unsigned)c);
    }
}

#ifdef STK_HAS_CRYPTO

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

enum { SUM_BYTES = 32, HEX_BYTES = 2 * SUM_BYTES + 1, DATE_BYTES = 8 };

static void to_hex(const uint8_t sum[SUM_BYTES], char hex[HEX_BYTES])
{
    static const char digit[] = "0123456789abcdef";
    for (int i = 0; i < SUM_BYTES; i++) {
        hex[2 * i] = digit[sum[i] >> 4];
        hex[2 * i + 1] = digit[sum[i] & 15];
    }
    hex[HEX_BYTES - 1] = 0;
}

/* dst may be the key. */
static bool add_key(const void *key, size_t n_key, const char *text, size_t n, uint8_t dst[SUM_BYTES])
{
    uint8_t sum[SUM_BYTES];
    unsigned n_sum = 0;
    if (!HMAC(EVP_sha256(), key, (int)n_key, (const uint8_t *)text, n, sum, &n_sum)) return false;
    memcpy(dst, sum, SUM_BYTES);
    return n_sum == SUM_BYTES;
}

/* The key of one day, region and service: what a request is signed with instead of the secret. */
static bool make_key(const stk_sign_request *r, uint8_t key[SUM_BYTES])
{
    stk_text start = {0};
    stk_text_add(&start, "AWS4%s", r->secret);
    bool ok = stk_text_status(&start) == STK_OK && add_key(start.data, start.n, r->time, DATE_BYTES, key) &&
              add_key(key, SUM_BYTES, r->region, strlen(r->region), key) &&
              add_key(key, SUM_BYTES, r->service, strlen(r->service), key) &&
              add_key(key, SUM_BYTES, "aws4_request", 12, key);
    if (start.data) OPENSSL_cleanse(start.data, start.n);
    stk_text_free(&start);
    return ok;
}

static void add_names(const stk_sign_request *r, stk_text *out)
{
    for (int i = 0; i < r->n_headers; i++)
        stk_text_add(out, "%s%s", i ? ";" : "", r->header[i].name);
}

/* The request in its one canonical form. */
static void add_canonical(const stk_sign_request *r, stk_text *out)
{
    stk_text_add(out, "%s\n%s\n%s\n", r->method, r->path, r->query);
    for (int i = 0; i < r->n_headers; i++)
        stk_text_add(out, "%s:%s\n", r->header[i].name, r->header[i].value);
    stk_text_add(out, "\n");
    add_names(r, out);
    stk_text_add(out, "\n%s", r->body_sum);
}

stk_status stk_request_sign(const stk_sign_request *r, stk_text *out)
{
    stk_text canonical = {0}, scope = {0}, text = {0};
    uint8_t sum[SUM_BYTES], key[SUM_BYTES];
    char hex[HEX_BYTES];
    stk_status status;
    if (strlen(r->time) < DATE_BYTES) STK_TRY(stk_fail(STK_INVALID, "'%s' is no time to sign with", r->time));
    add_canonical(r, &canonical);
    STK_TRY(stk_text_status(&canonical));
    if (!SHA256((const uint8_t *)canonical.data, canonical.n, sum))
        STK_TRY(stk_fail(STK_IO, "libcrypto has no SHA-256"));
    to_hex(sum, hex);
    stk_text_add(&scope, "%.8s/%s/%s/aws4_request", r->time, r->region, r->service);
    STK_TRY(stk_text_status(&scope));
    stk_text_add(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", r->time, scope.data, hex);
    STK_TRY(stk_text_status(&text));
    if (!make_key(r, key) || !add_key(key, SUM_BYTES, text.data, text.n, sum))
        STK_TRY(stk_fail(STK_IO, "libcrypto could not sign a request"));
    to_hex(sum, hex);
    stk_text_add(out, "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=", r->key_id, scope.data);
    add_names(r, out);
    stk_text_add(out, ", Signature=%s", hex);
    STK_TRY(stk_text_status(out));
done:
    OPENSSL_cleanse(key, sizeof(key));
    stk_text_free(&canonical);
    stk_text_free(&scope);
    stk_text_free(&text);
    return status;
}

#else

stk_status stk_request_sign(const stk_sign_request *r, stk_text *out)
{
    (void)r, (void)out;
    return stk_fail(STK_UNSUPPORTED, "this build of Stoker has no libcrypto, which signs requests to object stores");
}

#endif
