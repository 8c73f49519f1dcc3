/* A node's attributes: none is passed over. What the list of ops does not name, or allows other values of, is refused
 * with its name and value, before the node is built.
 */
#include <stdio.h>
#include <string.h>

#include "onnx/model.h"

/* One entry "name:type=value|value" of a list; values: after the '=', or NULL. */
typedef struct honoured {
    const char *name, *type, *values;
    int n_name, n_type, n_values;
} honoured;

/* The next entry of *list; false at its end. */
static bool next_honoured(const char **list, honoured *out)
{
    const char *at = *list + strspn(*list, " ");
    size_t n = strcspn(at, " ");
    if (!n) return false;
    *list = at + n;
    out->name = at;
    out->n_name = (int)strcspn(at, ":");
    out->type = at + out->n_name + 1;
    out->n_type = (int)strcspn(out->type, "= ");
    out->values = out->type[out->n_type] == '=' ? out->type + out->n_type + 1 : NULL;
    out->n_values = out->values ? (int)(at + n - out->values) : 0;
    return true;
}

static const char *type_name(const Onnx__AttributeProto *a)
{
    switch (a->type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT: return "f";
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT: return "i";
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING: return "s";
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR: return "t";
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS: return "fs";
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS: return "is";
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS: return "ss";
    default: return "?";
    }
}

/* The oldest models do not name the type: what is there tells it. */
static bool has_type(const Onnx__AttributeProto *a, const honoured *h)
{
    char wanted[4] = "";
    snprintf(wanted, sizeof(wanted), "%.*s", h->n_type, h->type);
    if (a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED)
        return !strcmp(type_name(a), wanted);
    if (a->has_f) return !strcmp(wanted, "f");
    if (a->has_i) return !strcmp(wanted, "i");
    if (a->has_s) return !strcmp(wanted, "s");
    if (a->t) return !strcmp(wanted, "t");
    if (a->n_floats) return !strcmp(wanted, "fs");
    if (a->n_strings) return !strcmp(wanted, "ss");
    return !a->n_strings && !a->n_tensors && !a->g && strcmp(wanted, "is") == 0;
}

/* Of integers and texts. */
static void print_value(const Onnx__AttributeProto *a, bool is_text, char out[100])
{
    if (is_text)
        snprintf(out, 100, "%.*s", a->s.len > 90 ? 90 : (int)a->s.len, (const char *)a->s.data);
    else
        snprintf(out, 100, "%lld", (long long)a->i);
}

static bool is_allowed(const honoured *h, const char *value)
{
    size_t n = strlen(value);
    for (const char *at = h->values, *end = at + h->n_values; at < end;) {
        size_t n_here = strcspn(at, "| ");
        if (n_here == n && !memcmp(at, value, n)) return true;
        at += n_here + 1;
    }
    return false;
}

/* "a|b|c" as "a, b or c". */
static void print_allowed(const honoured *h, char out[200])
{
    size_t n = 0;
    const char *end = h->values + h->n_values;
    for (const char *p = h->values; p < end && n < 190; p++) {
        bool is_last = *p == '|' && !memchr(p + 1, '|', (size_t)(end - p - 1));
        if (*p != '|')
            out[n++] = *p;
        else
            n += (size_t)snprintf(out + n, 200 - n, is_last ? " or " : ", ");
    }
    out[n] = 0;
}

static stk_status check(const stk_build *b, const Onnx__AttributeProto *a, const char *list)
{
    honoured h;
    char value[100], allowed[200];
    if (!a->name) return stk_fail(STK_CORRUPT, "an attribute has no name");
    /* Before opset 6 it said which memory may be used again. */
    if (b->opset < 6 && !strcmp(a->name, "consumed_inputs")) return STK_OK;
    while (next_honoured(&list, &h)) {
        if (strlen(a->name) != (size_t)h.n_name || memcmp(a->name, h.name, (size_t)h.n_name) != 0) continue;
        if (!has_type(a, &h))
            return stk_fail(STK_INVALID, "its attribute '%s' has the wrong type: %s, and must be %.*s", a->name,
                            type_name(a), h.n_type, h.type);
        if (!h.values) return STK_OK;
        print_value(a, h.type[0] == 's', value);
        if (is_allowed(&h, value)) return STK_OK;
        print_allowed(&h, allowed);
        return stk_fail(STK_UNSUPPORTED, "its attribute '%s' is %s, and can be %s here", a->name, value, allowed);
    }
    return stk_fail(STK_UNSUPPORTED, "its attribute '%.80s' is not known here", a->name);
}

stk_status stk_onnx_check_attributes(const stk_build *b, const char *list)
{
    for (size_t i = 0; i < b->node->n_attribute; i++)
        STK_RETURN_IF_ERROR(check(b, b->node->attribute[i], list));
    return STK_OK;
}

/* --- reading them --- */

const Onnx__AttributeProto *stk_onnx_attribute(const stk_build *b, const char *name)
{
    for (size_t i = 0; i < b->node->n_attribute; i++)
        if (b->node->attribute[i]->name && !strcmp(b->node->attribute[i]->name, name)) return b->node->attribute[i];
    return NULL;
}

/* One that is there without a number is 0: that is how some writers leave out a 0. */
int64_t stk_onnx_attribute_int(const stk_build *b, const char *name, int64_t default_value)
{
    const Onnx__AttributeProto *a = stk_onnx_attribute(b, name);
    return a ? a->i : default_value;
}

double stk_onnx_attribute_float(const stk_build *b, const char *name, double default_value)
{
    const Onnx__AttributeProto *a = stk_onnx_attribute(b, name);
    return a ? (double)a->f : default_value;
}

bool stk_onnx_attribute_is(const stk_build *b, const char *name, const char *text)
{
    const Onnx__AttributeProto *a = stk_onnx_attribute(b, name);
    return a && a->has_s && a->s.len == strlen(text) && !memcmp(a->s.data, text, a->s.len);
}

const int64_t *stk_onnx_attribute_ints(const stk_build *b, const char *name, int *n)
{
    const Onnx__AttributeProto *a = stk_onnx_attribute(b, name);
    *n = a ? (int)a->n_ints : 0;
    return a ? a->ints : NULL;
}
