/* The dialect on CUDA C++, as NVRTC takes it: no header is included. See dialect.h. */
#define GLOBAL
#define LOCAL
#define FUNCTION              static __device__ __forceinline__
#define BUFFER(type, name)    char *name##_memory
#define POINTER(type, name)   type *name = (type *)name##_memory
#define KERNEL(name, x, y, z) extern "C" __global__ void __launch_bounds__((x) * (y) * (z)) NAME(name)
#define KERNEL_OF(name, x, n) extern "C" __global__ void __launch_bounds__(x, n) NAME(name)
#define SHARED(type, name, n) __shared__ type name[n]
#define GROUP_X               ((index_t)blockIdx.x)
#define GROUP_Y               ((index_t)blockIdx.y)
#define GROUP_Z               ((index_t)blockIdx.z)
#define N_GROUPS_X            ((index_t)gridDim.x)
#define ITEM_X                ((int)threadIdx.x)
#define ITEM_Y                ((int)threadIdx.y)
#define ITEM_Z                ((int)threadIdx.z)
#define GROUP_SIZE_X          ((int)blockDim.x)
#define BARRIER()             __syncthreads()
#define UNROLL_ON_GPU         UNROLL
#define N_LANES               32
#define WORTH_BARRIERS(need)  (need)
#define BITS_OF(x)            __float_as_uint(x)
#define FLOAT_OF(bits)        __uint_as_float(bits)
#define TAKE_FIRST(p, value)  (atomicCAS(p, 0, value) == 0)
#define IS_CUDA               1
#define MUL_HIGH(a, b)        __umulhi(a, b)
#define WIDE(n)               wide_floats<n>
#define WIDE_OF(n, x)         wide_of<n>(x)
#define WIDE_LOAD(n, p)       (*(const wide_floats<n> *)(p))
#define WIDE_STORE(n, p, x)   (*(wide_floats<n> *)(p) = (x))
#define WIDE_FMA(n, x, y, z)  wide_fma<n>(x, y, z)

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef int i32;
typedef long i64;
typedef unsigned int u32;
typedef unsigned long u64;

FUNCTION float from_f16(ushort bits)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

FUNCTION ushort to_f16(float x)
{
    ushort bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

#if __CUDA_ARCH__ >= 800
#define HAS_BF16 1
FUNCTION ushort to_bf16(float x)
{
    ushort bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

FUNCTION u32 pair_of_bf16(float x, float y)
{
    u32 bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
    return bits;
}

/* At most 2^-11 off, a quarter of what rounding to bf16 is (PTX ISA, "tanh"). */
FUNCTION float tanh_of_bf16(float x)
{
    asm("tanh.approx.f32 %0, %0;" : "+f"(x));
    return x;
}
#endif

/* 2 to the x, to 2 units in the last place: what will have 16 bits. */
FUNCTION float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <int n> struct __align__(16) wide_floats
{
    float v[n];
};

template <int n> FUNCTION wide_floats<n> wide_of(float x)
{
    wide_floats<n> out;
    for (int i = 0; i < n; i++)
        out.v[i] = x;
    return out;
}

template <int n> FUNCTION wide_floats<n> wide_fma(float x, wide_floats<n> y, wide_floats<n> z)
{
    for (int i = 0; i < n; i++)
        z.v[i] = fmaf(x, y.v[i], z.v[i]);
    return z;
}

/* --- copies that go on by themselves, and products of 32 work-items: PTX ISA, "cp.async", "ldmatrix", "mma" --- */

#if __CUDA_ARCH__ >= 800
#define HAS_FRAGMENTS  1
#define COPY_STAGES    3
#define COPIES_END()   asm volatile("cp.async.commit_group;" ::: "memory")
#define COPIES_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

FUNCTION u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

/* 16 bytes from global memory, or zeros. */
FUNCTION void copy_16(uint4 *to, const uint4 *from, bool is_there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(is_there ? 16 : 0)
                 : "memory");
}

FUNCTION void copy_8(uint2 *to, const uint2 *from, bool is_there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(is_there ? 8 : 0)
                 : "memory");
}

/* Four matrices of 8 x 8 of 16 bits: the lane's address is that of a row, of matrix number lane / 8. */
FUNCTION void load_matrices(u32 *out, const ushort *row, bool transposed)
{
    if (transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(shared_address(row))
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(shared_address(row))
                     : "memory");
}

#define MULTIPLY_FRAGMENTS(T)                                                                                          \
    FUNCTION void multiply_fragments_##T(float *c, const u32 *a, const u32 *b)                                         \
    {                                                                                                                  \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #T "." #T                                                \
                     ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                            \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                              \
    }
MULTIPLY_FRAGMENTS(bf16)
MULTIPLY_FRAGMENTS(f16)
#endif

/* Sum and maximum of each n <= N_LANES neighbours along x, in the order that dialect_opencl.h has. */
FUNCTION float lane_sum(float x, float *, int n)
{
    for (int k = n / 2; k > 0; k /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, k);
    return x;
}

FUNCTION float lane_max(float x, float *, int n)
{
    for (int k = n / 2; k > 0; k /= 2) {
        const float b = __shfl_xor_sync(0xffffffffu, x, k);
        x = x != x || x > b ? x : b;
    }
    return x;
}

/* Two numbers over each four neighbours along x. */
FUNCTION void four_max(float *x, float *, int)
{
    for (int i = 0; i < 4; i++) {
        const float mine = x[i / 2], other = __shfl_xor_sync(0xffffffffu, mine, 1 << i % 2);
        x[i / 2] = mine != mine || mine > other ? mine : other;
    }
}

FUNCTION void four_sum(float *x, float *, int)
{
    for (int i = 0; i < 4; i++)
        x[i / 2] += __shfl_xor_sync(0xffffffffu, x[i / 2], 1 << i % 2);
}
