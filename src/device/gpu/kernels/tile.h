/* C = A B, a tile of C by each group, of A [M,K] and B [K,N] that lie or are found anywhere. The file that includes
 * this has, before it,
 *
 *   operands                  a struct, the kernel's last argument
 *   begin_a(o, batch), begin_b    where the batch begins
 *   find_a(o, m, k), find_b(o, n, k)    where the element lies from there; -1: it is outside, and counts as 0
 *
 * each a NAME(); and ROWS_ARE_RUNS, 1 where each row of A or B lies all side by side, else 0. Settings:
 *
 *   T, T_OUT                  of A and B, of C
 *   TILE_M, TILE_N, TILE_K    elements of a tile; a group goes through K by TILE_K at a time
 *   A_ALONG_K, B_ALONG_K      1: neighbours in memory are neighbours along K, 0: along M or N
 *   A_CHUNK, B_CHUNK          elements that are read at once: 1, or what 16 bytes hold, at multiples of 16 bytes; of
 *                             PANELS 1, or 16 at any place
 *   A_WHOLE, B_WHOLE          of PANELS: 1, chunks are wholly inside or outside; 0, one at an edge may be partly
 *   FRAGMENTS, PANELS         which is 1: tile_fragments.h or tile_panels.h; none: tile_items.h
 *   WARPS_M, WARPS_N          of FRAGMENTS: warps of a group, by rows and columns of C
 *   ROWS, WIDES               of PANELS: rows and 16 columns of C that are in registers at a time
 *   ITEMS_M, ITEMS_N          work-items of a group, by rows and columns of C
 */
typedef struct NAME(product) {
    i64 c_batch, part_stride; /* from one batch to the next, one part of K to the next */
    int m, n, k, k_each;      /* sizes of one matrix; k of one part, a multiple of TILE_K */
    int ldc, bias_batch;
    int tiles_m, tiles_n, tile_m, tile_n; /* tile_m, tile_n: of PANELS TILE_M and TILE_N at most, else the same */
    int has_bias, relu;                   /* only where there is one part */
    int in_pairs;                         /* two neighbours of C, of which the first is even, can be stored at once */
    int has_onto; /* the product is added to what lies as C does; only where there is one part */
} NAME(product);

/* Which tile a group has: bands of 8 rows of tiles, so that groups at work at a time share what they read. */
typedef struct NAME(place) {
    int batch, m, n; /* m, n: the tile's first row and column */
} NAME(place);

FUNCTION NAME(place) NAME(find_place)(NAME(product) p)
{
    NAME(place) at;
    const index_t n_tiles = (index_t)p.tiles_m * p.tiles_n;
    at.batch = (int)(GROUP_X / n_tiles);
    const index_t tile = GROUP_X % n_tiles;
    const int band = (int)(tile / (8 * p.tiles_n)), in_band = (int)(tile % (8 * p.tiles_n));
    const int rows = p.tiles_m - 8 * band < 8 ? p.tiles_m - 8 * band : 8;
    at.m = (8 * band + in_band % rows) * p.tile_m;
    at.n = in_band / rows * p.tile_n;
    return at;
}

FUNCTION float NAME(finish)(NAME(product) p, float x, float bias)
{
    x += p.has_bias ? bias : 0.0f;
    return p.relu ? relu_f(x) : x;
}

#if FRAGMENTS
#include "tile_fragments.h"
#elif PANELS
#include "tile_panels.h"
#else
#include "tile_items.h"
#endif
