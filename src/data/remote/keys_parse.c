/* Files of profiles with keys, as the AWS tools write them; see remote/keys.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/remote/keys.h"

typedef struct part {
    const char *p;
    size_t n;
} part;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static part trim(part t)
{
    while (t.n && is_space(t.p[0])) {
        t.p++;
        t.n--;
    }
    while (t.n && is_space(t.p[t.n - 1]))
        t.n--;
    return t;
}

static bool is_text(part t, const char *text)
{
    return t.n == strlen(text) && !memcmp(t.p, text, t.n);
}

/* Whether a section "[...]" is the profile's. */
static bool is_profile(part line, const char *profile, bool is_config)
{
    const char *end = memchr(line.p, ']', line.n);
    part name = trim((part){line.p + 1, end ? (size_t)(end - line.p) - 1 : line.n - 1});
    if (is_text(name, profile)) return !is_config || !strcmp(profile, "default");
    if (!is_config || name.n < 8 || memcmp(name.p, "profile", 7) != 0 || !is_space(name.p[7])) return false;
    return is_text(trim((part){name.p + 8, name.n - 8}), profile);
}

static stk_status keep(char **out, part value)
{
    if (*out || value.n == 0) return STK_OK;
    if (memchr(value.p, 0, value.n)) return stk_fail(STK_CORRUPT, "a value holds a zero byte");
    *out = strndup(value.p, value.n);
    return *out ? STK_OK : stk_fail_memory(value.n);
}

/* "name = value" into keys; other names are none of ours. */
static stk_status take_line(part line, stk_keys *keys)
{
    const char *equals = memchr(line.p, '=', line.n);
    if (!equals) return STK_OK;
    part name = trim((part){line.p, (size_t)(equals - line.p)});
    part value = trim((part){equals + 1, line.n - (size_t)(equals + 1 - line.p)});
    if (is_text(name, "aws_access_key_id")) return keep(&keys->id, value);
    if (is_text(name, "aws_secret_access_key")) return keep(&keys->secret, value);
    if (is_text(name, "aws_session_token")) return keep(&keys->token, value);
    if (is_text(name, "region")) return keep(&keys->region, value);
    if (is_text(name, "endpoint_url")) return keep(&keys->endpoint, value);
    return STK_OK;
}

/* Keys that belong together come from one place: half of a pair from here does not complete one from elsewhere. */
static void add_missing(stk_keys *keys, stk_keys *more)
{
    if (!keys->id && more->id && more->secret) {
        keys->id = more->id;
        keys->secret = more->secret;
        keys->token = more->token;
        more->id = more->secret = more->token = NULL;
    }
    if (!keys->region) {
        keys->region = more->region;
        more->region = NULL;
    }
    if (!keys->endpoint) {
        keys->endpoint = more->endpoint;
        more->endpoint = NULL;
    }
}

stk_status stk_keys_parse(stk_span text, const char *profile, bool is_config, stk_keys *out, bool *found)
{
    stk_keys own = {0};
    stk_status status = STK_OK;
    bool inside = false;
    *found = false;
    for (size_t at = 0; at < text.n;) {
        const char *start = (const char *)text.data + at, *newline = memchr(start, '\n', text.n - at);
        size_t n = newline ? (size_t)(newline - start) : text.n - at;
        bool indented = n && is_space(start[0]); /* part of a nested setting, such as "s3 =" */
        part line = trim((part){start, n});
        at += n + 1;
        if (!line.n || line.p[0] == '#' || line.p[0] == ';') continue;
        if (line.p[0] == '[') {
            inside = is_profile(line, profile, is_config);
            *found = *found || inside;
        } else if (inside && !indented) {
            STK_TRY(take_line(line, &own));
        }
    }
    add_missing(out, &own);
done:
    stk_keys_free(&own);
    return status;
}
