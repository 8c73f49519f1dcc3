#include "base/secret.h"

#include <string.h>
#include <strings.h>

/* A way through a text from secret to secret. */
typedef struct walk {
    const char *p;
    bool in_address; /* behind the host of one */
} walk;

static const char spaces[] = " \t\r\n";

/* Whether a query's name is that of a secret: one of these words is in it, or stands at its end. */
static bool is_secret_name(const char *name, size_t n)
{
    static const char *const parts[] = {"token", "secret", "signature", "passw", "credential", "apikey"};
    static const char *const ends[] = {"key", "keyid", "sig", "auth", "pwd", "pass", "jwt"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        for (size_t k = 0, length = strlen(parts[i]); k + length <= n; k++)
            if (!strncasecmp(name + k, parts[i], length)) return true;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (strlen(ends[i]) <= n && !strncasecmp(name + n - strlen(ends[i]), ends[i], strlen(ends[i]))) return true;
    return false;
}

/* USER:SECRET@ or SECRET@ before the host that begins at p. */
static bool find_password(walk *w, const char **begin, const char **end)
{
    const char *host = w->p, *at = NULL;
    size_t n = strcspn(host, "/?# \t\r\n");
    for (size_t i = 0; i < n; i++)
        if (host[i] == '@') at = host + i;
    w->p = at ? at : host + n;
    w->in_address = true;
    if (!at) return false;
    const char *colon = memchr(host, ':', (size_t)(at - host));
    *begin = colon ? colon + 1 : host;
    *end = at;
    return *begin < at;
}

/* NAME=SECRET behind ?, & or ;, in an address whose host is behind us. */
static bool find_in_query(walk *w, const char **begin, const char **end)
{
    for (; *w->p && !strchr(spaces, *w->p); w->p++) {
        if (!strchr("?&;", *w->p)) continue;
        size_t n = strcspn(w->p + 1, "=?&;#'\" \t\r\n");
        const char *equals = w->p + 1 + n;
        if (*equals != '=' || !is_secret_name(w->p + 1, n)) continue;
        *begin = equals + 1;
        *end = *begin + strcspn(*begin, "&;#'\"<> \t\r\n");
        w->p = *end - 1; /* The loop of the next call looks at the end. */
        if (*begin == *end) continue;
        w->p = *end;
        return true;
    }
    w->in_address = false;
    return false;
}

static bool find_next(walk *w, const char **begin, const char **end)
{
    for (;;) {
        if (w->in_address && find_in_query(w, begin, end)) return true;
        const char *address = strstr(w->p, "://");
        if (!address) return false;
        w->p = address + 3;
        if (find_password(w, begin, end)) return true;
    }
}

int stk_text_add_secrets(stk_text *out, const char *text, const char *secret, bool only_hidden)
{
    walk w = {text, false};
    const char *begin, *end, *done = text;
    int n = 0;
    while (find_next(&w, &begin, &end)) {
        bool is_hidden =
            end - begin == (ptrdiff_t)strlen(STK_HIDDEN) && !strncmp(begin, STK_HIDDEN, strlen(STK_HIDDEN));
        if (only_hidden && !is_hidden) continue;
        stk_text_add_bytes(out, done, (size_t)(begin - done));
        stk_text_add_bytes(out, secret, strlen(secret));
        done = end;
        n++;
    }
    stk_text_add_bytes(out, done, strlen(done));
    return n;
}

const char *stk_hide_secrets(const char *text, char *out, size_t capacity)
{
    walk w = {text, false};
    const char *begin, *end = text, *done = text;
    size_t used = 0;
    if (!capacity) return out;
    for (bool more = true; more && used + 1 < capacity; done = end) {
        more = find_next(&w, &begin, &end);
        size_t n = more ? (size_t)(begin - done) : strlen(done), room = capacity - 1 - used;
        memcpy(out + used, done, n < room ? n : room);
        used += n < room ? n : room;
        for (const char *p = STK_HIDDEN; more && *p && used + 1 < capacity; p++)
            out[used++] = *p;
    }
    out[used] = 0;
    return out;
}
