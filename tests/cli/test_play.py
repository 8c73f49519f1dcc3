#!/usr/bin/env python3
"""Trainings on the device 'cuda', on the played GPU (tests/device/play): they follow the processor's losses, whatever the
order that its streams are in; a step is one launch; runs go on on other devices; and every failure has its text.

usage: test_play.py STOKER WORK_FOLDER PLAY_FOLDER

Where there is no PoCL, all of this is skipped (Debian: pocl-opencl-icd).
"""
import json
import os
import shutil
import sys

import test_gpu
from program import STOKER, accepted, begin, check, end, losses, refused, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "watch"))
import meter  # noqa: E402: the path comes first

PLAY = os.path.abspath(sys.argv[3])
TRAININGS = ("cifar-cnn", "gpt2", "bert")
LIBRARIES = {"STOKER_CUDA": "libcuda.so.1", "STOKER_NVRTC": "libnvrtc.so.13", "STOKER_CUBLASLT": "libcublasLt.so.13",
             "STOKER_CUDNN": "libcudnn.so.9"}


def played(**settings):
    """The environment with the played GPU's settings: CHIP="..." is STOKER_PLAY_CHIP."""
    return {**os.environ, **{f"STOKER_PLAY_{name}": str(value) for name, value in settings.items()}}


def train(recipe, out, steps, *args, env=None, device="cuda"):
    return accepted(["train", recipe, "--device", device, "--steps", str(steps), "--out", out, *args], env=env)


def count(recipe, steps, **settings):
    """What the played driver counted in a run of so many steps."""
    shutil.rmtree("counted", ignore_errors=True)
    train(recipe, "counted", steps, env=played(COUNTS="counts.json", **settings))
    with open("counts.json") as f:
        return json.load(f)


def counts_a_step():
    """Ten steps more: what they add is what a step is."""
    for name in TRAININGS:
        few, many = count(f"{name}.yaml", 12), count(f"{name}.yaml", 22)
        step = {key: (many[key] - few[key]) / 10 for key in many if many[key] != few[key]}
        per = lambda key: step.get(key, 0)
        print(f"{name}: a step is {per('graph_work'):g} pieces of work in {per('cuGraphLaunch'):g} launch, with {per('to_device'):g} copies "
              f"to the device before it, {per('on_device'):g} of results and {per('to_host'):g} to the host behind it")
        check(per("cuGraphLaunch") == 1, f"{name}: {per('cuGraphLaunch')} graphs are launched in a step")
        check(per("kernels") + per("products") == per("graph_work"), f"{name}: work outside of the graph: {step}")
        check(per("unpinned") == 0, f"{name}: {per('unpinned')} copies of memory that is not pinned")
        for call in ("cuMemAlloc", "cuMemHostAlloc", "cuMemsetD8Async", "cuModuleLoadDataEx", "cuStreamBeginCapture", "cuEventCreate",
                     "cuStreamSynchronize", "cuEventSynchronize", "cuLaunchKernel"):
            check(per(call) == 0, f"{name}: {per(call)} calls of {call} in a step")
        # Inputs, and the values that are set, go in; results and faults come out, and are read when they have come.
        check(per("cuMemcpyAsync") == per("to_device") + per("on_device") + per("to_host") <= 10, f"{name}: {step}")
        check(per("to_host_bytes") < 4096, f"{name}: {per('to_host_bytes')} bytes to the host in a step")


def keeps_its_order():
    """The same bits, however streams overtake each other."""
    train("cifar-cnn.yaml", "order-0", 12)
    for order in range(1, 8):
        train("cifar-cnn.yaml", f"order-{order}", 12, env=played(ORDER=order))
        check(losses("order-0") == losses(f"order-{order}"), f"order {order} has other losses")


def goes_on():
    """cpu -> cuda -> opencl -> cpu, near a run on the processor alone; and cuda repeats itself bit by bit."""
    accepted(["train", "small.yaml", "--out", "alone", "--steps", "18"])
    for device, steps in (("cpu", 4), ("cuda", 9), ("opencl", 14), ("cpu", 18)):
        train("small.yaml", "changed", steps, *(["--resume"] if steps > 4 else []), device=device)
    a, b = losses("alone"), losses("changed")
    check(len(b) == 18 and a[:4] == b[:4], "the steps before the change are the same")
    check(max(abs(x - y) for x, y in zip(a, b)) < 1e-3, f"{a} and {b}")
    train("small.yaml", "once", 8)
    train("small.yaml", "parts", 5)
    train("small.yaml", "parts", 8, "--resume", env=played(ORDER=5))
    check(losses("once") == losses("parts"), "a run that was resumed has the same bits")


def takes_tf32():
    """Where it is asked for: near f32, and not f32."""
    for name in ("cifar-cnn", "gpt2"):
        train(f"{name}.yaml", f"{name}-tf32", 10, "--precision", "tf32")
        a, b = losses(f"{name}-cuda")[:10], losses(f"{name}-tf32")
        off = max(abs(x - y) / max(1, abs(x)) for x, y in zip(a, b))
        print(f"{name} in TF32: at most {off:.1e} from f32 in 10 steps")
        check(len(b) == 10 and 0 < off < 1e-2, f"{name}: TF32 is {off:.1e} from f32")
    fails(["tf32", "compute capability 8.0"], "--precision", "tf32", CHIP="capability=7.5")


def fails(words, *args, code=1, lines=None, **settings):
    env = played(**settings)
    shutil.rmtree("failed", ignore_errors=True)
    return refused(["train", "small.yaml", "--device", "cuda", "--steps", "8", "--out", "failed", *args], code, *words,
                   lines=lines, env=env)


def says_what_failed():
    """In the middle of a run; what was saved before it goes on."""
    graph = "a program of "
    fails([graph, "memory that is not there", "CUDA_ERROR_ILLEGAL_ADDRESS, 700", "STOKER_CUDA_GRAPHS=0"], FAIL="cuGraphLaunch:7:700")
    train("small.yaml", "failed", 8, "--resume")
    train("small.yaml", "whole", 8)
    check(losses("failed") == losses("whole"), "a run whose GPU failed goes on from its checkpoint with the same bits")
    fails([graph, "ECC", "214"], FAIL="cuGraphLaunch:3:214")
    fails([graph, "719"], FAIL="cuGraphLaunch:3:719")
    fails(["the device's memory does not suffice", "OUT_OF_MEMORY, 2", "free"], FAIL="cuMemAlloc:10:2")
    os.environ["STOKER_GPU_TIMEOUT"] = "1"
    fails([graph, "has not ended after 1 s (STOKER_GPU_TIMEOUT)", "STOKER_CUDA_GRAPHS=0"], HANG=5)
    os.environ["STOKER_CUDA_GRAPHS"] = "0"
    fails(["kernel '", "has not ended after 1 s"], HANG="cuLaunchKernel:200")
    del os.environ["STOKER_GPU_TIMEOUT"]
    fails(["kernel '", "number ", "CUDA_ERROR_ILLEGAL_ADDRESS, 700"], FAIL="cuLaunchKernel:200:700")
    del os.environ["STOKER_CUDA_GRAPHS"]


def says_what_is_wrong():
    """Before a run: drivers, chips and memory that will not do."""
    fails(["CUDA 11.8", "12.0 is wanted"], DRIVER=11080)
    fails(["has no cuGraphUpload"], MISSING="cuGraphUpload")
    fails(["NVRTC 13.0", "CUDA 12.8", "an older NVRTC, or a newer driver"], DRIVER=12080)
    fails(["no GPU", "CUDA_VISIBLE_DEVICES"], FAIL="cuInit:1:100")
    fails(["nvidia-fabricmanager"], FAIL="cuInit:1:802")
    fails(["compute capability 7.0", "7.5 is wanted"], CHIP="capability=7.0")
    fails(["7.9", "this NVRTC does not know"], CHIP="capability=7.9")
    fails(["free"], CHIP="memory=256MiB", OTHERS="255MiB")
    fails(["the limit is 65536 bytes"], "--memory", "64KiB")
    fails(["cuda:7", "from 0 on"], "--device", "cuda:7")
    for library, words in (("STOKER_CUDA", "/no/such.so"), ("STOKER_NVRTC", "cannot load NVRTC"), ("STOKER_CUBLASLT", "/no/such.so"),
                           ("STOKER_CUDNN", "cannot load cuDNN")):
        env = {**os.environ, library: "/no/such.so"}
        refused(["train", "small.yaml", "--device", "cuda", "--out", "no"], 1, words, lines=None, env=env)
    check(not os.path.exists("no"), "no run folder is left")


def names_chips():
    two = json.loads(accepted(["devices", "--json"], env=played(CHIP="chips=2,name=Twin")).stdout)["devices"]
    check([d["number"] for d in two if d.get("chip") == "Twin"] == [0, 1], f"two chips: {two}")
    slice_ = played(CHIP="mig=1,name=H100")
    text = accepted(["devices"], "MIG-5a7fa4c9", "H100 MIG 1g.10gb", env=slice_).stdout
    check("cuda" in text, text)
    train("small.yaml", "slice", 2, env=slice_, device="cuda:MIG-5a7f")
    train("small.yaml", "second", 2, env=played(CHIP="chips=2"), device="cuda:1")
    train("small.yaml", "best", 2, device="gpu")
    check(losses("slice") == losses("second") == losses("best"), "all chips compute the same")


def copies_are_measured():
    """stoker bench part copy: each way, and from one chip to the other, also where these do not reach each other."""
    for chip in "chips=2", "chips=2,peers=0":
        env = played(CHIP=chip, COUNTS="copies.json")
        for way in (["in"], ["out"], ["on"], ["to", "--to", "cuda:1"]):
            done = accepted(["bench", "part", "copy", "1", *way, "--device", "cuda:0", "--seconds", "0"], "GB/s", env=env)
            check(float(done.stdout.split()[0].replace(",", "")) > 0, f"{way}: {done.stdout}")
            with open("copies.json") as f:
                counts = json.load(f)
            check(counts["unpinned"] == 0 and counts["cuCtxEnablePeerAccess"] == (way[0] == "to" and chip == "chips=2"), f"{way}: {counts}")
    refused(["bench", "part", "copy", "1", "to", "--to", "opencl", "--device", "cuda"], 1, "do not copy to each other")
    refused(["bench", "part", "copy", "1", "to", "--device", "cuda"], 1, "go together")
    refused(["bench", "part", "copy", "1", "to", "--to", "cuda:1", "--device", "cuda"], 1, "1 device here")


def keeps_to_the_link():
    """No copy to a GPU is faster than its link: 63 GB/s by 16 lanes of the fifth generation."""
    library = f"{os.path.dirname(STOKER)}/tests/libfake_nvml.so"
    if not os.path.exists(library):
        print("SKIP the link: the played NVML is not built")
        return
    meter.make("meter")
    env = {**played(), "FAKE_NVML_METER": os.path.abspath("meter")}
    for figure, device, is_good in (62, "cuda", True), (70, "cuda", False), (70, "cpu", True):
        with open("link.yaml", "w") as f:
            f.write(f"name: link\nseconds: 20\nruns: 5\nwarmup: 0\ncases:\n  - {{name: copy, run: 'echo {figure} GB', pattern: '([0-9]+) GB', unit: GB/s, limit: link}}\n")
        command = ["bench", "--suite", "link.yaml", "--most-runs", "5", "--nvml", library, "--device", device, "--out", f"link-{device}{figure}"]
        if is_good:
            accepted(command, env=env)
        else:
            refused(command, 1, "is possible", env=env)


if __name__ == "__main__":
    for variable, name in LIBRARIES.items():
        os.environ.setdefault(variable, os.path.join(PLAY, name))
    begin()
    listed = json.loads(run("devices", "--json").stdout)["devices"]
    here = [d for d in listed if d["name"] == "cuda" and d["available"]]
    if not here:
        print("SKIP:", [d["detail"] for d in listed if d["name"] == "cuda"])
        sys.exit(77)
    print("on", here[0]["detail"])
    for name in TRAININGS:
        test_gpu.follows(name, "cuda")
    test_gpu.choices("cuda")
    counts_a_step()
    keeps_its_order()
    goes_on()
    takes_tf32()
    says_what_failed()
    says_what_is_wrong()
    names_chips()
    copies_are_measured()
    keeps_to_the_link()
    end()
