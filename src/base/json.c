/* See base/json.h. */
#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json_size.h"
#include "base/thread.h"

enum { MOST_TREE_BYTES = 256 << 20 }; /* of a file that is read whole */

static _Thread_local unsigned n_lost;
static json_malloc_t next_malloc;

static void *count_malloc(size_t n)
{
    void *p = next_malloc(n);
    if (!p && n > 0) n_lost++;
    return p;
}

static void begin(void)
{
    json_free_t next_free;
    json_get_alloc_funcs(&next_malloc, &next_free);
    json_set_alloc_funcs(count_malloc, next_free);
}

unsigned stk_json_mark(void)
{
    static stk_once once = STK_ONCE_INIT;
    stk_once_run(&once, begin);
    return n_lost;
}

bool stk_json_lost(unsigned mark)
{
    return n_lost != mark;
}

stk_status stk_json_parse(const void *text, size_t n, size_t flags, json_t **out, json_error_t *error)
{
    unsigned mark = stk_json_mark();
    *out = json_loadb(text, n, flags, error);
    if (stk_json_lost(mark)) {
        json_decref(*out);
        *out = NULL;
        return stk_fail_memory(n);
    }
    return *out ? STK_OK : stk_fail(STK_CORRUPT, "line %d: %s", error->line, error->text);
}

stk_status stk_json_read(const char *path, size_t flags, json_t **out)
{
    uint8_t *text = NULL;
    size_t capacity = 0, n = 0;
    json_error_t error;
    *out = NULL;
    stk_status status = stk_file_read(path, &text, &capacity, &n);
    if (status == STK_OK) status = stk_json_check((stk_span){text, n}, MOST_TREE_BYTES);
    if (status == STK_OK) {
        status = stk_json_parse(text, n, flags, out, &error);
        if (status == STK_CORRUPT) status = stk_fail(status, "'%s' line %d: %s", path, error.line, error.text);
    } else if (status == STK_UNSUPPORTED) {
        status = stk_fail_prefix(status, "'%s': ", path);
    }
    free(text);
    return status;
}

stk_status stk_json_print(json_t *root, unsigned mark, size_t flags, char **out)
{
    *out = root && !stk_json_lost(mark) ? json_dumps(root, flags) : NULL;
    json_decref(root);
    if (stk_json_lost(mark)) {
        free(*out);
        *out = NULL;
    }
    if (*out) return STK_OK;
    return stk_json_lost(mark) ? stk_fail_memory(1024) : stk_fail(STK_INVALID, "a text is no UTF-8");
}
