#!/usr/bin/env python3
"""tools/peers.py gets its figures from a run of one epoch, whatever the recipe expects of all of its epochs.

usage: test_peers.py STOKER WORK_FOLDER
"""
import os
import sys
import types

from program import STOKER, accepted, begin, check, end

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")
sys.path.insert(0, TOOLS)
sys.dont_write_bytecode = True
import peers  # noqa: E402: the path comes first

begin()
os.makedirs("build")
os.symlink(STOKER, "build/stoker")
os.symlink(os.path.join(TOOLS, "..", "recipes"), "recipes")
accepted(["get", "digits", "--out", "derived/cifar10", "--size", "32", "--train", "260", "--test", "20"])
peers.HERE = os.getcwd()
args = types.SimpleNamespace(derived=os.path.abspath("derived"), data=os.path.abspath("data"))
_, _, recipe, options, _ = peers.WORKLOADS["cifar-cnn-e2e"]
found = peers.run_stoker(args, "cifar-cnn-e2e", recipe, options)
check(found["value"] > 0 and found["startup_s"] > 0 and found["accuracy"] < 0.75, f"an epoch is measured, however bad: {found}")
end()
