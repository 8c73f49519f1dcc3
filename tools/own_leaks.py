#!/usr/bin/env python3
"""Reads logs of the leak sanitizer from a process of Python, which never frees all that it has, and shows what our code allocated.

usage: own_leaks.py [LOG...]

Fails where a block's stack, from its allocation to the first function of the interpreter, has a function of the module stoker._core; and
for any error that is no leak.
"""
import re
import sys

OWN = "_core.abi3.so"


def is_own(block):
    frames = [line for line in block.splitlines() if re.match(r"\s+#\d+ ", line)]
    for frame in frames[1:]:  # the first one is the sanitizer's
        if OWN in frame or "/python/src/" in frame or "/src/" in frame and "stoker" in frame:
            return True
        if re.search(r"\b_?Py[A-Z]\w*", frame):
            return False  # an object of Python's, whoever asked for it
    return False


def main():
    n_all, own = 0, []
    for path in sys.argv[1:]:
        if "*" in path:
            continue  # no log, since nothing leaked
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if re.search(r"ERROR: AddressSanitizer", text):
            print(text[:8000])
            return 1
        blocks = re.split(r"(?=^(?:Direct|Indirect) leak of )", text, flags=re.M)[1:]
        n_all += len(blocks)
        own += [block for block in blocks if is_own(block)]
    for block in own[:10]:
        print(block)
    print("leaks: %d of the interpreter's, %d of our own" % (n_all - len(own), len(own)))
    return 1 if own else 0


if __name__ == "__main__":
    sys.exit(main())
