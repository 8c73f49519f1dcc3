#!/usr/bin/env python3
"""stoker get cuda-libs: what is missing is said, asked for, fetched from an index like PyPI's, checked, and found afterwards.

usage: test_get_cuda.py STOKER WORK_FOLDER
"""
import hashlib
import io
import json
import os
import platform
import pty
import shutil
import subprocess
import sys
import zipfile

from program import STOKER, TIMEOUT, WORK, accepted, check, end, refused, run
from range_server import RangeServer

MACHINE = platform.machine()
GET = ["get", "cuda-libs", "--cuda", "12"]


def a_library():
    """The bytes of any shared library, which the loader then takes for NVIDIA's."""
    with open("/proc/self/maps") as maps:
        paths = [line.split()[-1] for line in maps if "/libc.so" in line or "/libm.so" in line or "/libz.so" in line]
    with open(paths[0], "rb") as f:
        return f.read()


def make_wheel(package, version, members):
    """In site/wheels, and as an entry of the index."""
    name = f"{package.replace('-', '_')}-{version}-py3-none-manylinux2014_{MACHINE}.whl"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in members.items():
            wheel.writestr(path, content)
    with open(f"site/wheels/{name}", "wb") as f:
        f.write(data.getvalue())
    return {"filename": name, "url": f"../../wheels/{name}", "size": len(data.getvalue()), "yanked": False,
            "digests": {"sha256": hashlib.sha256(data.getvalue()).hexdigest()}}


def write_index(package, releases):
    os.makedirs(f"site/pypi/{package}", exist_ok=True)
    info = {"license": "LicenseRef-NVIDIA-Proprietary", "license_expression": None}
    with open(f"site/pypi/{package}/json", "w") as f:
        json.dump({"info": info, "releases": releases}, f)


def make_site():
    os.makedirs("site/wheels")
    so = a_library()
    nvrtc = {"nvidia/cuda_nvrtc/lib/libnvrtc.so.12": so, "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9": b"built in",
             "nvidia/cuda_nvrtc/lib/libnvrtc.alt.so.12": b"another one", "nvidia/cuda_nvrtc/include/nvrtc.h": b"// header",
             "nvidia_cuda_nvrtc_cu12-12.10.1.dist-info/License.txt": b"NVIDIA's terms"}
    newest = make_wheel("nvidia-cuda-nvrtc-cu12", "12.10.1", nvrtc)
    foreign = {**newest, "filename": newest["filename"].replace(MACHINE, "riscv128")}
    write_index("nvidia-cuda-nvrtc-cu12", {
        "12.9.86": [{**newest, "url": "../../wheels/older"}], "12.10.1": [foreign, newest],
        "12.11.0": [{**newest, "yanked": True}], "12.12.0rc1": [{**newest, "url": "../../wheels/candidate"}],
        "12.13.0": [foreign], "12.14.0": [], "13.0.1": [{**newest, "url": "../../wheels/other-major"}]})
    cublas = make_wheel("nvidia-cublas-cu12", "12.1.0.26", {
        "nvidia/cublas/lib/libcublasLt.so.12": so, "nvidia/cublas/lib/libcublas.so.12": b"not wanted",
        "nvidia_cublas_cu12-12.1.0.26.dist-info/License.txt": b"NVIDIA's terms"})
    write_index("nvidia-cublas-cu12", {"12.1.0.26": [cublas]})


def here_already():
    done = run(*GET, "--mirror", "nowhere")
    if "without lib" in done.stderr or "is here" in done.stdout:
        print(f"SKIP: {(done.stderr or done.stdout).strip()}")
        sys.exit(77)


def files_of(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


def asked_first(server):
    refused([*GET, "--mirror", f"{server.url}/pypi"], 2, "would be downloaded", "--yes", stdin=subprocess.DEVNULL)
    check(not any("whl" in path for path, _ in server.requests), "nothing is fetched unasked")
    for answer, code in (b"\n", 1), (b"n\n", 1):
        mine, theirs = pty.openpty()
        process = subprocess.Popen([STOKER, *GET, "--mirror", f"{server.url}/pypi"], stdin=theirs, stdout=theirs)
        os.write(mine, answer)
        check(process.wait(timeout=TIMEOUT) == code, f"{answer}: nothing is fetched")
        said = os.read(mine, 65536).decode()
        os.close(mine)
        os.close(theirs)
        check("[y/N]" in said and "nothing was downloaded" in said, f"it asks: {said!r}")
    check(not os.path.exists("cache/cuda"), "no folder is made")


def fetched(server):
    cut = RangeServer("site", lambda n, path: "404" if "cublas" in path and path.endswith("whl") else None)
    refused([*GET, "--yes", "--mirror", f"{cut.url}/pypi"], 1, "404", lines=None)
    cut.close()
    nvrtc = "cache/cuda/nvidia-cuda-nvrtc-cu12-12.10.1"
    check(files_of(nvrtc) == ["nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
                              "nvidia_cuda_nvrtc_cu12-12.10.1.dist-info/License.txt", "stoker-source.txt"],
          f"the libraries and the licence alone: {files_of(nvrtc)}")
    done = accepted([*GET, "--yes", "--mirror", f"{server.url}/pypi"], "NVRTC     is here", "cuBLASLt  is missing",
                    "licence: LicenseRef-NVIDIA-Proprietary", "sha256:", "nvidia-cublas-cu12 12.1.0.26")
    check("nvidia-cuda-nvrtc-cu12" not in done.stdout.replace(nvrtc, ""), "what is here is not fetched again")
    check(files_of("cache/cuda/nvidia-cublas-cu12-12.1.0.26")[0] == "nvidia/cublas/lib/libcublasLt.so.12", "cuBLASLt")
    accepted([*GET, "--mirror", "nowhere"], "nothing is missing")


def wrong_bytes():
    shutil.rmtree("cache")
    path = "site/pypi/nvidia-cuda-nvrtc-cu12/json"
    with open(path) as f:
        index = f.read()
    broken = json.loads(index)
    broken["releases"]["12.10.1"][1]["digests"]["sha256"] = "0" * 64
    with open(path, "w") as f:
        json.dump(broken, f)
    refused([*GET, "--yes", "--mirror", "site/pypi"], 1, "checksum", lines=None)
    check(not os.path.exists("cache/cuda/nvidia-cuda-nvrtc-cu12-12.10.1"), "nothing of it is unpacked")
    for text, words in (index[:40], "is not JSON"), ("{}", "no wheel"), ('{"releases": 3}', "no wheel"), \
            (index.replace('"sha256"', '"md5"'), "no checksum"):
        with open(path, "w") as f:
            f.write(text)
        refused([*GET, "--yes", "--mirror", "site/pypi"], 1, words, lines=None)


def messages():
    refused(["get", "cuda-libs", "--cuda", "11"], 2, "--cuda")
    refused([*GET, "--seed", "1"], 2, "'cuda-libs' takes")
    refused([*GET, "--out", "elsewhere"], 2, "'cuda-libs' takes")
    refused(["get", "cuda-lib"], 2, "did you mean 'cuda-libs'?")
    accepted(["get", "--list"], "cuda-libs: ")
    refused(["get", "cuda-libs"], 1, "no driver", env={**os.environ, "STOKER_CUDA": "/no/such.so"}, lines=None)
    refused(GET, 1, "cannot load NVRTC, STOKER_NVRTC", env={**os.environ, "STOKER_NVRTC": "/no/such.so"})


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(WORK)
os.chdir(WORK)
for variable in "STOKER_NVRTC", "STOKER_CUBLASLT", "VIRTUAL_ENV", "CONDA_PREFIX":
    os.environ.pop(variable, None)
os.environ["STOKER_CACHE"] = os.path.abspath("cache")
here_already()
make_site()
site = RangeServer("site")
asked_first(site)
fetched(site)
wrong_bytes()
messages()
site.close()
end()
