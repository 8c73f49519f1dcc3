#!/usr/bin/env python3
"""A user's tour: wrong and unlucky things, done on purpose. Each must end with the data safe and a line that helps.

usage: tour.py STOKER WORK_FOLDER [--faults LIBRARY] [--table FILE] [--only WORD] [--keep]

Without the library of tests/faults nothing is killed.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

import input_cases
import kill_cases
import machine_cases
from place import Failed, Place, Skip, losses

BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def prepare(stoker, work):
    """The data of all cases, and the losses of a run that nothing happens to."""
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    digits = os.path.join(work, "digits")
    subprocess.run([stoker, "get", "digits", "--out", digits, "--train", "200", "--test", "40"], check=True,
                   stdout=subprocess.DEVNULL)
    place = Place(stoker, os.path.join(work, "whole"), digits)
    place.train("--steps", "120").says(0)
    machine_cases.WHOLE.update(losses(place.path("run")))
    return digits


def shown(text, folder):
    """A line for a table: without the work folder, and short."""
    text = text.replace(folder + "/", "").replace(folder, ".").replace("|", "\\|").strip()
    return text if len(text) <= 160 else text[:157] + "..."


def play(args, work, digits, i_case, case):
    """Returns (verdict, exit code, line, why)."""
    title, _, function = case
    place = Place(os.path.abspath(args.stoker), os.path.join(work, f"case-{i_case}"), digits, args.faults)
    try:
        function(place)
        place.check_mine()
        verdict, why = "ok", ""
    except Skip as reason:
        verdict, why = "skipped", str(reason)
    except Failed as failure:
        verdict, why = "FAILED", str(failure)
    line = shown(place.line(), place.folder)
    if not args.keep and verdict != "FAILED":
        shutil.rmtree(place.folder)
    return verdict, place.code, line, why


def write_table(path, rows):
    table = "| | done | exit code | said | kept |\n|---:|---|---:|---|---|\n"
    for i, (title, kept, verdict, code, line) in enumerate(rows, 1):
        said = f"`{line}`" if verdict == "ok" else verdict
        table += f"| {i} | {title} | {'killed' if code == -9 else code} | {said} | {kept} |\n"
    with open(path) as f:
        page = f.read()
    page = re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{table}{END}", page, flags=re.S)
    with open(path, "w") as f:
        f.write(page)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stoker")
    parser.add_argument("work")
    parser.add_argument("--faults", type=os.path.abspath)
    parser.add_argument("--table")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    stoker, work = os.path.abspath(args.stoker), os.path.abspath(args.work)
    os.environ.pop("STOKER_DATA", None)
    digits = prepare(stoker, work)
    cases = [c for c in input_cases.CASES + machine_cases.CASES + kill_cases.CASES if args.only in c[0]]
    rows, n_failed = [], 0
    for i_case, case in enumerate(cases, 1):
        verdict, code, line, why = play(args, work, digits, i_case, case)
        n_failed += verdict == "FAILED"
        word = "SKIP" if verdict == "skipped" else verdict
        print(f"{word} {case[0]}: {why or line}", flush=True)
        rows.append((case[0], case[1], verdict, code, line))
    if args.table and not args.only:
        write_table(args.table, rows)
    print(f"{len(rows)} cases, {n_failed} failed")
    sys.exit(n_failed > 0)


if __name__ == "__main__":
    main()
