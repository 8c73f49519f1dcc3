/* See settings/yaml.h. libyaml's events become nodes; marks become line and column. */
#include "settings/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/error.h"
#include "base/file.h"
#include "base/neighbour.h"

typedef struct build {
    stk_yaml *yaml;
    yaml_parser_t parser;
    stk_span text;  /* all of it; borrowed */
    bool has_lines; /* false for --set, whose origin says all */
    stk_yaml_node *open[STK_YAML_MOST_DEPTH], *last[STK_YAML_MOST_DEPTH];
    int depth;
    const char *key; /* of the node to come, in a map */
    yaml_mark_t key_mark;
} build;

/* --- messages --- */

static stk_status fail_at(const char *origin, int line, int column, const char *format, va_list args)
{
    char text[512];
    vsnprintf(text, sizeof(text), format, args);
    if (line > 0) return stk_fail(STK_INVALID, "%s:%d:%d: %s", origin, line, column, text);
    return stk_fail(STK_INVALID, "%s: %s", origin, text);
}

stk_status stk_yaml_fail(const stk_yaml_node *node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    stk_status status = fail_at(node->origin, node->line, node->column, format, args);
    va_end(args);
    return status;
}

stk_status stk_yaml_fail_key(const stk_yaml_node *node, const char *format, ...)
{
    va_list args;
    bool has_key = node->key_line > 0;
    va_start(args, format);
    stk_status status = fail_at(node->origin, has_key ? node->key_line : node->line,
                                has_key ? node->key_column : node->column, format, args);
    va_end(args);
    return status;
}

__attribute__((format(printf, 3, 4))) static stk_status fail_mark(const build *b, yaml_mark_t mark, const char *format,
                                                                  ...)
{
    va_list args;
    va_start(args, format);
    stk_status status =
        fail_at(b->yaml->origin, b->has_lines ? (int)mark.line + 1 : 0, (int)mark.column + 1, format, args);
    va_end(args);
    return status;
}

/* Moves the mark to the first tab in its line's indentation, where there is one. */
static bool find_tab(stk_span text, yaml_mark_t *mark)
{
    const uint8_t *line = text.data, *end = text.data + text.n;
    for (size_t i = 0; i < mark->line && line; i++) {
        line = memchr(line, '\n', (size_t)(end - line));
        if (line) line++;
    }
    const uint8_t *at = line;
    while (at && at < end && *at == ' ')
        at++;
    if (!at || at == end || *at != '\t') return false;
    mark->column = (size_t)(at - line);
    return true;
}

static stk_status fail_parser(const build *b)
{
    const yaml_parser_t *p = &b->parser;
    if (p->error == YAML_MEMORY_ERROR) return stk_fail_memory(0);
    if (p->error == YAML_READER_ERROR)
        return stk_fail(STK_INVALID, "%s: not a text in UTF-8 (byte %zu: %s)", b->yaml->origin, p->problem_offset,
                        p->problem ? p->problem : "bad character");
    yaml_mark_t tab = p->problem_mark;
    /* Between brackets one may stand there at times, and something else be wrong. */
    bool in_block = p->error == YAML_SCANNER_ERROR && p->flow_level == 0;
    if (find_tab(b->text, &tab) && (in_block || tab.column == p->problem_mark.column))
        return fail_mark(b, tab, "a tab, and YAML indents by spaces alone");
    return fail_mark(b, p->problem_mark, "%s%s%s", p->context ? p->context : "", p->context ? ": " : "",
                     p->problem ? p->problem : "not YAML");
}

/* --- building --- */

static stk_yaml_node *find_child(const stk_yaml_node *node, const char *key)
{
    for (stk_yaml_node *child = node->child; child; child = child->next)
        if (child->key && !strcmp(child->key, key)) return child;
    return NULL;
}

static stk_status add_node(build *b, stk_yaml_kind kind, yaml_mark_t mark, const char *text, bool quoted)
{
    stk_yaml *yaml = b->yaml;
    stk_yaml_node *parent = b->depth > 0 ? b->open[b->depth - 1] : NULL;
    if (++yaml->n_nodes > STK_YAML_MOST_NODES)
        return fail_mark(b, mark, "more than %d values", (int)STK_YAML_MOST_NODES);
    stk_yaml_node *node = stk_arena_alloc(yaml->arena, sizeof(*node));
    if (!node) return stk_fail_memory(sizeof(*node));
    *node = (stk_yaml_node){.kind = kind, .origin = yaml->origin, .text = text, .quoted = quoted, .key = b->key};
    if (b->has_lines) {
        node->line = (int)mark.line + 1;
        node->column = (int)mark.column + 1;
        if (b->key) {
            node->key_line = (int)b->key_mark.line + 1;
            node->key_column = (int)b->key_mark.column + 1;
        }
    }
    b->key = NULL;
    if (!parent) {
        yaml->root = node;
    } else {
        *(parent->child ? &b->last[b->depth - 1]->next : &parent->child) = node;
        b->last[b->depth - 1] = node;
        parent->n_children++;
    }
    if (kind == STK_YAML_SCALAR) return STK_OK;
    if (b->depth == STK_YAML_MOST_DEPTH)
        return fail_mark(b, mark, "nested more than %d deep", (int)STK_YAML_MOST_DEPTH);
    b->open[b->depth] = node;
    b->last[b->depth++] = NULL;
    return STK_OK;
}

static stk_status add_key(build *b, yaml_mark_t mark, const char *key)
{
    const stk_yaml_node *map = b->open[b->depth - 1], *first = find_child(map, key);
    /* YAML itself wants keys of at most 1024 characters, which quoting may need four times over. */
    if (strlen(key) > 200) return fail_mark(b, mark, "a key of %zu bytes; 200 are the most", strlen(key));
    if (first && b->has_lines)
        return fail_mark(b, mark, "key '%.60s' is given twice, first on line %d", key, first->key_line);
    if (first) return fail_mark(b, mark, "key '%.60s' is given twice", key);
    b->key = key;
    b->key_mark = mark;
    return STK_OK;
}

static stk_status take_scalar(build *b, const yaml_event_t *event, bool wants_key)
{
    size_t n = event->data.scalar.length;
    if (memchr(event->data.scalar.value, 0, n)) return fail_mark(b, event->start_mark, "a zero byte in a text");
    char *text = stk_arena_text(b->yaml->arena, (const char *)event->data.scalar.value);
    if (!text) return stk_fail_memory(n);
    if (wants_key) return add_key(b, event->start_mark, text);
    return add_node(b, STK_YAML_SCALAR, event->start_mark, text, event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE);
}

static stk_status refuse_decoration(const build *b, yaml_mark_t mark, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor) return fail_mark(b, mark, "anchors (&%.40s) are not supported in recipes", (const char *)anchor);
    if (tag) return fail_mark(b, mark, "tags (%.40s) are not supported in recipes", (const char *)tag);
    return STK_OK;
}

/* One event becomes part of the tree. */
static stk_status take_event(build *b, const yaml_event_t *event, bool *out_end)
{
    yaml_mark_t mark = event->start_mark;
    bool in_map = b->depth > 0 && b->open[b->depth - 1]->kind == STK_YAML_MAP, wants_key = in_map && !b->key;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->yaml->root) return fail_mark(b, mark, "more than one document; a recipe is one");
        return STK_OK;
    case YAML_ALIAS_EVENT:
        return fail_mark(b, mark, "aliases (*%.40s) are not supported in recipes",
                         (const char *)event->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        STK_RETURN_IF_ERROR(refuse_decoration(b, mark, event->data.scalar.anchor, event->data.scalar.tag));
        return take_scalar(b, event, wants_key);
    case YAML_SEQUENCE_START_EVENT:
        STK_RETURN_IF_ERROR(
            refuse_decoration(b, mark, event->data.sequence_start.anchor, event->data.sequence_start.tag));
        if (wants_key) return fail_mark(b, mark, "a list cannot be a key");
        return add_node(b, STK_YAML_SEQUENCE, mark, NULL, false);
    case YAML_MAPPING_START_EVENT:
        STK_RETURN_IF_ERROR(
            refuse_decoration(b, mark, event->data.mapping_start.anchor, event->data.mapping_start.tag));
        if (wants_key) return fail_mark(b, mark, "a map cannot be a key");
        return add_node(b, STK_YAML_MAP, mark, NULL, false);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: b->depth--; return STK_OK;
    case YAML_STREAM_END_EVENT: *out_end = true; return STK_OK;
    default: return STK_OK;
    }
}

static stk_status build_tree(build *b)
{
    bool at_end = false;
    while (!at_end) {
        yaml_event_t event;
        if (!yaml_parser_parse(&b->parser, &event)) return fail_parser(b);
        stk_status status = take_event(b, &event, &at_end);
        yaml_event_delete(&event);
        STK_RETURN_IF_ERROR(status);
    }
    if (!b->yaml->root) return stk_fail(STK_INVALID, "%s: empty", b->yaml->origin);
    return STK_OK;
}

static stk_status parse(const char *origin, const void *data, size_t n, bool has_lines, stk_yaml **out)
{
    stk_status status;
    build *b = calloc(1, sizeof(*b));
    stk_yaml *yaml = calloc(1, sizeof(*yaml));
    bool has_parser = false;
    *out = NULL;
    if (!b || !yaml || !(yaml->arena = stk_arena_new())) STK_TRY(stk_fail_memory(sizeof(*b)));
    if (!(yaml->origin = stk_arena_text(yaml->arena, origin))) STK_TRY(stk_fail_memory(strlen(origin)));
    if (n > STK_YAML_MOST_BYTES)
        STK_TRY(stk_fail(STK_INVALID, "%s: %zu bytes are too many for a recipe (at most %d)", origin, n,
                         (int)STK_YAML_MOST_BYTES));
    b->yaml = yaml;
    b->text = (stk_span){data, n};
    b->has_lines = has_lines;
    if (!(has_parser = yaml_parser_initialize(&b->parser))) STK_TRY(stk_fail_memory(sizeof(b->parser)));
    yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b->parser, n ? data : (const void *)"", n);
    STK_TRY(build_tree(b));
    *out = yaml;
    yaml = NULL;
done:
    if (has_parser) yaml_parser_delete(&b->parser);
    free(b);
    stk_yaml_free(yaml);
    return status;
}

stk_status stk_yaml_parse(const char *origin, const void *data, size_t n, stk_yaml **out)
{
    return parse(origin, data, n, true, out);
}

/* 'digits.yaml' for 'digits', and for 'digit.yaml'. */
static stk_status fail_near(const char *path)
{
    char hint[STK_PATH_HINT], text[STK_PATH_HINT];
    snprintf(text, sizeof(text), "%s.yaml", path);
    if (stk_path_exists(text))
        snprintf(hint, sizeof(hint), " (did you mean '%.400s'?)", text);
    else
        stk_path_hint(path, hint);
    snprintf(text, sizeof(text), "%s", stk_error_text());
    return stk_fail(STK_NOT_FOUND, "%s%s", text, hint);
}

stk_status stk_yaml_read(const char *path, stk_yaml **out)
{
    uint8_t *data = NULL;
    size_t capacity = 0, n = 0;
    *out = NULL;
    stk_status status = stk_file_read_small(path, STK_YAML_MOST_BYTES, &data, &capacity, &n);
    if (status == STK_OK) status = stk_yaml_parse(path, data, n, out);
    if (status == STK_NOT_FOUND) status = fail_near(path);
    free(data);
    return status;
}

void stk_yaml_free(stk_yaml *yaml)
{
    if (!yaml) return;
    stk_arena_free(yaml->arena);
    free(yaml);
}

/* --- reading and changing --- */

stk_yaml_node *stk_yaml_get(const stk_yaml_node *node, const char *key)
{
    return node && node->kind == STK_YAML_MAP ? find_child(node, key) : NULL;
}

int64_t stk_yaml_int(const stk_yaml_node *node, const char *key, int64_t default_value)
{
    const stk_yaml_node *child = stk_yaml_get(node, key);
    return child ? child->integer : default_value;
}

double stk_yaml_real(const stk_yaml_node *node, const char *key, double default_value)
{
    const stk_yaml_node *child = stk_yaml_get(node, key);
    return child ? child->real : default_value;
}

bool stk_yaml_bool(const stk_yaml_node *node, const char *key)
{
    const stk_yaml_node *child = stk_yaml_get(node, key);
    return child && child->truth;
}

const char *stk_yaml_text(const stk_yaml_node *node, const char *key)
{
    const stk_yaml_node *child = stk_yaml_get(node, key);
    return child ? child->text : NULL;
}

bool stk_yaml_is(const stk_yaml_node *node, const char *key, const char *word)
{
    const stk_yaml_node *child = stk_yaml_get(node, key);
    return child && child->text && !strcmp(child->text, word);
}

static void append(stk_yaml_node *parent, stk_yaml_node *child)
{
    stk_yaml_node **link = &parent->child;
    while (*link)
        link = &(*link)->next;
    *link = child;
    child->next = NULL;
    parent->n_children++;
}

stk_yaml_node *stk_yaml_add(stk_yaml *yaml, stk_yaml_node *parent, const char *key, const char *text)
{
    stk_yaml_node *node = stk_arena_alloc(yaml->arena, sizeof(*node));
    if (!node) return NULL;
    *node = (stk_yaml_node){.kind = text ? STK_YAML_SCALAR : STK_YAML_MAP,
                            .origin = parent->origin,
                            .line = parent->line,
                            .column = parent->column};
    if (key && !(node->key = stk_arena_text(yaml->arena, key))) return NULL;
    if (text && !(node->text = stk_arena_text(yaml->arena, text))) return NULL;
    append(parent, node);
    return node;
}

void stk_yaml_remove(stk_yaml_node *parent, const stk_yaml_node *child)
{
    for (stk_yaml_node **link = &parent->child; *link; link = &(*link)->next) {
        if (*link != child) continue;
        *link = child->next;
        parent->n_children--;
        return;
    }
}

bool stk_yaml_is_null(const stk_yaml_node *node)
{
    return node->kind == STK_YAML_SCALAR && !node->quoted &&
           (!node->text[0] || !strcmp(node->text, "~") || !strcmp(node->text, "null"));
}

/* Copies a tree into another document's arena, with the origin given. */
static stk_yaml_node *copy_tree(stk_yaml *yaml, const stk_yaml_node *node, const char *origin)
{
    stk_yaml_node *copy = stk_arena_alloc(yaml->arena, sizeof(*copy)), **link;
    if (!copy) return NULL;
    *copy = *node;
    copy->origin = origin;
    copy->next = copy->child = NULL;
    if (node->key && !(copy->key = stk_arena_text(yaml->arena, node->key))) return NULL;
    if (node->text && !(copy->text = stk_arena_text(yaml->arena, node->text))) return NULL;
    link = &copy->child;
    for (const stk_yaml_node *child = node->child; child; child = child->next) {
        if (!(*link = copy_tree(yaml, child, origin))) return NULL;
        link = &(*link)->next;
    }
    return copy;
}

stk_status stk_yaml_add_parsed(stk_yaml *yaml, stk_yaml_node *parent, const char *key, const char *text)
{
    stk_yaml *value = NULL;
    stk_yaml_node *node = NULL;
    STK_RETURN_IF_ERROR(parse(parent->origin, text, strlen(text), false, &value));
    node = copy_tree(yaml, value->root, parent->origin);
    stk_yaml_free(value);
    if (!node || !(node->key = stk_arena_text(yaml->arena, key))) return stk_fail_memory(strlen(text));
    node->line = parent->line;
    node->column = parent->column;
    append(parent, node);
    return STK_OK;
}

/* The part of a path: a key of a map, made where it is missing, or a number in a sequence. */
static stk_status step_into(stk_yaml *yaml, stk_yaml_node *parent, const char *origin, const char *part,
                            stk_yaml_node **out)
{
    if (!part[0]) return stk_fail(STK_INVALID, "%s: an empty key", origin);
    if (parent->kind == STK_YAML_SEQUENCE) {
        char *end;
        long i = strtol(part, &end, 10);
        if (*end || i < 0 || i >= parent->n_children)
            return stk_fail(STK_INVALID, "%s: '%.60s' is not a number from 0 to %d of the list", origin, part,
                            parent->n_children - 1);
        *out = parent->child;
        while (i-- > 0)
            *out = (*out)->next;
        return STK_OK;
    }
    if ((*out = find_child(parent, part))) return STK_OK;
    if (++yaml->n_nodes > STK_YAML_MOST_NODES)
        return stk_fail(STK_INVALID, "%s: more than %d values", origin, (int)STK_YAML_MOST_NODES);
    if (!(*out = stk_yaml_add(yaml, parent, part, NULL))) return stk_fail_memory(strlen(part));
    (*out)->origin = origin;
    (*out)->line = 0;
    return STK_OK;
}

/* Puts value in node's place, which keeps its key and its place in the parent. */
static stk_status replace(stk_yaml *yaml, stk_yaml_node *node, const stk_yaml_node *value, const char *origin)
{
    stk_yaml_node *copy = copy_tree(yaml, value, origin), *next = node->next;
    const char *key = node->key;
    if (!copy) return stk_fail_memory(sizeof(*copy));
    *node = *copy;
    node->key = key;
    node->next = next;
    node->origin = origin;
    return STK_OK;
}

stk_status stk_yaml_set(stk_yaml *yaml, const char *assignment)
{
    stk_status status;
    stk_yaml *value = NULL;
    stk_yaml_node *node = yaml->root;
    const char *equals = strchr(assignment, '=');
    size_t n = equals ? (size_t)(equals - assignment) : strlen(assignment);
    if (!equals || n == 0 || n > 400) return stk_fail(STK_INVALID, "--set %.100s: give it as key=value", assignment);
    char origin[420], path[404];
    snprintf(origin, sizeof(origin), "--set %.*s", (int)n, assignment);
    memcpy(path, assignment, n);
    path[n] = 0;
    char *kept = stk_arena_text(yaml->arena, origin);
    if (!kept) return stk_fail_memory(n);
    STK_TRY(parse(origin, equals + 1, strlen(equals + 1), false, &value));
    int depth = 0;
    for (char *part = path; part; depth++) {
        char *dot = strchr(part, '.');
        if (dot) *dot = 0;
        /* "schedule: cosine" is short for {cosine: {}}, so it may become that; so may a key without a value. */
        if (node->kind == STK_YAML_SCALAR && (stk_yaml_is_null(node) || !strcmp(node->text, part)))
            node->kind = STK_YAML_MAP;
        int n_whole = part > path ? (int)(part - path) - 1 : 0;
        if (node->kind == STK_YAML_SCALAR)
            STK_TRY(stk_fail(STK_INVALID,
                             "%s: '%.*s' is '%.60s', which has no keys; where that is short for a map, give all of it: "
                             "--set '%.*s={...}'",
                             origin, n_whole, assignment, node->text, n_whole, assignment));
        if (depth >= STK_YAML_MOST_DEPTH) STK_TRY(stk_fail(STK_INVALID, "%s: too deep", origin));
        STK_TRY(step_into(yaml, node, kept, part, &node));
        part = dot ? dot + 1 : NULL;
    }
    STK_TRY(replace(yaml, node, value->root, kept));
done:
    stk_yaml_free(value);
    return status;
}
