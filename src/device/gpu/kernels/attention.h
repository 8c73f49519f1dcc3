/* What attention.dev and attention_grad.dev share, behind fragments.h. Heads go through the group's memory in chunks of
 * columns; queries and keys in tiles. Settings:
 *
 *   T, HALF        as fragments.h has them
 *   DC             columns of a chunk, a multiple of 16: zeros stand behind the last of a head
 *   STAYS          1: a head is one chunk, and a group's own rows stay in its memory
 *   N_OUT          chunks of its result that a group makes at a time: slice y has those from y * N_OUT on
 *   TILE_ROWS, TILE_COLUMNS    of the scores
 *   PARTS          16s of rows that a warp has
 */
#define PIECE       (HALF ? 8 : 4) /* elements of 16 bytes */
#define PAD         PIECE          /* so that rows begin in other banks */
#define ROW         (DC + PAD)
#define P_ROW       (TILE_COLUMNS + PAD)
#define ITEMS       (TILE_ROWS / (16 * PARTS) * 32)
#define CALL        NAME(attention_call)
#define SIDE        NAME(attention_side)
#define SCORE_TILES (TILE_COLUMNS / 8)
#define OUT_TILES   (DC / 8)

typedef struct CALL {
    i64 stream;     /* of dropout, mixed */
    int t, s, h, d; /* queries, keys, heads, columns of one */
    int causal;     /* query i sees keys 0 .. i */
    int has_mask;
    int limit; /* of dropout; 0: none */
    float scale;
    float kept;       /* what dropout makes of 1; 0 where it keeps nothing */
    int has_position; /* query i sees keys 0 .. position + i */
    int n_chunks;     /* of a head */
} CALL;

/* Rows of one head of q, k, v or dy. */
typedef struct SIDE {
    GLOBAL const STORED(T) * from;
    GLOBAL const uchar *mask; /* 0: all count; a row that does not is read as zeros */
    int first, n, d;          /* the tile's first row; rows that there are; columns */
    index_t step;             /* from one to the next */
} SIDE;

FUNCTION SIDE NAME(side_of)(const CALL *c, GLOBAL const STORED(T) * x, index_t sample, int n, int first, int head)
{
    SIDE side;
    side.step = (index_t)c->h * c->d;
    side.from = x + sample * n * side.step + (index_t)head * c->d;
    side.mask = 0;
    side.first = first;
    side.n = n;
    side.d = c->d;
    return side;
}

/* n_rows rows of a chunk of columns, [n_rows,ROW], 16 bytes at a time. */
FUNCTION void NAME(load_chunk)(LOCAL STORED(T) * to, SIDE side, int n_rows, int chunk)
{
    for (int i = ITEM_X; i < n_rows * (DC / PIECE); i += ITEMS) {
        const int row = i / (DC / PIECE), column = i % (DC / PIECE) * PIECE, e = chunk * DC + column;
        const int at = side.first + row;
        const int is_there = at < side.n && e < side.d && (!side.mask || side.mask[at]);
        GLOBAL const STORED(T) *from = side.from + (is_there ? at * side.step + e : 0);
        LOCAL STORED(T) *p = to + row * ROW + column;
        if (side.d % PIECE == 0) {
            uint4 piece = *(GLOBAL const uint4 *)from;
            piece.x = is_there ? piece.x : 0;
            piece.y = is_there ? piece.y : 0;
            piece.z = is_there ? piece.z : 0;
            piece.w = is_there ? piece.w : 0;
            *(LOCAL uint4 *)p = piece;
        } else {
            for (int k = 0; k < PIECE; k++)
                p[k] = is_there && e + k < side.d ? from[k] : 0;
        }
    }
}

/* Which of the n keys from `first` on there are. */
FUNCTION void NAME(find_seen)(LOCAL uchar *seen, GLOBAL const uchar *mask, int first, int n, int n_all)
{
    for (int i = ITEM_X; i < n; i += ITEMS)
        seen[i] = first + i < n_all && (!mask || mask[first + i]);
}

/* Dropout's bits for n_t queries and n_s keys, a multiple of 8 as `s` is: keep[n_t,n_s/8], by graph/dropout.h. */
FUNCTION void NAME(draw_kept)(LOCAL uchar *keep, const CALL *c, u64 key, u64 row, int head, int t, int n_t, int s,
                              int n_s)
{
    const i64 blocks = (c->s + 7) / 8;
    for (int i = ITEM_X; i < n_t * (n_s / 8); i += ITEMS) {
        const i64 at = ((i64)head * c->t + t + i / (n_s / 8)) * blocks + s / 8 + i % (n_s / 8);
        const philox_block block = philox(key, row, (u64)at);
        int bits = 0;
        for (int j = 0; j < 8; j++)
            bits |= ((int)(block.v[j / 2] >> 16 * (j % 2) & 0xffffu) >= c->limit) << j;
        keep[i] = (uchar)bits;
    }
}

/* This warp's rows of a chunk of the result, each times factor[row / 8]. */
FUNCTION void NAME(store_chunk)(GLOBAL STORED(T) * to, SIDE side, int chunk, float (*sum)[4], const float *factor)
{
    UNROLL_ON_GPU
    for (int j = 0; j < OUT_TILES; j++)
        for (int i = 0; i < 4; i++) {
            const int row = side.first + 16 * WARP + ROW_OF(i), e = chunk * DC + 8 * j + COLUMN_OF(i);
            if (row < side.n && e < side.d) STORE(T, to, row * side.step + e, sum[j][i] * factor[i / 2]);
        }
}
