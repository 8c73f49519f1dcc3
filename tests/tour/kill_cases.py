"""`kill -9` at each phase, and what damaged or half-moved checkpoints leave to go on from."""
import glob
import os
import shutil

from input_cases import cut, damage
from machine_cases import WHOLE
from place import expect, losses

CASES = []


def case(title, kept):
    """title: what was done; kept: what a user still has afterwards."""
    def add(function):
        CASES.append((title, kept, function))
        return function
    return add


@case("`kill -9` before the first step", "the same command works again")
def _(place):
    place.killed(3, "run", "train", "r.yaml", "--out", "run")
    expect(not os.path.exists(place.path("run/metrics.jsonl")), "it was killed behind its first step")
    said = place.text, place.code
    place.train("--resume", "--steps", "6").says(0)
    place.text, place.code = said
    place.goes_on(WHOLE, 6)


@case("`kill -9` between two checkpoints", "the last checkpoint; its losses go on bit for bit")
def _(place):
    # Step 10; what was saved at step 6 is whole before step 9 is saved.
    place.killed(10, "run/metrics.jsonl", "train", "r.yaml", "--out", "run")
    place.goes_on(WHOLE, 6)


@case("`kill -9` while a checkpoint is written", "the one before; its losses go on bit for bit")
def _(place):
    place.killed(35, "run/.saving", "train", "r.yaml", "--out", "run", "--set", "checkpoint.every=1 step")
    expect(os.path.isdir(place.path("run/.saving")), "there is no half checkpoint")
    place.goes_on(WHOLE)


@case("`kill -9` while the test at the end runs", "the last checkpoint; the test is done by --resume")
def _(place):
    # The first call removes what an earlier run left, the second gives the result its name.
    place.killed(2, "run/result", "train", "r.yaml", "--out", "run", "--epochs", "3")
    expect(30 in place.checkpoints(), f"checkpoints {place.checkpoints()}, where step 30 was saved")
    said = place.code
    place.train("--resume", "--epochs", "3").says(0)
    expect(os.path.exists(place.path("run/result.json")), "the test has no result")
    place.text, place.code = "(killed)", said


@case("`kill -9` while data are packed", "the folder that was packed; the same command works again")
def _(place):
    place.killed(9, "packed", "pack", "digits/train", "--out", "packed")
    said = place.code
    place.run("pack", "digits/train", "--out", "packed")
    place.run("pack", "--verify", "packed").says(0)
    place.text, place.code = "(killed)", said


@case("`kill -9` while digits are made", "the same command works again")
def _(place):
    place.killed(1500, ".stoker-tmp", "get", "digits", "--out", "d", "--train", "3000", "--test", "20")
    said = place.code
    expect(not os.path.exists(place.path("d")), "what is half made has its own name")
    place.run("get", "digits", "--out", "d", "--train", "100", "--test", "20").says(0)
    left = [n for n in os.listdir(place.folder) if n.startswith(("d.", ".d", ".stoker"))]
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
