#!/usr/bin/env python3
"""What people see: lines that fit into a terminal, the bar, numbers as people write them, colour.

usage: test_screen.py STOKER WORK_FOLDER
"""
import os
import re
import time

from program import begin, check, end, run
from terminal import columns_of, pictures, run_in_terminal, too_wide

SMALL = ["train", "small.yaml"]


def is_one_word(line):
    """An address or a path has no place to break it."""
    return " " not in re.sub(r"^ *(\S+  +)?", "", line)


def nothing_is_broken_in_a_word_at_80_columns():
    with open("text.txt", "w") as f:
        f.write("to be or not to be\n" * 20)
    commands = [SMALL + ["--out", "runs/a"], ["eval", "runs/a"], ["plan", "small.yaml"], ["models"],
                ["models", "resnet18"], ["devices"], ["get", "--list"], ["get", "digits", "--out", "more", "--train", "50", "--test", "5"],
                ["data", "bench", "small.yaml", "--seconds", "1"], ["data", "explain", "small.yaml", "--seconds", "1"],
                ["data", "lint", "small.yaml"], ["data", "verify", "small.yaml"],
                ["data", "show", "small.yaml", "--out", "sheet.png"], ["report", "runs/a"], ["top", "--once"],
                ["top", "--once", "runs/a"], ["watch", "--signals"], ["watch", "--", "sleep", "0.5"],
                ["pack", "digits/train", "--out", "packed"], ["pack", "--verify", "packed"], ["index", "digits/train"],
                ["tokenize", "text.txt", "--tokenizer", "bytes", "--out", "t.bin"],
                ["tokenizer", "train", "text.txt", "--vocab", "300", "--out", "t.json"],
                ["export", "runs/a", "--onnx"], ["export", "runs/a", "--safetensors"], ["new", "first"],
                SMALL + ["--set", "nowhere=1"], SMALL + ["--set", "optimzer.lr=1"], ["train", "nowhere/at/all.yaml"],
                SMALL + ["--memory", "10KiB", "--out", "runs/b"], ["watch", "--nothing"], ["data", "nothing", "x"]]
    images = [os.path.join("digits/test/3", name) for name in sorted(os.listdir("digits/test/3"))[:1]]
    commands.append(["predict", "runs/a", *images])
    for i, args in enumerate(commands):
        for columns in (80, 50) if 0 < i < 6 else (80,):
            text = run_in_terminal(args, columns)[1]
            wide = [line for line in too_wide(text, columns) if not is_one_word(line)]
            check(text and not wide, f"stoker {' '.join(args)} in {columns} columns: {wide}")


def commands_to_copy_are_whole():
    """Below the line, where they do not fit behind it."""
    name = "a-name-that-leaves-no-room-behind-it"
    lines = pictures(run_in_terminal(["new", name], 80)[1])
    check(lines == [f"wrote {name}.yaml; train it with:", f"  stoker train {name}.yaml"], f"a command of its own line: {lines}")


def interrupt_breaks_no_line():
    """The terminal's echo of Ctrl-C takes no line of its own, and the command to go on with is in one piece."""
    more = ["--out", "runs/a-name-that-is-long-enough", "--set", "data.train.shuffle=true", "--epochs", "100000"]
    code, text = run_in_terminal([*SMALL, *more], 80, stop_after="─")
    said = "stoker: finishing the step, then saving"
    before = text[:text.index(said)] if said in text else ""
    check(code == 130 and re.search(r"[\r\n]\^C\r\x1b\[K$", before), f"^C takes the place of the moving line: {before[-200:]!r}")
    check(f"\n  stoker train small.yaml {' '.join(more)} --resume" in text.replace("\r\n", "\n"), f"whole: {text[-400:]!r}")


def bar_is_there_from_40_to_200_columns():
    for columns in 40, 80, 200:
        text = run_in_terminal([*SMALL, "--out", f"runs/bar{columns}"], columns)[1]
        lines = [line for line in pictures(text) if "━" in line or "─" in line]
        check(lines and all("loss" in line for line in lines), f"a bar in {columns} columns: {pictures(text)}")
        lengths = {len(re.search("[━╸─]+", line).group()) for line in lines}
        check(lines and min(lengths) >= 10, f"of 10 characters or more in {columns} columns: {lengths}")
        check(all(columns_of(line) < columns for line in lines), f"it leaves the last of {columns} columns free")
    text = run_in_terminal([*SMALL, "--out", "runs/ascii"], 80, env={"LC_ALL": "C"})[1]
    check("━" not in text and re.search("#*-{9,}|#{10,}", text), f"a bar without UTF-8: {pictures(text)}")
    for args in (["get", "digits", "--out", "digits-bar", "--train", "300", "--test", "5"], ["data", "verify", "small.yaml"], ["index", "digits/test"],
                 ["pack", "digits/test", "--out", "packed-bar"]):
        begun = time.monotonic()
        text = run_in_terminal(args, 60)[1]
        is_short = time.monotonic() - begun < 1  # too short for a bar
        check(("━" in text or is_short) and "#" not in text, f"one style of bar: stoker {args}: {pictures(text)[:3]}")


def numbers_are_written_as_people_do():
    done = run("train", "small.yaml", "--out", "runs/large", "--set", "optimizer={sgd: {lr: 30}}", "--set", "epochs=1")
    plan = run("plan", "small.yaml")
    for text in done.stdout + done.stderr, plan.stdout:
        check(not re.search(r"\d[eE][+-]?\d\d", text), f"no exponents: {text}")
    check(re.search(r"expected \S+ (us|ms|s), [\d,.]+ samples/s", plan.stdout), f"the plan's speed: {plan.stdout}")


def colour_is_there_where_the_terminal_has_it():
    wrong = ["train", "nowhere.yaml"]
    red = "\x1b[1;31mstoker:"
    check(red in run_in_terminal(wrong)[1], "an error begins in red on a terminal")
    check("\x1b" not in run_in_terminal(wrong, env={"NO_COLOR": "1"})[1], "NO_COLOR")
    check("\x1b" not in run_in_terminal(wrong, env={"TERM": "dumb"})[1], "a dumb terminal")
    check("\x1b" not in run(*wrong).stderr, "a pipe")
    check(red in run(*wrong, env={**os.environ, "CLICOLOR_FORCE": "1"}).stderr, "CLICOLOR_FORCE")
    check("\x1b[1mepoch" in run_in_terminal([*SMALL, "--out", "runs/bold"])[1], "epochs are bold")


begin()
nothing_is_broken_in_a_word_at_80_columns()
commands_to_copy_are_whole()
interrupt_breaks_no_line()
bar_is_there_from_40_to_200_columns()
numbers_are_written_as_people_do()
colour_is_there_where_the_terminal_has_it()
end()
