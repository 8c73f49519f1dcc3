/* See text/pieces.h. */
#include "data/text/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/text/classes.h"

/* No pattern of words joins a single line end to what follows it, but tokens that take spaces may, and a text that gets
 * a space at its start would get several. */
static bool can_cut(const stk_tokenizer *t)
{
    const stk_added *sets[2] = {&t->raw, &t->normal};
    if (t->kind == STK_MODEL_BYTES) return true;
    bool alone = t->kind == STK_MODEL_CHARACTERS && !t->normalizer.n_steps; /* no token looks at its neighbours */
    if (t->prefix_space || (t->split == STK_SPLIT_NONE && !alone)) return false;
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < sets[s]->n; i++) {
            const stk_added_token *token = &sets[s]->token[i];
            if (token->flags & (STK_ADDED_LEFT | STK_ADDED_RIGHT) || memchr(token->text, '\n', token->n)) return false;
        }
    return true;
}

void stk_pieces_open(stk_pieces *p, const stk_shards *files, const stk_tokenizer *t, bool lines, uint64_t piece_bytes)
{
    *p = (stk_pieces){.files = files, .lines = lines, .can_cut = lines || can_cut(t), .piece = piece_bytes};
}

static bool is_space_before(const uint8_t *start, const uint8_t *p)
{
    const uint8_t *at = p;
    size_t n;
    do
        at--;
    while (at > start && p - at < 4 && (*at & 0xc0) == 0x80);
    return stk_class_at(at, p, &n) & STK_SPACE;
}

size_t stk_find_cut(stk_span text, bool lines)
{
    size_t n;
    for (size_t i = text.n; i > 0; i--) {
        if (text.data[i - 1] != '\n') continue;
        if (lines) return i;
        if (i < 2 || i + 4 > text.n) continue; /* so that the character behind it is whole */
        if (!is_space_before(text.data, text.data + i - 1) &&
            !(stk_class_at(text.data + i, text.data + text.n, &n) & (STK_SPACE | STK_MARK)))
            return i;
    }
    return 0;
}

static stk_status read_text(const stk_shard *shard, uint64_t at, size_t n, stk_piece *piece)
{
    if (piece->room < n + 1) {
        uint8_t *p = realloc(piece->text, n + 1);
        if (!p) return stk_fail_memory(n + 1);
        piece->text = p;
        piece->room = n + 1;
    }
    stk_status status = stk_input_read(&shard->file, at, piece->text, n);
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "'%s': ", shard->path);
}

stk_status stk_pieces_next(stk_pieces *p, stk_piece *piece, bool *any)
{
    *any = p->i_file < p->files->n_shards;
    if (!*any) return STK_OK;
    const stk_shard *shard = &p->files->shard[p->i_file];
    uint64_t left = shard->file.n_bytes - p->at, wanted = p->can_cut && p->piece < left ? p->piece : left;
    if (wanted > SIZE_MAX / 2) return stk_fail(STK_UNSUPPORTED, "'%s' is too large", shard->path);
    for (;;) {
        STK_RETURN_IF_ERROR(read_text(shard, p->at, (size_t)wanted, piece));
        piece->n = wanted == left ? (size_t)wanted : stk_find_cut((stk_span){piece->text, (size_t)wanted}, p->lines);
        if (piece->n || wanted == left) break;
        wanted = wanted < left / 2 ? 2 * wanted : left;
    }
    piece->ends = wanted == left;
    bool has_mark = p->at == 0 && piece->n >= 3 && !memcmp(piece->text, "\xef\xbb\xbf", 3);
    piece->path = shard->path;
    piece->at = p->at + (has_mark ? 3 : 0);
    p->at += piece->n;
    if (has_mark) memmove(piece->text, piece->text + 3, piece->n -= 3);
    if (piece->ends) {
        p->i_file++;
        p->at = 0;
    }
    return STK_OK;
}
