/* The dialect on OpenCL C 1.2. See dialect.h. */
#define GLOBAL __global
#define LOCAL  __local
/* PoCL 3.1 gives memory of the group to kernels alone: where the compiler knows which memory a function of its own
 * gets, that would be one for all groups at a time. */
#define FUNCTION static inline __attribute__((always_inline))
/* PoCL, on a processor, whose mul_hi takes four products of 16 bits. */
#ifdef POCL_DEVICE_ADDRESS_BITS
#define UNROLL_ON_GPU  _Pragma("clang loop unroll(disable)")
#define MUL_HIGH(a, b) ((u32)((u64)(u32)(a) * (u32)(b) >> 32))
#else
#define UNROLL_ON_GPU  UNROLL
#define MUL_HIGH(a, b) mul_hi(a, b)
#endif
/* A kernel's parameter, and the pointer that it stands for: memory and the place in it. */
#define BUFFER(type, name)    __global char *name##_memory, ulong name##_at
#define POINTER(type, name)   __global type *name = (__global type *)(name##_memory + name##_at)
#define GROUP_OF(x, y, z)     __attribute__((reqd_work_group_size(x, y, z)))
#define KERNEL(name, x, y, z) __kernel GROUP_OF(x, y, z) void NAME(name)
#define KERNEL_OF(name, x, n) KERNEL(name, x, 1, 1)
#define SHARED(type, name, n) __local type name[n]
#define GROUP_X               ((index_t)get_group_id(0))
#define GROUP_Y               ((index_t)get_group_id(1))
#define GROUP_Z               ((index_t)get_group_id(2))
#define N_GROUPS_X            ((index_t)get_num_groups(0))
#define ITEM_X                ((int)get_local_id(0))
#define ITEM_Y                ((int)get_local_id(1))
#define ITEM_Z                ((int)get_local_id(2))
#define GROUP_SIZE_X          ((int)get_local_size(0))
#define BARRIER()             barrier(CLK_LOCAL_MEM_FENCE)
#define N_LANES               32
#define WORTH_BARRIERS(need)  1 /* PoCL copies all that follows a barrier under a condition */
#define BITS_OF(x)            as_uint(x)
#define FLOAT_OF(bits)        as_float(bits)
#define TAKE_FIRST(p, value)  (atomic_cmpxchg(p, 0, value) == 0)
/* n floats, n = 4 or 16; vloads ask for no alignment. */
#define WIDE(n)              PASTE(float, n)
#define WIDE_OF(n, x)        ((WIDE(n))(x))
#define WIDE_LOAD(n, p)      PASTE(vload, n)(0, p)
#define WIDE_STORE(n, p, x)  PASTE(vstore, n)(x, 0, p)
#define WIDE_FMA(n, x, y, z) fma((WIDE(n))(x), y, z)
/* For processors, of 16: what lies as T, and 16 of 16 turned, by four rounds of a perfect shuffle. */
#define PREFETCH(p)      __builtin_prefetch((const void *)(ulong)(p), 0, 2)
#define WIDE_FROM(T, p)  PASTE(wide_from_, T)(p)
#define WIDE_TO(T, p, x) PASTE(wide_to_, T)(p, x)
#define LOW_PAIRS(a, b)                                                                                                \
    (float16)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7)
#define HIGH_PAIRS(a, b)                                                                                               \
    (float16)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se, b.se, a.sf, b.sf)
#define TURN_16(x)                                                                                                     \
    do {                                                                                                               \
        float16 pairs_[16];                                                                                            \
        UNROLL                                                                                                         \
        for (int round_ = 0; round_ < 2; round_++) {                                                                   \
            UNROLL                                                                                                     \
            for (int i_ = 0; i_ < 8; i_++) {                                                                           \
                pairs_[2 * i_] = LOW_PAIRS(x[i_], x[i_ + 8]);                                                          \
                pairs_[2 * i_ + 1] = HIGH_PAIRS(x[i_], x[i_ + 8]);                                                     \
            }                                                                                                          \
            UNROLL                                                                                                     \
            for (int i_ = 0; i_ < 8; i_++) {                                                                           \
                x[2 * i_] = LOW_PAIRS(pairs_[i_], pairs_[i_ + 8]);                                                     \
                x[2 * i_ + 1] = HIGH_PAIRS(pairs_[i_], pairs_[i_ + 8]);                                                \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

typedef int i32;
typedef long i64;
typedef uint u32;
typedef ulong u64;

FUNCTION float16 wide_from_f32(__global const float *p)
{
    return vload16(0, p);
}

FUNCTION float16 wide_from_bf16(__global const ushort *p)
{
    return as_float16(convert_uint16(vload16(0, p)) << 16);
}

FUNCTION float16 wide_from_f16(__global const ushort *p)
{
    return vload_half16(0, (__global const half *)p);
}

FUNCTION void wide_to_f32(__global float *p, float16 x)
{
    vstore16(x, 0, p);
}

FUNCTION void wide_to_bf16(__global ushort *p, float16 x)
{
    const uint16 bits = as_uint16(x), nearest = bits + 0x7fffu + (bits >> 16 & 1u);
    const uint16 nan = bits & 0x80000000u | 0x7fc00000u;
    vstore16(convert_ushort16((x != x ? nan : nearest) >> 16), 0, p);
}

FUNCTION void wide_to_f16(__global ushort *p, float16 x)
{
    vstore_half16_rte(x, 0, (__global half *)p);
}

FUNCTION float from_f16(ushort bits)
{
    return vload_half(0, (const half *)&bits);
}

FUNCTION float exp2_fast(float x)
{
    return exp2(x);
}

FUNCTION ushort to_f16(float x)
{
    ushort bits;
    vstore_half_rte(x, 0, (half *)&bits);
    return bits;
}

/* Sum and maximum of each n <= N_LANES neighbours along x, as row_sum has them. */
FUNCTION float lane_sum(float x, __local float *shared, int n)
{
    const int i = ITEM_X, lane = i & (n - 1);
    BARRIER();
    shared[i] = x;
    BARRIER();
    for (int k = N_LANES / 2; k > 0; k /= 2) {
        if (k < n && lane < k) shared[i] += shared[i + k];
        BARRIER();
    }
    return shared[i - lane];
}

FUNCTION float lane_max(float x, __local float *shared, int n)
{
    const int i = ITEM_X, lane = i & (n - 1);
    BARRIER();
    shared[i] = x;
    BARRIER();
    for (int k = N_LANES / 2; k > 0; k /= 2) {
        if (k < n && lane < k) {
            const float a = shared[i], b = shared[i + k];
            shared[i] = a != a || a > b ? a : b;
        }
        BARRIER();
    }
    return shared[i - lane];
}

/* Two numbers over each four neighbours along x, of n; shared has room for two of each. */
#define FOUR(name, expression)                                                                                         \
    FUNCTION void name(float *x, LOCAL float *shared, int n)                                                           \
    {                                                                                                                  \
        LOCAL const float *of = shared + (get_local_id(0) & ~3ul);                                                     \
        BARRIER();                                                                                                     \
        shared[get_local_id(0)] = x[0];                                                                                \
        shared[get_local_id(0) + n] = x[1];                                                                            \
        BARRIER();                                                                                                     \
        for (int i = 0; i < 2; i++, of += n)                                                                           \
            x[i] = expression;                                                                                         \
    }
#define MORE_OF(a, b) ((a) != (a) || (a) > (b) ? (a) : (b))
FOUR(four_max, MORE_OF(MORE_OF(of[0], of[1]), MORE_OF(of[2], of[3])))
FOUR(four_sum, (of[0] + of[1]) + (of[2] + of[3]))
