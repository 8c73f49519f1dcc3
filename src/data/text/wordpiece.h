/* WordPiece: the longest token that a word begins with, then the longest continuing one, and so on. Devlin et al. 2018
 * (tokenization.py, WordpieceTokenizer). Threads: one while it is built; then any. */
#ifndef STK_DATA_TEXT_WORDPIECE_H
#define STK_DATA_TEXT_WORDPIECE_H

#include "data/text/vocab.h"

typedef struct stk_wordpiece {
    stk_vocab vocab;
    int32_t unknown;
    int64_t most_characters; /* a longer word is unknown */
    /* A tree of all tokens, its edges in a hash table: key (node << 8 | byte) + 1, 0: free. */
    uint64_t *edge;
    uint32_t *child;
    size_t n_slots;
    int32_t *node_id; /* by node; -1: no token ends here */
    uint32_t n_nodes;
    uint32_t inside; /* the node behind the prefix of continuing tokens; 0: no token has it */
} stk_wordpiece;

/* Builds the tree of the vocabulary; prefix as "##". */
stk_status stk_wordpiece_finish(stk_wordpiece *model, const char *prefix);
/* The tokens of one word, at most one for each byte, into ids; returns how many. */
size_t stk_wordpiece_encode(const stk_wordpiece *model, stk_span word, int32_t *ids);
void stk_wordpiece_free(stk_wordpiece *model);

#endif
