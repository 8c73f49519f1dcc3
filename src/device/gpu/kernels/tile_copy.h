/* One operand of tile_fragments.h: its tile at (first, k_first) is copied to the group's memory. Before it stand OF(f),
 * which adds a or b to a name, TILE, ALONG_K, CHUNK and SLOT(outer, k).
 */
FUNCTION void NAME(OF(stage))(LOCAL uint4 *to, GLOBAL const STORED(T) * from, NAME(operands) o, int first, int k_first)
{
    LOCAL ushort *element = (LOCAL ushort *)to;
#if CHUNK > 1
    UNROLL
#endif
    for (int i = 0; i < TILE * TILE_K / CHUNK / (32 * WARPS_M * WARPS_N); i++) {
        const int q = i * (32 * WARPS_M * WARPS_N) + ITEM_X;
        const int outer = ALONG_K ? q / (TILE_K / CHUNK) : q % (TILE / CHUNK) * CHUNK;
        const int k = ALONG_K ? q % (TILE_K / CHUNK) * CHUNK : q / (TILE / CHUNK);
        const index_t at = NAME(OF(find))(o, first + outer, k_first + k);
#if CHUNK == 1
        element[SLOT(outer, k)] = at >= 0 ? from[at] : (ushort)0;
#else
        copy_16((LOCAL uint4 *)(element + SLOT(outer, k)), (GLOBAL const uint4 *)(from + (at >= 0 ? at : 0)), at >= 0);
#endif
    }
}

#undef OF
#undef TILE
#undef ALONG_K
#undef CHUNK
#undef SLOT
