#!/usr/bin/env python3
"""strict: checkpoints of 1, 2 and 8 replicas, and of four processes of Open MPI and MPICH, are the same byte by byte.

usage: test_strict.py STOKER WORK_FOLDER
"""
import shutil

from program import accepted, begin, check, end, losses, refused
from test_ranks import LAUNCHERS, launch, write_network


def content(folder, step):
    """Of a checkpoint, byte by byte."""
    files = []
    for name in ("model", "optimizer"):
        with open(f"{folder}/step-{step}/{name}.safetensors", "rb") as f:
            files.append(f.read())
    return files


def strict():
    """The same bits for 1, 2 and 8 replicas, with batch norm, dropout and clipping, and where their number changes half-way."""
    for name, text in (("resnet", "precision: bf16\n"), ("bert", "")):
        write_network(name)
        with open(f"{name}.yaml") as f:
            recipe = f.read().replace("sync_batch_norm: true\n", "").replace("checkpoint: {end: false}", "strict: 8")
        with open("strict.yaml", "w") as f:
            f.write(recipe.replace("precision: f32\n", text) if text else recipe)
        for n in (1, 2, 8):
            shutil.rmtree(f"strict-{n}", ignore_errors=True)
            accepted(["train", "strict.yaml", "--out", f"strict-{n}", "--replicas", str(n), "--threads", "1", "--steps", "4"])
            check(len(losses("strict-1")) == 4 and losses("strict-1") == losses(f"strict-{n}"),
                  f"strict {name} {text!r}: {losses('strict-1')} and with {n} replicas {losses(f'strict-{n}')}")
            check(content("strict-1", 4) == content(f"strict-{n}", 4), f"strict {name} {text!r}: {n} replicas have the same bits")
    accepted(["train", "strict.yaml", "--out", "strict-parts", "--replicas", "8", "--threads", "1", "--steps", "2"])
    accepted(["train", "strict.yaml", "--out", "strict-parts", "--replicas", "2", "--threads", "1", "--steps", "4", "--resume"])
    check(content("strict-1", 4) == content("strict-parts", 4), "strict: another number of replicas goes on with the same bits")
    for change, text in ((["--threads", "1", "--replicas", "3"], "8 parts of a batch cannot be shared by 3 replicas"),
                         (["--replicas", "2"], "give that number as 'threads'"),
                         (["--threads", "1", "--set", "strict=6"], "6 is not a power of two"),
                         (["--threads", "1", "--batch", "12"], "strict: a batch of 12 cannot be shared by 8"),
                         (["--threads", "1", "--set", "accumulate=2"], "leave out micro_batch and accumulate"),
                         (["--threads", "1", "--set", "sum_precision=bf16"], "leave out sync, sync_batch_norm, sum_precision")):
        refused(["train", "strict.yaml", "--out", "no", *change], 1, text)


def processes(name, launcher):
    """On one host, and as if on several."""
    folder = f"{name}-strict".replace(" ", "-")
    for hosts in ({}, {"STOKER_MPI_SHARED": "off"}):
        shutil.rmtree(folder, ignore_errors=True)
        code, text = launch(launcher, 4, "strict.yaml", "--out", folder, "--threads", "1", "--steps", "4", **hosts)
        check(code == 0 and content(folder, 4) == content("strict-1", 4), f"{name}, strict: the bits of one device: {text}")


def order(launcher):
    code, text = launch(launcher, 2, "strict.yaml", "--out", "no", "--threads", "1", STOKER_MPI_ORDER="off")
    check(code != 0 and "strict: STOKER_MPI_ORDER=off" in text, f"MPI's own order: {code} {text}")


def main():
    begin()
    strict()
    for name, (launcher, _) in LAUNCHERS.items():
        if shutil.which(launcher[0]):
            processes(name, launcher)
            order(launcher)
        else:
            print(f"SKIP '{name}' is not installed: {launcher[0]}")
    end()


if __name__ == "__main__":
    main()
