/* One operand of tile.h: its tile at (first, k_first) goes to the group's memory, chunk by chunk. Before it stand
 * OF(f), which adds a or b to a name, TILE, ALONG_K, CHUNK, WHOLE, AT(outer, k) and STEP, from one element of a chunk
 * to the next there.
 */

/* The chunk that begins at (outer, k). */
FUNCTION void NAME(OF(copy))(LOCAL float *to, GLOBAL const STORED(T) * from, NAME(operands) o, int outer, int k)
{
    const index_t at = NAME(OF(find))(o, outer, k);
#if CHUNK == 1
    to[0] = at >= 0 ? LOAD(T, from, at) : 0.0f;
#elif WHOLE && !ALIGNED
    if (at >= 0) {
        for (int j = 0; j < CHUNK; j++)
            to[j * STEP] = LOAD(T, from, at + j);
    } else {
        for (int j = 0; j < CHUNK; j++)
            to[j * STEP] = 0.0f;
    }
#elif ALIGNED
    float v[CHUNK];
    for (int j = 0; j < CHUNK; j++)
        v[j] = 0.0f;
    if (at >= 0) PASTE(unpack_, T)(*(GLOBAL const uint4 *)(from + at), v);
    for (int j = 0; j < CHUNK; j++)
        to[j * STEP] = v[j];
#else
    const int last = CHUNK - 1;
    if (at >= 0 && NAME(OF(find))(o, outer + (ALONG_K ? 0 : last), k + (ALONG_K ? last : 0)) == at + last) {
        float v[CHUNK];
        for (int j = 0; j < CHUNK; j++)
            v[j] = LOAD(T, from, at + j);
        for (int j = 0; j < CHUNK; j++)
            to[j * STEP] = v[j];
        return;
    }
    NO_UNROLL
    for (int j = 0; j < CHUNK; j++) {
        const index_t one = NAME(OF(find))(o, outer + (ALONG_K ? 0 : j), k + (ALONG_K ? j : 0));
        to[j * STEP] = one >= 0 ? LOAD(T, from, one) : 0.0f;
    }
#endif
}

FUNCTION void NAME(OF(stage))(LOCAL float *to, GLOBAL const STORED(T) * from, NAME(operands) o, int first, int k_first)
{
    OUTER_LOOP
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
#undef WHOLE
#undef AT
#undef STEP
