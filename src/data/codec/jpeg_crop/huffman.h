/* Huffman tables for looking up several symbols at once. A table is indexed by the next 10 bits and says what they
 * hold: up to two symbols for blocks whose values are wanted (`store`), as many as fit for blocks that are passed over
 * (`parse`). The value bits of the last symbol may lie outside of the index. Codes longer than 10 bits, and bits that
 * are no code, go the slow way.
 *
 * k is the position, in the file's order, of the last coefficient of which something is known: 0 after DC, and a block
 * is complete at 63. The end-of-block symbol adds 64, so that one test finds every end.
 */
#ifndef STK_DATA_CODEC_JPEG_CROP_HUFFMAN_H
#define STK_DATA_CODEC_JPEG_CROP_HUFFMAN_H

#include "data/codec/jpeg_crop/header.h"

enum {
    STK_JPEG_INDEX_BITS = 10,
    STK_JPEG_N_INDEX = 1 << STK_JPEG_INDEX_BITS,
    STK_JPEG_ENTRY_BITS = 23, /* an entry takes no more; a valid file of 8 bits needs 20 */
    STK_JPEG_NO_END = 128,    /* and more, in place of a position: this entry has no end of block */
    STK_JPEG_KEY_BYTES = 16 + 256
};

/* Codes in canonical order, for the slow way (T.81, F.2.2.3). */
typedef struct stk_jpeg_canonical {
    uint32_t limit[17]; /* of 16 bits: those below limit[l] are codes of l bits or fewer */
    int32_t offset[17]; /* symbol number = code + offset[l] */
    uint8_t symbol[256];
} stk_jpeg_canonical;

/* A DC entry, from the lowest byte: bits in all, bits before the value, 63 - bits of the value; 0: the slow way.
 * A store entry, from the lowest byte: bits in all (0: the slow way), step to the first position, step to the last
 * one, bits before the last value, 64 - bits of the last value, step before the end of block, first value (16 bits).
 * The last symbol has a value or is the end of block, whose value goes where it does no harm: runs of 16 zeros in that
 * place are left to the next lookup, or the slow way.
 * A parse entry: bits in all (0: the slow way), step to the last position, step before the end of block.
 */
typedef struct stk_jpeg_dc_table {
    uint32_t entry[STK_JPEG_N_INDEX];
    stk_jpeg_canonical codes;
} stk_jpeg_dc_table;

typedef struct stk_jpeg_ac_table {
    uint64_t store[STK_JPEG_N_INDEX];
    uint32_t parse[STK_JPEG_N_INDEX];
    uint16_t one[STK_JPEG_N_INDEX]; /* bits of the code, 0: the slow way; symbol << 8 */
    stk_jpeg_canonical codes;
    bool has_store, has_parse;
} stk_jpeg_ac_table;

/* Built tables by the file's bytes: many small files share the encoder's standard tables. */
enum { STK_JPEG_N_CACHED = 4 };
typedef struct stk_jpeg_table_key {
    uint8_t bytes[STK_JPEG_KEY_BYTES];
    int n;         /* 0: free */
    uint64_t used; /* when, for replacing the oldest */
} stk_jpeg_table_key;

typedef struct stk_jpeg_tables {
    stk_jpeg_dc_table dc[STK_JPEG_N_CACHED] __attribute__((aligned(64)));
    stk_jpeg_ac_table ac[STK_JPEG_N_CACHED] __attribute__((aligned(64)));
    stk_jpeg_table_key dc_key[STK_JPEG_N_CACHED], ac_key[STK_JPEG_N_CACHED];
    uint64_t clock;
} stk_jpeg_tables;

/* The table for these codes, good until four others were asked for; NULL when they are no legal code. */
const stk_jpeg_dc_table *stk_jpeg_dc_table_of(stk_jpeg_tables *tables, stk_jpeg_code code);
const stk_jpeg_ac_table *stk_jpeg_ac_table_of(stk_jpeg_tables *tables, stk_jpeg_code code, bool store, bool parse);

/* The symbol that 16 bits start with where their first 10 are no code, its length in *n_bits; -1 when there is none. */
int stk_jpeg_slow_symbol(const stk_jpeg_canonical *codes, uint32_t top16, int *n_bits);

/* The value of `size` bits (T.81, F.2.2.1, EXTEND). */
static inline int stk_jpeg_extend(uint32_t bits, int size)
{
    return size && !(bits >> (size - 1)) ? (int)bits - (1 << size) + 1 : (int)bits;
}

#endif
