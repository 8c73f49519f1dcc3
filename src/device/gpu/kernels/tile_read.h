/* Sixteen elements of an operand of tile_panels.h, along K or across. Before it stand OF(f), which adds a or b to a
 * name, ALONG_K, CHUNK and WHOLE. */
FUNCTION WIDE(16) NAME(OF(read))(GLOBAL const STORED(T) * from, NAME(operands) o, int outer, int k)
{
    float v[16];
#if CHUNK == 16
    const index_t at = NAME(OF(find))(o, outer, k);
#if WHOLE
    return at >= 0 ? WIDE_FROM(T, from + at) : WIDE_OF(16, 0.0f);
#endif
    if (at >= 0 && NAME(OF(find))(o, outer + (ALONG_K ? 0 : 15), k + (ALONG_K ? 15 : 0)) == at + 15)
        return WIDE_FROM(T, from + at);
#endif
    NO_UNROLL
    for (int j = 0; j < 16; j++) {
        const index_t one = NAME(OF(find))(o, outer + (ALONG_K ? 0 : j), k + (ALONG_K ? j : 0));
        v[j] = one >= 0 ? LOAD(T, from, one) : 0.0f;
    }
    return WIDE_LOAD(16, v);
}

/* Where n neighbours lie that begin there, if it is known that they lie one after the other; else -1. */
FUNCTION index_t NAME(OF(find_run))(NAME(operands) o, int outer, int k, int n)
{
    const index_t at = NAME(OF(find))(o, outer, k);
    const int last = n - 1;
    if (at < 0 || !ROWS_ARE_RUNS) return -1;
    return NAME(OF(find))(o, outer + (ALONG_K ? 0 : last), k + (ALONG_K ? last : 0)) == at + last ? at : -1;
}

/* Those of which j is the first: at: what find_run says of the n of them that begin at (outer, k). */
FUNCTION WIDE(16)
    NAME(OF(read_run))(GLOBAL const STORED(T) * from, NAME(operands) o, index_t at, int outer, int k, int j, int n)
{
    if (at >= 0 && j + 16 <= n) return WIDE_FROM(T, from + at + j);
    return NAME(OF(read))(from, o, outer + (ALONG_K ? 0 : j), k + (ALONG_K ? j : 0));
}

#undef OF
#undef ALONG_K
#undef CHUNK
#undef WHOLE
