/* One operand of tile.h: its tile at (first, k_first) goes to the group's memory, chunk by chunk. Before it stand
 * OF(f), which adds a or b to a name, TILE, ALONG_K, CHUNK, AT(outer, k) and STEP, from one element of a chunk
 * to the next there.
 */

/* The chunk that begins at (outer, k). */
FUNCTION void NAME(OF(copy))(LOCAL float *to, GLOBAL const STORED(T) * from, NAME(operands) o, int outer, int k)
{
    const index_t at = NAME(OF(find))(o, outer, k);
#if CHUNK == 1
    to[0] = at >= 0 ? LOAD(T, from, at) : 0.0f;
#else
    float v[CHUNK];
    for (int j = 0; j < CHUNK; j++)
        v[j] = 0.0f;
    if (at >= 0) PASTE(unpack_, T)(*(GLOBAL const uint4 *)(from + at), v);
    for (int j = 0; j < CHUNK; j++)
        to[j * STEP] = v[j];
#endif
}

FUNCTION void NAME(OF(stage))(LOCAL float *to, GLOBAL const STORED(T) * from, NAME(operands) o, int first, int k_first)
{
    UNROLL
    for (int q = ITEM_X; q < TILE * TILE_K / CHUNK; q += ITEMS_M * ITEMS_N) {
        const int outer = ALONG_K ? q / (TILE_K / CHUNK) : q % (TILE / CHUNK) * CHUNK;
        const int k = ALONG_K ? q % (TILE_K / CHUNK) * CHUNK : q / (TILE / CHUNK);
        NAME(OF(copy))(to + AT(outer, k), from, o, first + outer, k_first + k);
    }
}

#undef OF
#undef TILE
#undef ALONG_K
#undef CHUNK
#undef AT
#undef STEP
