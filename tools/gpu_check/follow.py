#!/usr/bin/env python3
"""One of the trainings of tests/cli/test_gpu.py, compared with the processor's losses on a device that is named.

usage: follow.py STOKER WORK_FOLDER DEVICE NAME STEPS     0: as many as the test has
"""
import os
import shutil
import sys
from pathlib import Path

DEVICE, NAME, N_STEPS = sys.argv[3], sys.argv[4], int(sys.argv[5])
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/cli"))
# What the test reads when it is loaded; its own device needs no number.
sys.argv = [*sys.argv[:3], "--device", "cuda" if DEVICE.startswith("cuda") else "opencl"]
import program  # noqa: E402
import test_gpu  # noqa: E402

shutil.rmtree(program.WORK, ignore_errors=True)
os.makedirs(program.WORK)
os.chdir(program.WORK)
test_gpu.follows(NAME, DEVICE, N_STEPS or None)
sys.exit(1 if program.n_failed else 0)
