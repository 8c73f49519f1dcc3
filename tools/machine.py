"""What a measured figure was measured on."""
import os
import platform


def cpuinfo():
    """The first core's lines."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        lines = f.read().split("\n\n")[0].splitlines()
    return dict([part.strip() for part in line.split(":", 1)] for line in lines if ":" in line)


def processor():
    """Its name, on x86 as "AMD EPYC"; elsewhere numbers, which src/base/processor.c knows names of."""
    about = cpuinfo()
    if "model name" in about:
        return about["model name"]
    if "CPU part" in about:
        return f"ARM, implementer {about.get('CPU implementer', '?')}, part {about['CPU part']}"
    return about.get("uarch", platform.machine())


def machine():
    """Processor, cores and vectors, as "AMD EPYC, 2 cores, avx512_bf16"."""
    about = cpuinfo()
    flags = (about.get("flags") or about.get("Features", "")).split()
    known = ("amx_bf16", "avx512_bf16", "avx512f", "avx2", "sve2", "sve", "asimd")
    vectors = next((name for name in known if name in flags), "no vectors known")
    return f"{processor()}, {os.cpu_count()} cores, {vectors}"
