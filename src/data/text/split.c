/* See text/split.h. The patterns are matched by hand: each alternative in turn, as a regular expression would. */
#include "data/text/split.h"

#include <string.h>

#include "data/text/classes.h"

enum { KIND = STK_LETTER | STK_NUMBER | STK_SPACE }; /* none of them: other signs */

#define CL100K_START "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
#define CL100K_END   "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const char gpt2_pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

stk_split stk_split_of_pattern(const char *pattern)
{
    if (!strcmp(pattern, gpt2_pattern)) return STK_SPLIT_GPT2;
    if (!strcmp(pattern, CL100K_START "{1,3}" CL100K_END)) return STK_SPLIT_CL100K;
    if (!strcmp(pattern, CL100K_START CL100K_END)) return STK_SPLIT_QWEN2;
    return STK_SPLIT_NONE;
}

/* The end of the run of characters whose class, as far as mask goes, is wanted. */
static const uint8_t *run_end(const uint8_t *p, const uint8_t *end, int mask, int wanted)
{
    size_t n;
    while (p < end && (stk_class_at(p, end, &n) & mask) == wanted)
        p += n;
    return p;
}

/* 's, 't, 're, 've, 'm, 'll, 'd after an apostrophe at p: the end, or p. fold: whatever their case. */
static const uint8_t *contraction_end(const uint8_t *p, const uint8_t *end, bool fold)
{
    if (*p != '\'' || end - p < 2) return p;
    int a = p[1], b = end - p > 2 ? p[2] : 0;
    if (fold && a == 0xc5 && b == 0xbf) return p + 3; /* the long s folds to s */
    if (fold && a >= 'A' && a <= 'Z') a += 'a' - 'A';
    if (fold && b >= 'A' && b <= 'Z') b += 'a' - 'A';
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return p + 3;
    return p;
}

/* \s+(?!\S)|\s+ at a space: all spaces up to the end, or all but the last before what is none. */
static const uint8_t *spaces_end(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *last = p, *at = p;
    size_t n;
    while (at < end && (stk_class_at(at, end, &n) & STK_SPACE)) {
        last = at;
        at += n;
    }
    return at == end || last == p ? at : last;
}

static const uint8_t *gpt2_end(const uint8_t *p, const uint8_t *end)
{
    size_t n;
    const uint8_t *at = contraction_end(p, end, false);
    if (at != p) return at;
    at = *p == ' ' && end - p > 1 ? p + 1 : p;
    int kind = stk_class_at(at, end, &n) & KIND;
    if (kind & STK_SPACE) return spaces_end(p, end);
    return run_end(at + n, end, KIND, kind);
}

/* \s*[\r\n]+ at a space: behind the last line end of the spaces; p where there is none. */
static const uint8_t *lines_end(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *last = p;
    size_t n;
    for (const uint8_t *at = p; at < end && (stk_class_at(at, end, &n) & STK_SPACE); at += n)
        if (*at == '\r' || *at == '\n') last = at + 1;
    return last;
}

static const uint8_t *cl100k_end(const uint8_t *p, const uint8_t *end, int most_digits)
{
    size_t n, n_next;
    const uint8_t *at = contraction_end(p, end, true);
    if (at != p) return at;
    int kind = stk_class_at(p, end, &n) & KIND;
    int next = p + n < end ? stk_class_at(p + n, end, &n_next) & KIND : -1;
    if (kind == STK_LETTER) return run_end(p + n, end, KIND, STK_LETTER);
    if (next == STK_LETTER && kind != STK_NUMBER && *p != '\r' && *p != '\n')
        return run_end(p + n + n_next, end, KIND, STK_LETTER);
    if (kind == STK_NUMBER) {
        at = p + n;
        for (int i = 1; i < most_digits && at < end && (stk_class_at(at, end, &n) & KIND) == STK_NUMBER; i++)
            at += n;
        return at;
    }
    if (kind == 0 || (*p == ' ' && next == 0)) {
        at = run_end(kind == 0 ? p : p + 1, end, KIND, 0);
        while (at < end && (*at == '\r' || *at == '\n'))
            at++;
        return at;
    }
    at = lines_end(p, end);
    return at != p ? at : spaces_end(p, end);
}

static const uint8_t *bert_end(const uint8_t *p, const uint8_t *end)
{
    size_t n;
    if (stk_class_at(p, end, &n) & STK_PUNCTUATION) return p + n;
    return run_end(p + n, end, STK_SPACE | STK_PUNCTUATION, 0);
}

static const uint8_t *words_end(const uint8_t *p, const uint8_t *end)
{
    size_t n;
    int kind = stk_class_at(p, end, &n) & (STK_WORD | STK_SPACE);
    return run_end(p + n, end, STK_WORD | STK_SPACE, kind);
}

bool stk_split_next(stk_split how, const uint8_t **at, const uint8_t *end, stk_span *word)
{
    const uint8_t *p = *at;
    if (how >= STK_SPLIT_BERT) p = run_end(p, end, STK_SPACE, STK_SPACE);
    if (p == end) return false;
    const uint8_t *stop = how == STK_SPLIT_GPT2     ? gpt2_end(p, end)
                          : how == STK_SPLIT_CL100K ? cl100k_end(p, end, 3)
                          : how == STK_SPLIT_QWEN2  ? cl100k_end(p, end, 1)
                          : how == STK_SPLIT_BERT   ? bert_end(p, end)
                          : how == STK_SPLIT_SPACES ? run_end(p, end, STK_SPACE, 0)
                          : how == STK_SPLIT_WORDS  ? words_end(p, end)
                                                    : end;
    *word = (stk_span){p, (size_t)(stop - p)};
    *at = stop;
    return true;
}
