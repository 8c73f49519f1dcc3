"""Runs a command in a terminal of a given width and tells what a person would see."""
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata

from program import STOKER, TIMEOUT

os.environ.pop("COLUMNS", None)


def columns_of(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def run_in_terminal(args, columns=80, rows=24, env=None, program=STOKER, stop_after=None):
    """The exit code and all that came; both standard output and standard error are the terminal. stop_after: Ctrl-C is
    pressed once that has come."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})}
    child = subprocess.Popen([program, *args], stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
                             start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(theirs)
    out, end = b"", time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        if not select.select([ours], [], [], 0.2)[0]:
            continue
        try:
            part = os.read(ours, 65536)
        except OSError: # the last process has closed it
            break
        if not part:
            break
        out += part
        if stop_after and stop_after.encode() in out:
            os.write(ours, b"\x03")
            stop_after = None
    else:
        child.kill()
    os.close(ours)
    return child.wait(), out.decode("utf-8", "replace")


def type_into(command, lines, wanted):
    """Types into a program until `wanted` is on the screen, or too long; returns what came. Lines are (what to wait for
    before, what to type)."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 250, 0, 0))
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                             env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
    os.close(theirs)
    out, end, steps = "", time.monotonic() + TIMEOUT, list(lines)
    while time.monotonic() < end and (steps or wanted not in out):
        if steps and steps[0][0] in out:
            out = ""
            os.write(ours, steps.pop(0)[1].encode())
        if select.select([ours], [], [], 0.2)[0]:
            out += os.read(ours, 65536).decode("utf-8", "replace")
    child.kill()
    child.wait()
    os.close(ours)
    return out


def pictures(text):
    """Each line as it stood on the screen before the next took its place: escapes away, split at \\n and \\r."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.replace("\r\n", "\n"))
    return [line for line in re.split(r"[\r\n]", plain) if line]


def too_wide(text, columns=80):
    """The lines that a terminal of N columns breaks by itself."""
    return [line for line in pictures(text) if columns_of(line) > columns]
