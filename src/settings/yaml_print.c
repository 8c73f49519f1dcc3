/* Trees as YAML text: blocks for maps, flow style for what is short. See settings/yaml.h. */
#include <ctype.h>
#include <string.h>

#include "base/secret.h"
#include "settings/yaml.h"

/* True where a text may stand without quotes and is read as the same text. Quotes too many do no harm. */
static bool is_plain(const char *text)
{
    if (!text[0] || text[0] == '-' || text[0] == '.') {
        /* Negative numbers are plain; other texts with such a start are rare enough to be quoted. */
        if (text[0] == 0 || !strchr("0123456789.", text[1]) || !text[1]) return false;
    } else if (!isalnum((unsigned char)text[0]) && text[0] != '/' && text[0] != '_') {
        return false;
    }
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-/+%", *p) && !(*p == ' ' && p[1] && p[1] != ' ')) return false;
    return true;
}

static void print_quoted(const char *text, bool quoted, stk_text *out)
{
    if (is_plain(text) && !quoted) {
        stk_text_add(out, "%s", text);
        return;
    }
    stk_text_add(out, "\"");
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            stk_text_add(out, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            stk_text_add(out, "\\x%02X", *p);
        else if (*p == 0xC2 && p[1] >= 0x80 && p[1] <= 0x9f) /* a control character of Latin-1 */
            stk_text_add(out, "\\x%02X", *++p);
        else if (*p == 0xE2 && p[1] == 0x80 && (p[2] == 0xA8 || p[2] == 0xA9)) { /* line and paragraph separators */
            stk_text_add(out, "\\u20%02X", p[2] - 0x80);
            p += 2;
        } else if (*p == 0xEF && p[1] == 0xBB && p[2] == 0xBF) { /* a byte order mark */
            stk_text_add(out, "\\uFEFF");
            p += 2;
        } else
            stk_text_add_bytes(out, p, 1);
    }
    stk_text_add(out, "\"");
}

/* What is printed is kept in runs and shown, so secrets of addresses are hidden. */
static void print_text(const char *text, bool quoted, stk_text *out)
{
    stk_text hidden = {0};
    bool is_address = strstr(text, "://") && stk_text_add_secrets(&hidden, text, STK_HIDDEN, false) > 0;
    print_quoted(is_address ? stk_text_get(&hidden) : text, quoted, out);
    out->failed = out->failed || hidden.failed;
    stk_text_free(&hidden);
}

void stk_yaml_print_flow(const stk_yaml_node *node, stk_text *out)
{
    if (node->kind == STK_YAML_SCALAR) {
        if (stk_yaml_is_null(node))
            stk_text_add(out, "null");
        else
            print_text(node->text, node->quoted, out);
        return;
    }
    bool is_map = node->kind == STK_YAML_MAP;
    stk_text_add(out, is_map ? "{" : "[");
    for (const stk_yaml_node *child = node->child; child; child = child->next) {
        if (is_map) {
            print_text(child->key, false, out);
            stk_text_add(out, ": ");
        }
        stk_yaml_print_flow(child, out);
        if (child->next) stk_text_add(out, ", ");
    }
    stk_text_add(out, is_map ? "}" : "]");
}

/* True where a node fits a line: no maps inside maps, and not many things. Where memory is short out fails. */
static bool is_short(const stk_yaml_node *node, stk_text *out)
{
    if (node->kind == STK_YAML_SCALAR || node->n_children == 0) return true;
    stk_text text = {0};
    stk_yaml_print_flow(node, &text);
    bool fits = text.n <= 80;
    if (text.failed) out->failed = true;
    stk_text_free(&text);
    return fits;
}

static void print_block(const stk_yaml_node *node, int indent, stk_text *out)
{
    for (const stk_yaml_node *child = node->child; child; child = child->next) {
        stk_text_add(out, "%*s", indent, "");
        if (node->kind == STK_YAML_MAP) {
            print_text(child->key, false, out);
            stk_text_add(out, ":");
        } else {
            stk_text_add(out, "-");
        }
        /* A long list inside a list would need a rule of its own; flow style always works. */
        bool is_flow = is_short(child, out) || node->kind == STK_YAML_SEQUENCE;
        stk_text_add(out, is_flow ? " " : "\n");
        if (is_flow) {
            stk_yaml_print_flow(child, out);
            stk_text_add(out, "\n");
        } else {
            print_block(child, indent + 2, out);
        }
    }
}

void stk_yaml_print(const stk_yaml_node *node, stk_text *out)
{
    if (node->kind != STK_YAML_SCALAR && node->n_children > 0) {
        print_block(node, 0, out);
        return;
    }
    stk_yaml_print_flow(node, out);
    stk_text_add(out, "\n");
}
