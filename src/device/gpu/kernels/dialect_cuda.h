/* The dialect on CUDA C++, as NVRTC takes it: no header is included. See dialect.h. */
#define GLOBAL
#define LOCAL
#define FUNCTION              static __device__ __forceinline__
#define BUFFER(type, name)    char *name##_memory
#define POINTER(type, name)   type *name = (type *)name##_memory
#define KERNEL(name, x, y, z) extern "C" __global__ void __launch_bounds__((x) * (y) * (z)) NAME(name)
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
#define BITS_OF(x)            __float_as_uint(x)
#define FLOAT_OF(bits)        __uint_as_float(bits)
#define TAKE_FIRST(p, value)  (atomicCAS(p, 0, value) == 0)
#define IS_CUDA               1

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
