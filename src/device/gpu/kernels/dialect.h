/* What every source of kernels may use; the driver's own dialect_<driver>.h stands before it, the unit's settings
 * behind.
 *
 *   KERNEL(name, x, y, z)(BUFFER(stored_f32, src), index_t n) { POINTER(stored_f32, src); ... }
 *                             a kernel whose groups have x * y * z work-items. BUFFER makes parameters, POINTER the
 *                             pointer of the same name
 *   KERNEL_OF(name, x, n)     the same with groups of x, as many registers as leave room for n groups at a time: where
 *                             the compiler would make room for more and keep numbers in memory
 *   NAME(f)                   the name of a FUNCTION of a unit's own: the same file may be in a program twice
 *   SHARED(type, name, n)     memory of the group, at the top of a kernel; pointers to it are LOCAL type *
 *   GROUP_X, ITEM_X, ...      which group, which work-item in it
 *   WIDE(n)                   n floats, of 4 or 16: WIDE_LOAD, WIDE_STORE, WIDE_FMA(n, float, wide, wide), WIDE_OF
 *   uint4                     16 bytes: .x, .y, .z, .w
 *   index_t                   32 bits, or 64 where some array has 2^30 elements or more (a setting of the unit)
 *   stored_T, value_T         T is f32, bf16, f16, i64, i32, i8, u8 or bool: an element as it lies in memory, and as it
 *                             is computed with: float for all floats
 *   LOAD(T, p, i)             stored_T to value_T
 *   STORE(T, p, i, x)         and back, rounded to nearest even
 *   ROUND(T, x)               what storing and loading makes of a number
 *   FAULT_ARGS, FAULT_POINTER, TELL_FAULT(value, row)
 *                             parameters, and the report of a bad value; the kernel goes on with another one
 */
#define PASTE_(a, b)      a##b
#define PASTE(a, b)       PASTE_(a, b)
#define NAME(name)        PASTE(name, SUFFIX)
#define STORED(T)         PASTE(stored_, T)
#define VALUE(T)          PASTE(value_, T)
#define LOAD(T, p, i)     PASTE(from_, T)((p)[i])
#define STORE(T, p, i, x) ((p)[i] = PASTE(to_, T)(x))
#define ROUND(T, x)       PASTE(round_, T)(x)
#define FAULT_ARGS        BUFFER(int, fault), int fault_site
#define FAULT_POINTER     POINTER(int, fault)
#define TELL_FAULT(value, row)                                                                                         \
    do {                                                                                                               \
        if (TAKE_FIRST(fault, fault_site)) {                                                                           \
            fault[1] = (int)(value);                                                                                   \
            fault[2] = (int)((u64)(row));                                                                              \
            fault[3] = (int)((u64)(row) >> 32);                                                                        \
        }                                                                                                              \
    } while (0)
/* Before a loop: whose variables lie in registers once it is written out; the same where a processor's compiler would
 * take seconds over it, for nothing; whose copies only make a kernel longer. UNROLL_ON_GPU: dialect_<driver>.h. */
#define UNROLL       _Pragma("unroll")
#define NO_UNROLL    _Pragma("unroll 1")
#define INFINITE     FLOAT_OF(0x7f800000u)
#define NOT_A_NUMBER FLOAT_OF(0x7fc00000u)

typedef float stored_f32;
typedef ushort stored_bf16;
typedef ushort stored_f16;
typedef i64 stored_i64;
typedef int stored_i32;
typedef signed char stored_i8;
typedef uchar stored_u8;
typedef uchar stored_bool;
/* What moves elements knows their bytes alone; several small ones may go as one larger. */
typedef uchar unit_1;
typedef ushort unit_2;
typedef u32 unit_4;
typedef u64 unit_8;
typedef ulong2 unit_16;
typedef float value_f32;
typedef float value_bf16;
typedef float value_f16;
typedef i64 value_i64;
typedef int value_i32;
typedef int value_i8;
typedef int value_u8;
typedef int value_bool;

FUNCTION unit_1 unit_1_of(u64 bits)
{
    return (unit_1)bits;
}
FUNCTION unit_2 unit_2_of(u64 bits)
{
    return (unit_2)bits;
}
FUNCTION unit_4 unit_4_of(u64 bits)
{
    return (unit_4)bits;
}
FUNCTION unit_8 unit_8_of(u64 bits)
{
    return bits;
}
FUNCTION unit_16 unit_16_of(u64 bits)
{
    unit_16 x;
    x.x = x.y = bits;
    return x;
}

FUNCTION float from_f32(float x)
{
    return x;
}
FUNCTION float to_f32(float x)
{
    return x;
}
FUNCTION float from_bf16(ushort bits)
{
    return FLOAT_OF((u32)bits << 16);
}
#ifndef HAS_BF16 /* dialect_cuda.h: instructions for them */
FUNCTION ushort to_bf16(float x)
{
    u32 bits = BITS_OF(x);
    if (x != x) return (ushort)(bits >> 16 & 0x8000u | 0x7fc0u);
    return (ushort)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
FUNCTION u32 pair_of_bf16(float x, float y)
{
    return (u32)to_bf16(x) | (u32)to_bf16(y) << 16;
}
/* Rounded to bf16 behind it. */
FUNCTION float tanh_of_bf16(float x)
{
    return tanh(x);
}
#endif
FUNCTION u32 pair_of_f16(float x, float y)
{
    return (u32)to_f16(x) | (u32)to_f16(y) << 16;
}
FUNCTION i64 from_i64(i64 x)
{
    return x;
}
FUNCTION i64 to_i64(i64 x)
{
    return x;
}
FUNCTION int from_i32(int x)
{
    return x;
}
FUNCTION int to_i32(int x)
{
    return x;
}
FUNCTION int from_i8(signed char x)
{
    return x;
}
FUNCTION signed char to_i8(int x)
{
    return (signed char)x;
}
FUNCTION int from_u8(uchar x)
{
    return x;
}
FUNCTION uchar to_u8(int x)
{
    return (uchar)x;
}
FUNCTION int from_bool(uchar x)
{
    return x != 0;
}
FUNCTION uchar to_bool(int x)
{
    return x != 0;
}
FUNCTION float round_f32(float x)
{
    return x;
}
FUNCTION float round_bf16(float x)
{
    return from_bf16(to_bf16(x));
}
FUNCTION float round_f16(float x)
{
    return from_f16(to_f16(x));
}
FUNCTION i64 round_i64(i64 x)
{
    return x;
}
FUNCTION int round_i32(int x)
{
    return x;
}
FUNCTION int round_i8(int x)
{
    return (signed char)x;
}
FUNCTION int round_u8(int x)
{
    return (uchar)x;
}
FUNCTION int round_bool(int x)
{
    return x != 0;
}

/* --- numbers of other kinds: as far as the kind goes, NaN is 0 --- */

FUNCTION int int_between(float x, float lowest, float highest, int low, int high)
{
    return x != x ? 0 : x <= lowest ? low : x >= highest ? high : (int)x;
}
FUNCTION int i32_of_float(float x)
{
    return int_between(x, -2147483648.0f, 2147483648.0f, -2147483647 - 1, 2147483647);
}
FUNCTION int i8_of_float(float x)
{
    return int_between(x, -128.0f, 127.0f, -128, 127);
}
FUNCTION int u8_of_float(float x)
{
    return int_between(x, 0.0f, 255.0f, 0, 255);
}
FUNCTION int bool_of_float(float x)
{
    return x != 0;
}
FUNCTION i64 i64_of_float(float x)
{
    const i64 highest = 0x7fffffffffffffffl;
    return x != x ? 0 : x <= -9223372036854775808.0f ? -highest - 1 : x >= 9223372036854775808.0f ? highest : (i64)x;
}

/* --- arithmetic that is the same everywhere: graph/op.h --- */

FUNCTION float max_f(float a, float b)
{
    return a != a || a > b ? a : b;
}
FUNCTION float min_f(float a, float b)
{
    return a != a || a < b ? a : b;
}
FUNCTION float relu_f(float x)
{
    return x > 0 || x != x ? x : 0.0f;
}
FUNCTION float sign_f(float x)
{
    return (float)((x > 0) - (x < 0));
}
FUNCTION float sigmoid_f(float x)
{
    return 1.0f / (1.0f + exp(-x));
}

/* --- Philox 4x32-10 (Salmon et al., SC 2011), and dropout by graph/dropout.h --- */

typedef struct philox_block {
    u32 v[4];
} philox_block;

FUNCTION philox_block philox(u64 key, u64 high, u64 low)
{
    philox_block out;
    u32 c0 = (u32)low, c1 = (u32)(low >> 32), c2 = (u32)high, c3 = (u32)(high >> 32);
    u32 k0 = (u32)key, k1 = (u32)(key >> 32);
    for (int i = 0; i < 10; i++) {
        u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
        u32 n0 = (u32)(p1 >> 32) ^ c1 ^ k0, n2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c1 = (u32)p1;
        c3 = (u32)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out.v[0] = c0;
    out.v[1] = c1;
    out.v[2] = c2;
    out.v[3] = c3;
    return out;
}

/* Whether the element of that number in a row stays; limit: stk_dropout_limit of the rate. */
FUNCTION int dropout_keeps(u64 key, i64 row, i64 element, int limit)
{
    philox_block block = philox(key, (u64)row, (u64)(element / 8));
    int i = (int)(element % 8);
    return (int)(block.v[i / 2] >> 16 * (i % 2) & 0xffffu) >= limit;
}

/* --- sums and maxima over a group, in an order that depends on nothing but its size --- */

/* Of all n work-items along x, a power of 2; each gets the result. shared has room for n. */
FUNCTION float group_sum(float x, LOCAL float *shared, int n)
{
    int i = ITEM_X;
    BARRIER();
    shared[i] = x;
    BARRIER();
    for (int half_n = n / 2; half_n > 0; half_n /= 2) {
        if (i < half_n) shared[i] += shared[i + half_n];
        BARRIER();
    }
    return shared[0];
}

FUNCTION float group_max(float x, LOCAL float *shared, int n)
{
    int i = ITEM_X;
    BARRIER();
    shared[i] = x;
    BARRIER();
    for (int half_n = n / 2; half_n > 0; half_n /= 2) {
        if (i < half_n) shared[i] = max_f(shared[i], shared[i + half_n]);
        BARRIER();
    }
    return shared[0];
}

/* --- 16 bytes of memory as numbers --- */

FUNCTION void unpack_f32(uint4 bytes, float *out)
{
    out[0] = FLOAT_OF(bytes.x);
    out[1] = FLOAT_OF(bytes.y);
    out[2] = FLOAT_OF(bytes.z);
    out[3] = FLOAT_OF(bytes.w);
}
FUNCTION void unpack_bf16(uint4 bytes, float *out)
{
    const u32 word[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    for (int i = 0; i < 4; i++) {
        out[2 * i] = FLOAT_OF(word[i] << 16);
        out[2 * i + 1] = FLOAT_OF(word[i] & 0xffff0000u);
    }
}
FUNCTION void unpack_f16(uint4 bytes, float *out)
{
    const u32 word[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    for (int i = 0; i < 4; i++) {
        out[2 * i] = from_f16((ushort)(word[i] & 0xffffu));
        out[2 * i + 1] = from_f16((ushort)(word[i] >> 16));
    }
}

/* --- where there are no copies that go on by themselves, nor units for matrices (dialect_cuda.h) --- */

#ifndef HAS_FRAGMENTS
#define HAS_FRAGMENTS  0
#define COPY_STAGES    2
#define COPIES_END()   (void)0
#define COPIES_WAIT(n) (void)0

FUNCTION void copy_16(LOCAL uint4 *to, GLOBAL const uint4 *from, int is_there)
{
    uint4 bytes;
    bytes.x = bytes.y = bytes.z = bytes.w = 0;
    if (is_there) bytes = *from;
    *to = bytes;
}

FUNCTION void copy_8(LOCAL uint2 *to, GLOBAL const uint2 *from, int is_there)
{
    uint2 bytes;
    bytes.x = bytes.y = 0;
    if (is_there) bytes = *from;
    *to = bytes;
}
#endif

/* --- two neighbours in memory, of which the first has an even number --- */

FUNCTION void store_pair_f32(GLOBAL float *to, float x, float y)
{
    uint2 bits;
    bits.x = BITS_OF(x);
    bits.y = BITS_OF(y);
    *(GLOBAL uint2 *)to = bits;
}
FUNCTION void store_pair_bf16(GLOBAL ushort *to, float x, float y)
{
    *(GLOBAL u32 *)to = pair_of_bf16(x, y);
}
FUNCTION void store_pair_f16(GLOBAL ushort *to, float x, float y)
{
    *(GLOBAL u32 *)to = pair_of_f16(x, y);
}

/* --- division of n < 2^31 by what does not change (Granlund and Montgomery, PLDI 1994); ops/product.c makes it --- */

typedef struct divisor {
    int d;
    u32 factor;
    int shift;
} divisor;

FUNCTION int divide(int n, divisor by)
{
    return (int)((MUL_HIGH((u32)n, by.factor) + (u32)n) >> by.shift);
}

/* Of each n neighbours along x, n a power of 2 that divides the group; each gets its own row's result. */
FUNCTION float row_sum(float x, LOCAL float *shared, int n)
{
    const int i = ITEM_X, n_lanes = n < N_LANES ? n : N_LANES;
    x = lane_sum(x, shared, n_lanes);
    if (WORTH_BARRIERS(n > N_LANES)) {
        BARRIER();
        if (i % N_LANES == 0) shared[i / N_LANES] = x;
        BARRIER();
        if (n > N_LANES) x = shared[i / n * (n / N_LANES)];
        for (int k = 1; k < n / N_LANES; k++)
            x += shared[i / n * (n / N_LANES) + k];
    }
    return x;
}

FUNCTION float row_max(float x, LOCAL float *shared, int n)
{
    const int i = ITEM_X, n_lanes = n < N_LANES ? n : N_LANES;
    x = lane_max(x, shared, n_lanes);
    if (WORTH_BARRIERS(n > N_LANES)) {
        BARRIER();
        if (i % N_LANES == 0) shared[i / N_LANES] = x;
        BARRIER();
        if (n > N_LANES) x = shared[i / n * (n / N_LANES)];
        for (int k = 1; k < n / N_LANES; k++)
            x = max_f(x, shared[i / n * (n / N_LANES) + k]);
    }
    return x;
}

/* Adds exp(x[i] - *most) to sum, where *most becomes the new maximum; sum is 0 while that is -inf. */
FUNCTION float add_exponentials(const float *x, int n, float *most, float sum)
{
    float now = *most, added = 0;
    for (int i = 0; i < n; i++)
        now = max_f(now, x[i]);
    if (now == -INFINITE) return sum;
    for (int i = 0; i < n; i++)
        added += exp(x[i] - now);
    sum = sum * exp(*most - now) + added;
    *most = now;
    return sum;
}

/* --- packs: 16 bytes of neighbours that are read or written at once, at a multiple of PACK(T) elements --- */

#define PACK(T)             PASTE(pack_, T)
#define pack_f32            4
#define pack_bf16           8
#define pack_f16            8
#define LOAD_PACK(T, p, x)  PASTE(load_pack_, T)(p, x)
#define STORE_PACK(T, p, x) PASTE(store_pack_, T)(p, x)
/* Of the elements from `low` on and below `high`; the others are `fill`, or stay as they are in memory. */
#define LOAD_PART(T, p, low, high, fill, x)                                                                            \
    do {                                                                                                               \
        if ((low) <= 0 && (high) >= PACK(T)) {                                                                         \
            LOAD_PACK(T, p, x);                                                                                        \
        } else {                                                                                                       \
            UNROLL                                                                                                     \
            for (int part_j = 0; part_j < PACK(T); part_j++)                                                           \
                (x)[part_j] = part_j >= (low) && part_j < (high) ? LOAD(T, p, part_j) : (fill);                        \
        }                                                                                                              \
    } while (0)
#define STORE_PART(T, p, low, high, x)                                                                                 \
    do {                                                                                                               \
        if ((low) <= 0 && (high) >= PACK(T)) {                                                                         \
            STORE_PACK(T, p, x);                                                                                       \
        } else {                                                                                                       \
            UNROLL                                                                                                     \
            for (int part_j = 0; part_j < PACK(T); part_j++)                                                           \
                if (part_j >= (low) && part_j < (high)) STORE(T, p, part_j, (x)[part_j]);                              \
        }                                                                                                              \
    } while (0)

FUNCTION void load_pack_f32(GLOBAL const float *p, float *x)
{
    const uint4 bits = *(GLOBAL const uint4 *)p;
    x[0] = FLOAT_OF(bits.x);
    x[1] = FLOAT_OF(bits.y);
    x[2] = FLOAT_OF(bits.z);
    x[3] = FLOAT_OF(bits.w);
}
FUNCTION void store_pack_f32(GLOBAL float *p, const float *x)
{
    uint4 bits;
    bits.x = BITS_OF(x[0]);
    bits.y = BITS_OF(x[1]);
    bits.z = BITS_OF(x[2]);
    bits.w = BITS_OF(x[3]);
    *(GLOBAL uint4 *)p = bits;
}
#define DEFINE_PACKS_OF_16(T)                                                                                          \
    FUNCTION void load_pack_##T(GLOBAL const ushort *p, float *x)                                                      \
    {                                                                                                                  \
        const uint4 bits = *(GLOBAL const uint4 *)p;                                                                   \
        x[0] = from_##T((ushort)bits.x);                                                                               \
        x[1] = from_##T((ushort)(bits.x >> 16));                                                                       \
        x[2] = from_##T((ushort)bits.y);                                                                               \
        x[3] = from_##T((ushort)(bits.y >> 16));                                                                       \
        x[4] = from_##T((ushort)bits.z);                                                                               \
        x[5] = from_##T((ushort)(bits.z >> 16));                                                                       \
        x[6] = from_##T((ushort)bits.w);                                                                               \
        x[7] = from_##T((ushort)(bits.w >> 16));                                                                       \
    }                                                                                                                  \
    FUNCTION void store_pack_##T(GLOBAL ushort *p, const float *x)                                                     \
    {                                                                                                                  \
        uint4 bits;                                                                                                    \
        bits.x = pair_of_##T(x[0], x[1]);                                                                              \
        bits.y = pair_of_##T(x[2], x[3]);                                                                              \
        bits.z = pair_of_##T(x[4], x[5]);                                                                              \
        bits.w = pair_of_##T(x[6], x[7]);                                                                              \
        *(GLOBAL uint4 *)p = bits;                                                                                     \
    }
DEFINE_PACKS_OF_16(bf16)
DEFINE_PACKS_OF_16(f16)

/* Where a setting EACH says how many neighbours a work-item takes at once: PACK(T), or 1 where that does not divide the
 * rows. */
#define LOAD_EACH(T, p, i, x)                                                                                          \
    do {                                                                                                               \
        if (EACH == PACK(T))                                                                                           \
            LOAD_PACK(T, (p) + (i), x);                                                                                \
        else                                                                                                           \
            (x)[0] = LOAD(T, p, i);                                                                                    \
    } while (0)
#define STORE_EACH(T, p, i, x)                                                                                         \
    do {                                                                                                               \
        if (EACH == PACK(T))                                                                                           \
            STORE_PACK(T, (p) + (i), x);                                                                               \
        else                                                                                                           \
            STORE(T, p, i, (x)[0]);                                                                                    \
    } while (0)

/* n floats, 1 or a multiple of 4. */
FUNCTION void load_floats(GLOBAL const float *p, int n, float *x)
{
    if (n == 1) x[0] = p[0];
    UNROLL
    for (int j = 0; j + 4 <= n; j += 4)
        load_pack_f32(p + j, x + j);
}
FUNCTION void store_floats(GLOBAL float *p, int n, const float *x)
{
    if (n == 1) p[0] = x[0];
    UNROLL
    for (int j = 0; j + 4 <= n; j += 4)
        store_pack_f32(p + j, x + j);
}

/* --- columns: n_outer matrices [n_along,n_columns] (ops/columns.h) --- */

/* Group (x, y): n_side * EACH columns of one matrix, part y of its rows. This work-item: columns c and on, rows
 * `first`, first + step, ... below end. */
#define COLUMN_ARGS index_t n_outer, index_t n_along, index_t n_columns, index_t n_each, int n_side
#define FIND_COLUMNS                                                                                                   \
    const index_t n_tiles = (n_columns + n_side * EACH - 1) / (n_side * EACH), outer = GROUP_X / n_tiles;              \
    const index_t c = (GROUP_X % n_tiles * n_side + ITEM_X % n_side) * EACH;                                           \
    const index_t first = GROUP_Y * n_each + ITEM_X / n_side, step = 256 / n_side;                                     \
    const index_t end = c >= n_columns ? 0 : (GROUP_Y + 1) * n_each < n_along ? (GROUP_Y + 1) * n_each : n_along

/* Count, mean and sum of squared distances from it, of two sets of numbers: Chan et al. 1979. A mean that is infinite
 * stays so. */
typedef struct moments {
    float n, mean, square;
} moments;

FUNCTION moments join_moments(moments a, moments b)
{
    const float distance = b.mean - a.mean, n = a.n + b.n;
    if (b.n == 0) return a;
    if (a.n == 0) return b;
    if (distance - distance != 0) {
        a.mean += b.mean;
        a.square = NOT_A_NUMBER;
    } else {
        a.mean += distance * (b.n / n);
        a.square += b.square + distance * distance * (a.n * (b.n / n));
    }
    a.n = n;
    return a;
}

/* Of all 256 work-items, in a tree; all get it. shared has room for 3 * 256. */
FUNCTION moments group_moments(moments x, LOCAL float *shared)
{
    const int i = ITEM_X;
    shared[i] = x.n;
    shared[256 + i] = x.mean;
    shared[512 + i] = x.square;
    for (int k = 128; k > 0; k /= 2) {
        BARRIER();
        if (i < k) {
            moments other;
            other.n = shared[i + k];
            other.mean = shared[256 + i + k];
            other.square = shared[512 + i + k];
            x = join_moments(x, other);
            shared[i] = x.n;
            shared[256 + i] = x.mean;
            shared[512 + i] = x.square;
        }
    }
    BARRIER();
    x.n = shared[0];
    x.mean = shared[256];
    x.square = shared[512];
    return x;
}
