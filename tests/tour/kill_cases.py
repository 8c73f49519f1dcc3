"""`kill -9` at each phase, and what damaged or half-moved checkpoints leave to go on from."""
import glob
import os
import shutil
import signal
import time

from input_cases import cut, damage
from machine_cases import WHOLE
from place import expect, losses, wait_for

CASES = []


def case(title, kept):
    """title: what was done; kept: what a user still has afterwards."""
    def add(function):
        CASES.append((title, kept, function))
        return function
    return add


def kill_when(place, ready, what, *args):
    process = place.start("train", "r.yaml", "--out", "run", *args)
    wait_for(ready, process, what)
    process.send_signal(signal.SIGKILL)
    return place.end(process)


@case("`kill -9` before the first step", "the same command works again")
def _(place):
    process = place.start("train", "r.yaml", "--out", "run")
    time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    place.end(process)
    place.text = "(killed)"
    said = place.text, place.code
    place.train("--resume", "--steps", "6").says(0)
    place.text, place.code = said
    place.goes_on(WHOLE, 6)


@case("`kill -9` between two checkpoints", "the last checkpoint; its losses go on bit for bit")
def _(place):
    kill_when(place, lambda: len(place.checkpoints()) >= 1 and place.checkpoints()[-1] >= 6, "checkpoint 6")
    place.text = "(killed)"
    place.goes_on(WHOLE, 6)


@case("`kill -9` while a checkpoint is written", "the one before; its losses go on bit for bit")
def _(place):
    run = place.path("run")

    def writing():
        return os.path.isdir(run) and place.checkpoints() and any(
            n.startswith("step-") and not n[5:].isdigit() or n.startswith(".") for n in os.listdir(run))

    kill_when(place, writing, "half checkpoint", "--set", "checkpoint.every=1 step")
    place.text = "(killed)"
    place.goes_on(WHOLE)


@case("`kill -9` while the test at the end runs", "the last checkpoint; the test is done by --resume")
def _(place):
    kill_when(place, lambda: 30 in place.checkpoints(), "checkpoint 30", "--epochs", "3")
    place.text, said = "(killed)", place.code
    place.train("--resume", "--epochs", "3").says(0)
    place.text, place.code = "(killed)", said


@case("`kill -9` while data are packed", "the folder that was packed; the same command works again")
def _(place):
    process = place.start("pack", "digits/train", "--out", "packed")
    time.sleep(0.03)
    process.send_signal(signal.SIGKILL)
    place.end(process)
    place.text, said = "(killed)", place.code
    place.run("pack", "digits/train", "--out", "packed")
    place.run("pack", "--verify", "packed").says(0)
    place.text, place.code = "(killed)", said


@case("`kill -9` while digits are made", "the same command works again")
def _(place):
    process = place.start("get", "digits", "--out", "d", "--train", "3000", "--test", "20")
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    place.end(process)
    place.text, said = "(killed)", place.code
    if not os.path.exists(place.path("d")):
        place.run("get", "digits", "--out", "d", "--train", "100", "--test", "20").says(0)
    left = [n for n in os.listdir(place.folder) if n.startswith("d.") or n.startswith(".d")]
    expect(not left, f"leftovers of the killed run stay: {left}")
    place.text, place.code = "(killed)", said


@case("the newest checkpoint is damaged", "the one before, which --resume takes and says so")
def _(place):
    place.train("--steps", "9").says(0)
    damage(place.path(f"run/step-{place.checkpoints()[-1]}/model.safetensors"), 0.9)
    place.train("--resume", "--steps", "12").says(0, "(damaged|checksum)")
    for step, loss in losses(place.path("run")).items():
        expect(WHOLE.get(step, loss) == loss, f"step {step} has another loss than in a whole run")


@case("all checkpoints are damaged", "the files; nothing is begun over them")
def _(place):
    place.train("--steps", "9").says(0)
    for path in glob.glob(place.path("run/step-*/model.safetensors")):
        cut(path)
    kept = place.checkpoints()
    place.train("--resume", "--steps", "12").says(1, "(damaged|cannot|checksum)")
    expect(place.checkpoints() == kept, "a checkpoint is gone")


@case("a damaged checkpoint with a higher number lies there", "the checkpoints that are saved from now on")
def _(place):
    place.train("--steps", "6").says(0)
    for number in (900, 901, 902):
        shutil.copytree(place.path("run/step-6"), place.path(f"run/step-{number}"))
        cut(place.path(f"run/step-{number}/model.safetensors"))
    place.train("--resume", "--steps", "12").says(0)
    expect(12 in place.checkpoints(), f"the checkpoint just saved is gone: {place.checkpoints()}")


@case("only `.old` is left of a checkpoint that was being replaced", "that checkpoint, which --resume takes")
def _(place):
    place.train("--steps", "6").says(0)
    kept = place.checkpoints()
    for number in kept[:-1]:
        shutil.rmtree(place.path(f"run/step-{number}"))
    os.rename(place.path(f"run/step-{kept[-1]}"), place.path("run/.old"))
    place.train("--resume", "--steps", "9")
    expect(place.code == 0 and f"step {kept[-1]}" in place.text, place.line())
