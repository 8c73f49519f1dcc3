#include "watch/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

enum { MOST_FACTS = 2000, MOST_CHARACTERS = 400 };

static stk_status append(stk_watch_facts *facts, const char *key, const char *text)
{
    if (facts->n == facts->capacity) {
        size_t capacity = facts->capacity ? 2 * facts->capacity : 16;
        stk_watch_fact *grown = realloc(facts->fact, capacity * sizeof(*grown));
        if (!grown) return stk_fail_memory(capacity * sizeof(*grown));
        facts->fact = grown;
        facts->capacity = capacity;
    }
    stk_watch_fact fact = {strdup(key), strdup(text)};
    if (!fact.key || !fact.text) {
        free(fact.key);
        free(fact.text);
        return stk_fail_memory(strlen(key) + strlen(text));
    }
    facts->fact[facts->n++] = fact;
    return STK_OK;
}

/* What was cut at MOST_CHARACTERS may have lost a part of its last one. */
static void end_with_a_character(char *text)
{
    size_t n = strlen(text), begin = n;
    if (n < MOST_CHARACTERS) return;
    while (begin > 0 && n - begin < 3 && ((unsigned char)text[begin - 1] & 0xc0) == 0x80)
        begin--;
    if (begin > 0 && (unsigned char)text[begin - 1] >= 0xc0 &&
        stk_character_bytes((unsigned char *)text + begin - 1) == 0)
        text[begin - 1] = 0;
}

stk_status stk_watch_facts_add(stk_watch_facts *facts, const char *key, const char *format, ...)
{
    char text[MOST_CHARACTERS + 1];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
    end_with_a_character(text);
    for (size_t i = 0; i < facts->n; i++)
        if (!strcmp(facts->fact[i].key, key) && !strcmp(facts->fact[i].text, text)) return STK_OK;
    return facts->n < MOST_FACTS ? append(facts, key, text) : STK_OK;
}

const char *stk_watch_facts_get(const stk_watch_facts *facts, const char *key, size_t i)
{
    for (size_t k = 0; k < facts->n; k++)
        if (!strcmp(facts->fact[k].key, key) && i-- == 0) return facts->fact[k].text;
    return NULL;
}

void stk_watch_facts_free(stk_watch_facts *facts)
{
    for (size_t i = 0; i < facts->n; i++) {
        free(facts->fact[i].key);
        free(facts->fact[i].text);
    }
    free(facts->fact);
    memset(facts, 0, sizeof(*facts));
}
