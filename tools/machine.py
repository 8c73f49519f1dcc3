"""What a measured figure was measured on."""
import os


def machine():
    """Processor, cores and vectors, as "AMD EPYC, 2 cores, avx512_bf16"."""
    with open("/proc/cpuinfo") as f:
        about = dict([part.strip() for part in line.split(":", 1)] for line in f.read().split("\n\n")[0].splitlines() if ":" in line)
    flags = about.get("flags", "").split()
    vectors = next((name for name in ("amx_bf16", "avx512_bf16", "avx512f", "avx2") if name in flags), "no vectors known")
    return f"{about.get('model name', 'unknown CPU')}, {os.cpu_count()} cores, {vectors}"
