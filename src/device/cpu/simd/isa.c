#include "device/cpu/simd/isa.h"

#ifdef STK_ISA_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static stk_isa find_best(void)
{
#ifdef STK_ISA_X86
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return STK_ISA_BASELINE;
    /* The build also uses f16c, which every processor with AVX2 and FMA has. */
    bool has_512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return has_512 ? STK_ISA_AVX512 : STK_ISA_AVX2;
#else
    return STK_ISA_BASELINE;
#endif
}

stk_isa stk_isa_choose(void)
{
    stk_isa best = find_best(), allowed = stk_isa_allowed();
    return allowed < best ? allowed : best;
}

bool stk_isa_has_bf16(stk_isa isa)
{
#ifdef STK_ISA_X86
    return isa == STK_ISA_AVX512 && __builtin_cpu_supports("avx512bf16");
#else
    (void)isa;
    return false;
#endif
}

bool stk_isa_is_of_intel(void)
{
#ifdef STK_ISA_X86
    __builtin_cpu_init();
    return __builtin_cpu_is("intel");
#else
    return false;
#endif
}

#ifdef STK_ISA_X86
/* A process has to ask before its first tile (Linux, Documentation/arch/x86/xstate.rst): signal frames grow by the 8
 * KiB of all tiles. Refused where an alternate signal stack is too small for that. */
static bool may_use_tiles(void)
{
#ifdef __linux__
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}
#endif

bool stk_isa_has_amx(stk_isa isa)
{
#ifdef STK_ISA_X86
    enum { UNKNOWN, NO, YES };
    /* Leaf 7: __builtin_cpu_supports knows it in newer compilers only. */
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    static _Atomic int known = UNKNOWN; /* threads that ask at once find the same */
    unsigned a, b, c, d;
    if (!stk_isa_has_bf16(isa)) return false;
    if (known == UNKNOWN) {
        bool has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_BF16) && (d & AMX_TILE) && may_use_tiles();
        known = has ? YES : NO;
    }
    return known == YES;
#else
    (void)isa;
    return false;
#endif
}
