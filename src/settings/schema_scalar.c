/* See settings/schema_scalar.h. */
#include "settings/schema_scalar.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

void stk_number_text(double value, char out[STK_NUMBER_BYTES])
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(out, STK_NUMBER_BYTES, "%.*g", digits, value);
        if (strtod(out, NULL) == value) return;
    }
}

/* strtod without what YAML has no use for: hexadecimal, "inf", "nan" and leading spaces. */
static bool parse_plain_real(const char *text, const char *end, double *out)
{
    char copy[64];
    size_t n = (size_t)(end - text);
    if (n == 0 || n >= sizeof(copy)) return false;
    for (const char *p = text; p < end; p++)
        if (!isdigit((unsigned char)*p) && !strchr("+-.eE", *p)) return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    char *stop;
    *out = strtod(copy, &stop);
    return !*stop && isfinite(*out);
}

bool stk_parse_real(const char *text, double *out)
{
    const char *slash = strchr(text, '/');
    double below;
    if (!slash) return parse_plain_real(text, text + strlen(text), out);
    if (!parse_plain_real(text, slash, out)) return false;
    if (!parse_plain_real(slash + 1, slash + strlen(slash), &below) || below == 0) return false;
    *out /= below;
    return isfinite(*out);
}

bool stk_parse_int(const char *text, int64_t *out)
{
    char copy[32];
    size_t n = 0;
    for (const char *p = text; *p; p++) {
        bool is_sign = p == text && (*p == '-' || *p == '+');
        if (*p == '_' && p > text && p[1]) continue;
        if ((!isdigit((unsigned char)*p) && !is_sign) || n + 1 >= sizeof(copy)) return false;
        copy[n++] = *p;
    }
    copy[n] = 0;
    if (n == 0 || !isdigit((unsigned char)copy[n - 1])) return false;
    errno = 0;
    *out = strtoll(copy, NULL, 10);
    return errno == 0;
}

bool stk_parse_bytes(const char *text, int64_t *out)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {
        {"", 1},     {"b", 1},    {"kib", 1024.0}, {"mib", 1048576.0}, {"gib", 1073741824.0}, {"tib", 1099511627776.0},
        {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9},     {"tb", 1e12}};
    const char *end = text;
    double value;
    while (isdigit((unsigned char)*end) || *end == '.')
        end++;
    if (!parse_plain_real(text, end, &value)) return false;
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t n = strlen(units[i].name);
        bool is_it = strlen(end) == n;
        for (size_t k = 0; is_it && k < n; k++)
            is_it = tolower((unsigned char)end[k]) == units[i].name[k];
        if (!is_it) continue;
        value *= units[i].bytes;
        if (value >= 9e18) return false;
        *out = (int64_t)value;
        return true;
    }
    return false;
}

/* --- checks --- */

static stk_status refuse(const stk_yaml_node *node, const stk_key *key)
{
    stk_text text = {0};
    stk_schema_describe(key, &text);
    stk_status status;
    if (stk_yaml_is_null(node))
        status = stk_yaml_fail(node, "'%s' must be %s", key->name, stk_text_get(&text));
    else
        status = stk_yaml_fail(node, "'%s' must be %s, not '%.80s'", key->name, stk_text_get(&text), node->text);
    stk_text_free(&text);
    return status;
}

static bool in_range(const stk_key *key, double value)
{
    if (key->least == 0 && key->most == 0 && !key->above) return true;
    if (key->above ? value <= key->least : value < key->least) return false;
    return key->most <= key->least || value <= key->most;
}

static bool check_share(stk_yaml_node *node, const stk_key *key)
{
    char number[64];
    size_t n = strlen(node->text);
    bool is_percent = n > 1 && node->text[n - 1] == '%';
    if (n >= sizeof(number)) return false;
    memcpy(number, node->text, n + 1);
    if (is_percent) number[n - 1] = 0;
    if (!stk_parse_real(number, &node->real)) return false;
    if (is_percent) node->real /= 100;
    return in_range(key, node->real);
}

static bool check_memory(stk_yaml_node *node)
{
    stk_yaml_node share = *node;
    static const stk_key any_share = {.least = 0, .most = 1, .above = true};
    size_t n = strlen(node->text);
    if (!strcmp(node->text, "auto")) {
        node->integer = -1;
        return true;
    }
    if (n > 1 && node->text[n - 1] == '%') {
        if (!check_share(&share, &any_share)) return false;
        node->real = share.real;
        node->integer = -2;
        return true;
    }
    return stk_parse_bytes(node->text, &node->integer) && node->integer > 0;
}

static bool check_every(stk_yaml_node *node, const stk_key *key)
{
    char number[32];
    size_t n = strspn(node->text, "0123456789_");
    const char *unit = node->text + n;
    bool steps_only = key->words != NULL;
    if (n == 0 || n >= sizeof(number)) return false;
    memcpy(number, node->text, n);
    number[n] = 0;
    while (*unit == ' ')
        unit++;
    if (!stk_parse_int(number, &node->integer) || node->integer < 1) return false;
    if (!*unit)
        node->truth = !steps_only;
    else if (!strcmp(unit, "step") || !strcmp(unit, "steps"))
        node->truth = false;
    else if (!steps_only && (!strcmp(unit, "epoch") || !strcmp(unit, "epochs")))
        node->truth = true;
    else
        return false;
    return true;
}

static stk_status check_word(const stk_yaml_node *node, const stk_key *key)
{
    for (const char *const *word = key->words; *word; word++)
        if (!strcmp(*word, node->text)) return STK_OK;
    const char *nearest = stk_nearest_name(node->text, key->words);
    if (nearest) return stk_yaml_fail(node, "no %s '%.60s' (did you mean '%s'?)", key->name, node->text, nearest);
    return refuse(node, key);
}

static bool check_bool(stk_yaml_node *node)
{
    static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};
    for (int i = 0; i < 3; i++) {
        if (!strcmp(node->text, yes[i])) return node->truth = true;
        if (!strcmp(node->text, no[i])) {
            node->truth = false;
            return true;
        }
    }
    return false;
}

/* True where the text is right; the numbers are set. */
static bool understand(stk_yaml_node *node, const stk_key *key)
{
    switch (key->type) {
    case STK_KEY_BOOL: return check_bool(node);
    case STK_KEY_INT:
        if (!stk_parse_int(node->text, &node->integer)) return false;
        node->real = (double)node->integer;
        return in_range(key, node->real);
    case STK_KEY_REAL: return stk_parse_real(node->text, &node->real) && in_range(key, node->real);
    case STK_KEY_SHARE: return check_share(node, key);
    case STK_KEY_MEMORY: return check_memory(node);
    case STK_KEY_EVERY: return check_every(node, key);
    default: return node->text[0] != 0;
    }
}

/* The one spelling of what was understood. */
static stk_status respell(stk_yaml *yaml, stk_yaml_node *node, const stk_key *key)
{
    char text[64], number[STK_NUMBER_BYTES];
    stk_number_text(node->real, number);
    switch (key->type) {
    case STK_KEY_BOOL: snprintf(text, sizeof(text), "%s", node->truth ? "true" : "false"); break;
    case STK_KEY_INT: snprintf(text, sizeof(text), "%" PRId64, node->integer); break;
    case STK_KEY_REAL:
    case STK_KEY_SHARE: snprintf(text, sizeof(text), "%s", number); break;
    case STK_KEY_MEMORY:
        if (node->integer < 0) return STK_OK;
        snprintf(text, sizeof(text), "%" PRId64, node->integer);
        break;
    case STK_KEY_EVERY:
        snprintf(text, sizeof(text), "%" PRId64 " %s%s", node->integer, node->truth ? "epoch" : "step",
                 node->integer == 1 ? "" : "s");
        break;
    default: return STK_OK;
    }
    if (!strcmp(text, node->text)) return STK_OK;
    char *kept = stk_arena_text(yaml->arena, text);
    if (!kept) return stk_fail_memory(sizeof(text));
    node->text = kept;
    node->quoted = false;
    return STK_OK;
}

stk_status stk_schema_check_scalar(stk_yaml *yaml, stk_yaml_node *node, const stk_key *key)
{
    if (node->kind != STK_YAML_SCALAR) {
        stk_text text = {0};
        stk_schema_describe(key, &text);
        stk_status status = stk_yaml_fail(node, "'%s' must be %s, not a %s", key->name, stk_text_get(&text),
                                          node->kind == STK_YAML_MAP ? "map" : "list");
        stk_text_free(&text);
        return status;
    }
    if (stk_yaml_is_null(node)) return refuse(node, key);
    if (key->type == STK_KEY_WORD) return check_word(node, key);
    if (!understand(node, key)) return refuse(node, key);
    return respell(yaml, node, key);
}

/* --- words for types --- */

static void describe_range(const stk_key *key, const char *what, const char *one, stk_text *out)
{
    char least[STK_NUMBER_BYTES], most[STK_NUMBER_BYTES];
    stk_number_text(key->least, least);
    stk_number_text(key->most, most);
    /* 1e+06 is no way to write a number, but 1e-30 is. */
    if (key->type == STK_KEY_INT || key->least >= 1e5) snprintf(least, sizeof(least), "%.0f", key->least);
    if (key->type == STK_KEY_INT || (key->most >= 1e5 && key->most <= 1e15))
        snprintf(most, sizeof(most), "%.0f", key->most);
    if (key->least == 0 && key->most == 0 && !key->above)
        stk_text_add(out, "%s", one);
    else if (key->most > key->least)
        stk_text_add(out, "%s %s %s %s %s", what, key->above ? "above" : "from", least, key->above ? "up to" : "to",
                     most);
    else
        stk_text_add(out, "%s %s %s", what, key->above ? "above" : "of at least", least);
}

void stk_schema_describe(const stk_key *key, stk_text *out)
{
    switch (key->type) {
    case STK_KEY_BOOL: stk_text_add(out, "true or false"); break;
    case STK_KEY_INT: describe_range(key, "a whole number", "a whole number", out); break;
    case STK_KEY_REAL: describe_range(key, "a number", "a number", out); break;
    case STK_KEY_SHARE: stk_text_add(out, "a share between 0 and 1, like 10%% or 0.1"); break;
    case STK_KEY_TEXT: stk_text_add(out, "a text"); break;
    case STK_KEY_MEMORY: stk_text_add(out, "auto, a size like 8GiB, a share like 60%%, or bytes"); break;
    case STK_KEY_EVERY:
        stk_text_add(out, key->words ? "steps, like 10" : "epochs or steps, like 1 epoch or 50 steps");
        break;
    case STK_KEY_WORD:
        for (const char *const *word = key->words; *word; word++)
            stk_text_add(out, "%s%s", word == key->words ? "" : word[1] ? ", " : " or ", *word);
        break;
    case STK_KEY_MAP: stk_text_add(out, "a map"); break;
    case STK_KEY_CHOICE: stk_text_add(out, "one of the kinds below"); break;
    case STK_KEY_LIST: stk_text_add(out, "a list"); break;
    case STK_KEY_NAMED: stk_text_add(out, "a map of names"); break;
    case STK_KEY_NONE: stk_text_add(out, "nothing"); break;
    }
}
