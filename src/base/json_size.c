/* See base/json_size.h. */
#include "base/json_size.h"

#include "base/error.h"

/* What one of each takes with what malloc adds: the values themselves, tables with half of their places empty, and the
 * table before, which is still there while one grows. */
enum { OBJECT_BYTES = 300, ARRAY_BYTES = 180, MEMBER_BYTES = 140, TEXT_BYTES = 80, ELEMENT_BYTES = 60 };

/* The first byte behind the text that begins at i, past its quote. */
static size_t skip_text(stk_span text, size_t i)
{
    for (; i < text.n && text.data[i] != '"'; i++)
        i += text.data[i] == '\\';
    return i < text.n ? i : text.n;
}

size_t stk_json_tree_bytes(stk_span text)
{
    size_t bytes = ARRAY_BYTES, end;
    for (size_t i = 0; i < text.n; i++) {
        switch (text.data[i]) {
        case '{': bytes += OBJECT_BYTES; break;
        case '[': bytes += ARRAY_BYTES; break;
        case ':': bytes += MEMBER_BYTES; break;
        case ',': bytes += ELEMENT_BYTES; break;
        case '"':
            end = skip_text(text, i + 1);
            bytes += TEXT_BYTES + (end - i);
            i = end;
            break;
        default: break;
        }
    }
    return bytes;
}

stk_status stk_json_check(stk_span text, size_t most_bytes)
{
    size_t bytes = stk_json_tree_bytes(text);
    if (bytes <= most_bytes) return STK_OK;
    return stk_fail(STK_UNSUPPORTED,
                    "its %zu bytes of JSON would take about %zu MiB of memory as a tree, and may take %zu", text.n,
                    (bytes >> 20) + 1, most_bytes >> 20);
}
