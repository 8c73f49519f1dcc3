#!/usr/bin/env python3
"""Ranks that meet in each step, each under a `stoker watch` of its own: makes the recordings next to this file (whose
hosts were named node0 to node2 afterwards).

usage: make.py WATCH FOLDER             all recordings
       make.py rank N PORT MS SECONDS   one rank: works MS a step, then waits for rank 0, which waits for all
"""
import os
import socket
import subprocess
import sys
import time

N_RANKS = 3
# Milliseconds that ranks work in a step. Of "fails" the last one fails: its number of seconds is negative.
JOBS = {"slow": ([5, 36, 5], 9), "fails": ([8, 8, 8], 9)}


def work(ms):
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end:
        sum(range(300))


def rank(i, port, ms, seconds):
    begin, peers = time.time(), []
    if i == 0:
        server = socket.create_server(("127.0.0.1", port))
        peers = [server.accept()[0] for _ in range(N_RANKS - 1)]
    else:
        for _ in range(100):
            try:
                peers = [socket.create_connection(("127.0.0.1", port))]
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
    try:
        while True:
            work(ms)
            if time.time() - begin > abs(seconds) and (i == 0 or seconds < 0):
                sys.exit(9 if seconds < 0 else 0)
            # All give a byte to the first one, which answers once it has all.
            if i == 0:
                for peer in peers:
                    assert peer.recv(1)
                for peer in peers:
                    peer.sendall(b"x")
            else:
                peers[0].sendall(b"x")
                if not peers[0].recv(1):
                    break
    except (AssertionError, ConnectionError):
        time.sleep(1)  # as launchers give the others some time
        sys.exit(0)


def run(watch, folder, name, port):
    works, seconds = JOBS[name]
    ranks = []
    for i in range(N_RANKS):
        of_one = -6 if name == "fails" and i == 2 else seconds
        command = [sys.executable, os.path.abspath(__file__), "rank", str(i), str(port), str(works[i]), str(of_one)]
        ranks.append(subprocess.Popen([watch, "--quiet", "--record", f"{folder}/{name}-%r.rec", "--", *command],
                                      env={**os.environ, "RANK": str(i)}, stderr=subprocess.DEVNULL))
    return [r.wait() for r in ranks]


if sys.argv[1] == "rank":
    rank(*(int(x) for x in sys.argv[2:6]))
else:
    for number, job in enumerate(JOBS):
        print(job, run(os.path.abspath(sys.argv[1]), sys.argv[2], job, 29500 + number))
