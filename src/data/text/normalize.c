/* See text/normalize.h. ASCII goes through a table; what lies between is decoded and goes through the steps in runs,
 * which are cut where no character can act on the one before. */
#include "data/text/normalize.h"

#include <string.h>

#ifdef STK_HAS_UTF8PROC
#include <utf8proc.h>
#endif

#include "base/error.h"
#include "data/text/classes.h"

enum { REPLACEMENT = 0xfffd, LONG_GROWTH = 12, GROWTH = 6 };

/* Characters that a step reads or writes; full: there were more than fit. */
typedef struct run {
    uint32_t *c;
    size_t n;
    bool full;
} run;

static void put(run *r, uint32_t c)
{
    if (r->n < STK_NORMALIZE_CHARACTERS)
        r->c[r->n++] = c;
    else
        r->full = true;
}

/* --- the steps --- */

static void clean(const run *src, run *dst)
{
    for (size_t i = 0; i < src->n; i++) {
        int class = stk_class_of(src->c[i]);
        if (!(class & STK_CONTROL)) put(dst, class & STK_SPACE ? ' ' : src->c[i]);
    }
}

/* The blocks that BERT puts spaces around (tokenization.py, _is_chinese_char). */
static bool is_chinese(uint32_t c)
{
    static const uint32_t blocks[][2] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
                                         {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf},
                                         {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        if (c >= blocks[i][0] && c <= blocks[i][1]) return true;
    return false;
}

static void space_chinese(const run *src, run *dst)
{
    for (size_t i = 0; i < src->n; i++) {
        bool spaced = is_chinese(src->c[i]);
        if (spaced) put(dst, ' ');
        put(dst, src->c[i]);
        if (spaced) put(dst, ' ');
    }
}

static void drop_class(const run *src, run *dst, int class)
{
    for (size_t i = 0; i < src->n; i++)
        if (!(stk_class_of(src->c[i]) & class)) put(dst, src->c[i]);
}

#ifdef STK_HAS_UTF8PROC

static void lower(const run *src, run *dst)
{
    for (size_t i = 0; i < src->n; i++) {
        /* The one character whose lower case is two. */
        put(dst, src->c[i] == 0x130 ? 'i' : (uint32_t)utf8proc_tolower((utf8proc_int32_t)src->c[i]));
        if (src->c[i] == 0x130) put(dst, 0x307);
    }
}

/* The normal forms of `tokenizers` are Unicode 9's: characters that came later are starters there that do not come
 * apart. These are the ones that do otherwise in Unicode 15, and U+11935, the first half of such a one; found by asking
 * it for every character. */
static bool is_newer(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},     {0xc3c, 0xc3c},
                  {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},   {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},
                  {0x32ff, 0x32ff},   {0xa7f2, 0xa7f4},   {0xa82c, 0xa82c},   {0xab69, 0xab69},   {0x10781, 0x10785},
                  {0x10787, 0x107b0}, {0x107b2, 0x107ba}, {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10efd, 0x10eff},
                  {0x10f46, 0x10f50}, {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e},
                  {0x11839, 0x1183a}, {0x11935, 0x11935}, {0x11938, 0x11938}, {0x1193d, 0x1193e}, {0x11943, 0x11943},
                  {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42},
                  {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16ff0, 0x16ff1}, {0x1e030, 0x1e06d},
                  {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef},
                  {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9}};
    size_t low = 0, high = sizeof(ranges) / sizeof(ranges[0]);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof(ranges) / sizeof(ranges[0]) && c >= ranges[low].first;
}

static int order_of(uint32_t c)
{
    int order = utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
    return order && is_newer(c) ? 0 : order;
}

static bool comes_apart(uint32_t c)
{
    return utf8proc_get_property((utf8proc_int32_t)c)->decomp_seqindex == UINT16_MAX || !is_newer(c);
}

static size_t compose_part(uint32_t *c, size_t n)
{
    return (size_t)utf8proc_normalize_utf32((utf8proc_int32_t *)c, (utf8proc_ssize_t)n,
                                            UTF8PROC_STABLE | UTF8PROC_COMPOSE);
}

/* Newer characters join nothing, and nothing joins over them. */
static void compose(run *r)
{
    size_t begin = 0, n_out = 0;
    for (size_t i = 0; i <= r->n; i++) {
        if (i < r->n && !is_newer(r->c[i])) continue;
        size_t n = i > begin ? compose_part(r->c + begin, i - begin) : 0;
        memmove(r->c + n_out, r->c + begin, n * sizeof(*r->c));
        n_out += n;
        if (i < r->n) r->c[n_out++] = r->c[i];
        begin = i + 1;
    }
    r->n = n_out;
}

/* Combining characters by their class, those of one class as they were. */
static void sort_marks(run *r)
{
    for (size_t i = 1; i < r->n; i++) {
        uint32_t c = r->c[i];
        int order = order_of(c);
        size_t k = i;
        for (; order && k > 0 && order_of(r->c[k - 1]) > order; k--)
            r->c[k] = r->c[k - 1];
        r->c[k] = c;
    }
}

static void normal_form(const run *src, run *dst, bool compatible, bool composed)
{
    utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    for (size_t i = 0; i < src->n && !dst->full; i++) {
        size_t room = STK_NORMALIZE_CHARACTERS - dst->n;
        if (!comes_apart(src->c[i])) {
            put(dst, src->c[i]);
            continue;
        }
        utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)src->c[i], (utf8proc_int32_t *)(dst->c + dst->n),
                                                     (utf8proc_ssize_t)room, options, NULL);
        dst->full = n < 0 || (size_t)n > room;
        if (!dst->full) dst->n += (size_t)n;
    }
    if (dst->full) return;
    sort_marks(dst);
    if (composed) compose(dst);
}

/* True where the text may be cut before c: it is no part of what comes before, nor will be. */
static bool can_cut(const stk_normalizer *s, uint32_t c)
{
    const utf8proc_property_t *property = utf8proc_get_property((utf8proc_int32_t)c);
    int class = stk_class_of(c);
    if (!s->decomposes) return true;
    if (property->combining_class) return false;
    if (property->decomp_seqindex != UINT16_MAX && !(class & STK_LETTER)) return false;
    return !s->composes || (!(class & STK_MARK) && !(c >= 0x1160 && c <= 0x11ff));
}

#else

static void lower(const run *src, run *dst)
{
    drop_class(src, dst, 0);
}

static void normal_form(const run *src, run *dst, bool compatible, bool composed)
{
    (void)compatible;
    (void)composed;
    drop_class(src, dst, 0);
}

static bool can_cut(const stk_normalizer *s, uint32_t c)
{
    (void)s;
    (void)c;
    return true;
}

#endif

static void do_step(stk_normalize_step step, const run *src, run *dst)
{
    dst->n = 0;
    switch (step) {
    case STK_STEP_CLEAN: clean(src, dst); break;
    case STK_STEP_CJK: space_chinese(src, dst); break;
    case STK_STEP_NFD: normal_form(src, dst, false, false); break;
    case STK_STEP_NFC: normal_form(src, dst, false, true); break;
    case STK_STEP_NFKD: normal_form(src, dst, true, false); break;
    case STK_STEP_NFKC: normal_form(src, dst, true, true); break;
    case STK_STEP_ACCENTS: drop_class(src, dst, STK_ACCENT); break;
    case STK_STEP_MARKS: drop_class(src, dst, STK_MARK); break;
    case STK_STEP_LOWER: lower(src, dst); break;
    }
}

/* --- building --- */

stk_status stk_normalizer_add(stk_normalizer *s, stk_normalize_step step)
{
    if (s->n_steps == STK_MOST_STEPS)
        return stk_fail(STK_UNSUPPORTED, "more than %d steps of normalization are not supported", STK_MOST_STEPS);
    bool is_form = step >= STK_STEP_NFD && step <= STK_STEP_NFKC;
#ifndef STK_HAS_UTF8PROC
    if (is_form || step == STK_STEP_LOWER)
        return stk_fail(STK_UNSUPPORTED, "lower case and normal forms need libutf8proc, which this build lacks: "
                                         "install libutf8proc-dev and build again");
#endif
    s->step[s->n_steps++] = step;
    s->decomposes = s->decomposes || is_form;
    s->composes = s->composes || step == STK_STEP_NFC || step == STK_STEP_NFKC;
    if (step == STK_STEP_NFKD || step == STK_STEP_NFKC) s->growth = LONG_GROWTH;
    return STK_OK;
}

void stk_normalizer_finish(stk_normalizer *s)
{
    stk_classes_load();
    if (s->growth == 0) s->growth = GROWTH;
    for (uint32_t c = 0; c < 128; c++) {
        s->ascii[c] = (uint8_t)c;
        for (int i = 0; i < s->n_steps && s->ascii[c] != 0xff; i++) {
            int class = stk_class_of(s->ascii[c]);
            if (s->step[i] == STK_STEP_CLEAN && class & STK_CONTROL)
                s->ascii[c] = 0xff;
            else if (s->step[i] == STK_STEP_CLEAN && class & STK_SPACE)
                s->ascii[c] = ' ';
            else if (s->step[i] == STK_STEP_LOWER && c >= 'A' && c <= 'Z')
                s->ascii[c] = (uint8_t)(c + 'a' - 'A');
        }
    }
}

size_t stk_normalizer_room(const stk_normalizer *s, size_t n)
{
    return n * (size_t)s->growth + 16;
}

/* --- a text --- */

/* Decodes characters up to the next ASCII one, or to a place to cut; returns the bytes taken. The first may be ASCII.
 * Hundreds of combining characters on end are cut anywhere. */
static size_t gather(const stk_normalizer *s, const uint8_t *p, const uint8_t *end, run *out)
{
    const uint8_t *start = p;
    out->n = 0;
    while (p < end && (*p >= 0x80 || p == start)) {
        size_t n;
        uint32_t c = stk_utf8_next(p, end, &n);
        if (c == STK_NO_CHARACTER) c = REPLACEMENT;
        if (out->n >= STK_NORMALIZE_RUN / 2 && can_cut(s, c)) break;
        if (out->n == STK_NORMALIZE_RUN) break;
        out->c[out->n++] = c;
        p += n;
    }
    return (size_t)(p - start);
}

stk_status stk_normalizer_run(const stk_normalizer *s, stk_span text, uint8_t *out, uint32_t *work, size_t *n_out)
{
    const uint8_t *p = text.data, *end = p + text.n;
    uint8_t *dst = out, *dst_end = out + stk_normalizer_room(s, text.n);
    while (p < end) {
        if (*p < 0x80) {
            *dst = s->ascii[*p++];
            dst += *dst != 0xff;
            continue;
        }
        /* A mark may join the letter before it. */
        if (s->composes && p > text.data && p[-1] < 0x80 && s->ascii[p[-1]] != 0xff) {
            p--;
            dst--;
        }
        run src = {work, 0, false}, other = {work + STK_NORMALIZE_CHARACTERS, 0, false};
        p += gather(s, p, end, &src);
        for (int i = 0; i < s->n_steps; i++) {
            do_step(s->step[i], &src, &other);
            run kept = src;
            src = other;
            other = kept;
        }
        for (size_t i = 0; i < src.n && dst_end - dst >= 4; i++)
            dst += stk_utf8_put(src.c[i], dst);
        if (src.full || other.full || dst_end - dst < 4)
            return stk_fail(STK_CORRUPT, "characters that become too long when they are normalized");
    }
    *n_out = (size_t)(dst - out);
    return STK_OK;
}
