/* See text/characters.h. */
#include "data/text/characters.h"

#include "data/text/utf8.h"

void stk_characters_finish(stk_characters *model)
{
    for (int c = 0; c < 128; c++)
        model->ascii[c] = stk_vocab_find(&model->vocab, &(uint8_t){(uint8_t)c}, 1);
}

int32_t stk_characters_next(const stk_characters *model, const uint8_t **at, const uint8_t *end)
{
    const uint8_t *p = *at;
    size_t n;
    uint32_t c = stk_utf8_next(p, end, &n);
    *at = p + n;
    int32_t id = c < 128 ? model->ascii[c] : c == STK_NO_CHARACTER ? -1 : stk_vocab_find(&model->vocab, p, n);
    return id < 0 ? model->unknown : id;
}

void stk_characters_free(stk_characters *model)
{
    stk_vocab_free(&model->vocab);
}
