"""Mutants of the core: one small change each, and whether a test notices.

Every mutant is a branch on a number that the environment gives, so that all of them are built once, in a copy of the
sources: `a < b` becomes `(stk_mutant(17) ? (a) <= (b) : (a) < (b))`. Candidates come from clang's syntax tree: real
expressions in the bodies of functions, no macros, no static initialisers, no array sizes, no case labels. One pass over
the quick tests notes which mutants each of them reaches; then each mutant runs the tests that reach it until one fails.

Left behind in build/mutate: mutants.json, reach.json, results.jsonl (a stopped run goes on from it), tree, build.
Reasons of survivors are kept in tools/mutants.txt. As root, mutants run as nobody: they may write to build/mutate alone.
"""
import argparse
import collections
import concurrent.futures
import glob
import hashlib
import json
import mmap
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(ROOT, "build", "mutate")
TREE = os.path.join(WORK, "tree")
BUILD = os.path.join(WORK, "build")
FOLDERS = ["src/engine", "src/passes", "src/graph", "src/ops", "src/optim", "src/train", "src/data/order", "src/data/loader",
           "src/data/source", "src/data/codec", "src/weights", "src/base"]
# They build, install, fuzz or play other processors: nothing that a mutant needs.
NO_TESTS = re.compile(r"^(install|tour|examples|watch)/|^cli/(docs|peers|limits|watch|top)$|test_isa|_avx512|_less_onednn")
# Quick is what takes no longer; a mutant gets no more than BUDGET seconds of tests that pass.
QUICK_S, BUDGET_S, NOBODY = 60, 90, 65534
# Functions that take away files: a wrong path there is not a risk worth taking.
NO_FUNCTION = re.compile(r"\b(unlink|unlinkat|rmdir|remove|truncate|kill)\s*\(")
# What sanitizers and allocations that fail show, and no value: memory that is not given back, its size, its lack.
NO_CALL = re.compile(r"free|close|unload|release|destroy|unlock|trace|advise|reset_peak")
FLIPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/", "/": "*",
           "%": "/", "&&": "||", "||": "&&"}
KINDS = {"<": "boundary", "<=": "boundary", ">": "boundary", ">=": "boundary", "==": "equality", "!=": "equality",
         "&&": "logic", "||": "logic"}

HEADER = """#ifndef STK_MUTANT_H
#define STK_MUTANT_H
extern int stk_mutant_chosen;
extern unsigned char *stk_mutant_map;
static inline int stk_mutant(int i)
{
    if (__builtin_expect(stk_mutant_map != (unsigned char *)0, 0)) stk_mutant_map[i] = 1;
    return stk_mutant_chosen == i;
}
#endif
"""

# At the end of a file that every program has.
CHOOSE = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int stk_mutant_chosen = -1;
unsigned char *stk_mutant_map;
__attribute__((constructor(101))) static void stk_mutant_begin(void)
{
    const char *chosen = getenv("STK_MUTANT"), *file = getenv("STK_MUTANT_MAP");
    if (chosen) stk_mutant_chosen = atoi(chosen);
    int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *map = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) stk_mutant_map = map;
    close(fd);
}
"""


def say(text):
    print("mutate: " + text, flush=True)


# --- candidates ---

def parse(file, flags):
    """The functions that clang finds in the file itself."""
    done = subprocess.run(["clang", "-Xclang", "-ast-dump=json", "-fsyntax-only", "-w", *flags, file], capture_output=True)
    if not done.stdout:
        return []
    tree = json.loads(done.stdout)
    functions = []
    for node in tree.get("inner", []):
        loc = node.get("loc", {})
        if node.get("kind") != "FunctionDecl" or "includedFrom" in loc or "offset" not in loc:
            continue
        body = [part for part in node.get("inner", []) if part.get("kind") == "CompoundStmt"]
        if body and "constructor" not in node.get("name", ""):
            functions.append((node["name"], body[0]))
    return functions


def flags_of(entry):
    words = shlex.split(entry["command"])
    kept = []
    for i, word in enumerate(words):
        if word.startswith(("-I", "-D", "-std", "-m")):
            kept.append(word)
        elif word == "-isystem":
            kept += words[i:i + 2]
    return kept


class Finder:
    """Walks one function; spans are offsets into the file's bytes."""

    def __init__(self, text, function):
        self.text, self.function, self.found = text, function, []

    def point(self, loc):
        """(offset, length, of a macro) of a token; None where it cannot be named."""
        if "expansionLoc" in loc:
            outer = loc["expansionLoc"]
            if outer.get("isMacroArgExpansion") or "offset" not in outer or "includedFrom" in outer:
                return None
            end = outer["offset"] + outer["tokLen"]
            if self.text[end:end + 1] == b"(":
                return None
            return outer["offset"], outer["tokLen"], True
        if "offset" not in loc or "includedFrom" in loc:
            return None
        return loc["offset"], loc["tokLen"], False

    def span(self, node):
        begin, end = self.point(node["range"]["begin"]), self.point(node["range"]["end"])
        if not begin or not end:
            return None
        # One macro that is the whole expression is fine as an operand, and nothing to look into.
        return begin[0], end[0] + end[1], begin[2] and end[2] and begin[0] == end[0]

    def source(self, node):
        span = self.span(node)
        return self.text[span[0]:span[1]].decode() if span else None

    def add(self, kind, node, new, shown=None):
        span = self.span(node)
        if not span or span[2]:
            return
        old = self.text[span[0]:span[1]].decode()
        if "#" in old or len(old) > 400:
            return
        self.found.append({"kind": kind, "begin": span[0], "end": span[1], "function": self.function, "old": old,
                           "new": new, "shown": shown})

    def binary(self, node):
        op, (left, right) = node["opcode"], node["inner"]
        a, b = self.source(left), self.source(right)
        if op not in FLIPPED or a is None or b is None:
            return
        between = self.text[self.span(left)[1]:self.span(right)[0]].decode()
        if re.sub(r"/\*.*?\*/|\s", "", between, flags=re.S) != op:
            return
        types = [part["type"].get("desugaredQualType", part["type"]["qualType"]) for part in (node, left, right)]
        if op in "+-*/%" and "sizeof" in a + b:
            return
        if op in "+-*/%" and any("*" in t or "[" in t for t in types):
            return
        if op == "%" and "double" in types[0]:
            return
        new = FLIPPED[op]
        self.add(KINDS.get(op, "arithmetic"), node, f"({{m}} ? ({a}) {new} ({b}) : ({a}) {op} ({b}))", f"{a} {new} {b}")

    def statement(self, node):
        """A statement of its own: a call whose result nobody reads, or an assignment."""
        kind = node["kind"]
        text = self.source(node)
        if text is None:
            return
        stores = (kind == "BinaryOperator" and node["opcode"] == "=") or kind == "CompoundAssignOperator" or \
            (kind == "UnaryOperator" and node["opcode"] in ("++", "--"))
        called = re.match(r"\s*(?:\(void\)\s*)?(\w+)\s*\(", text)
        calls = kind == "CallExpr" or (kind == "CStyleCastExpr" and node["inner"][0]["kind"] == "CallExpr")
        if (calls and called and not NO_CALL.search(called[1])) or stores:
            self.add("removed", node, f"({{m}} ? (void)0 : (void)({text}))", "")

    def walk(self, node, parent=None):
        kind = node.get("kind")
        if kind in ("ConstantExpr", "UnaryExprOrTypeTraitExpr", "StaticAssertDecl", "EnumDecl", "RecordDecl", "GenericSelectionExpr",
                    "OffsetOfExpr", "TypedefDecl"):
            return
        if kind == "VarDecl" and node.get("storageClass") == "static":
            return
        parts = [part for part in node.get("inner", []) if part.get("kind")]
        if kind == "CompoundStmt":
            for part in parts:
                self.statement(part)
        elif kind in ("IfStmt", "ForStmt", "WhileStmt", "DoStmt"):
            bodies = {"IfStmt": parts[1:], "ForStmt": parts[-1:], "WhileStmt": parts[-1:], "DoStmt": parts[:1]}[kind]
            for part in bodies:
                self.statement(part)
        if kind in ("IfStmt", "WhileStmt", "ConditionalOperator"):
            text = self.source(parts[0])
            if text is not None:
                self.add("negated", parts[0], f"({{m}} ^ !!({text}))", f"!({text})")
        if kind == "BinaryOperator":
            self.binary(node)
        elif kind == "IntegerLiteral" and parent != "ImplicitCastExpr-NullToPointer":
            value = node.get("value", "")
            text = self.source(node)
            if text == value and int(value) < 1 << 30:
                new = int(value) + (1 if int(value) == 0 or node["range"]["begin"]["offset"] % 2 else -1)
                self.add("constant", node, f"({{m}} ? {new} : {value})", str(new))
        elif kind == "ReturnStmt" and parts and parts[0]["kind"] == "CallExpr" and \
                parts[0]["type"]["qualType"] == "stk_status":
            text = self.source(parts[0])
            if text is not None and not text.startswith("stk_fail_memory"):
                self.add("returns OK", parts[0], f"({{m}} ? STK_OK : ({text}))", "STK_OK")
        if kind == "InitListExpr":
            parts = [part for part in parts if part["kind"] != "IntegerLiteral"]
        tag = kind + "-" + node.get("castKind", "") if kind == "ImplicitCastExpr" else kind
        for part in parts:
            self.walk(part, tag)


def tried_calls(text, begin, end, function):
    """STK_TRY(call) and STK_RETURN_IF_ERROR(call): the call is left out."""
    found = []
    for at in re.finditer(rb"\bSTK_(?:TRY|RETURN_IF_ERROR)\(", text[begin:end]):
        from_ = begin + at.end()
        depth, to = 1, from_
        while depth:
            depth += {b"(": 1, b")": -1}.get(text[to:to + 1], 0)
            to += 1
        old = text[from_:to - 1].decode()
        if "stk_fail" not in old and '"' not in old and "STK_FOR" not in old:
            found.append({"kind": "removed", "begin": from_, "end": to - 1, "function": function, "old": old,
                          "new": f"({{m}} ? STK_OK : ({old}))", "shown": ""})
    return found


def candidates(file, flags):
    with open(os.path.join(ROOT, file), "rb") as f:
        text = f.read()
    out = []
    for name, body in parse(os.path.join(ROOT, file), flags):
        begin, end = body["range"]["begin"].get("offset"), body["range"]["end"].get("offset")
        if begin is None or end is None or NO_FUNCTION.search(text[begin:end].decode(errors="replace")):
            continue
        finder = Finder(text, name)
        finder.walk(body)
        out += finder.found + tried_calls(text, begin, end, name)
    for found in out:
        found["file"], found["line"] = file, text.count(b"\n", 0, found["begin"]) + 1
    return out


def choose(args, commands):
    """One point every total/n lines of all files, and a mutant of the file in which it falls."""
    files = sorted(file for folder in args.folders for file in
                   (os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, folder, "**", "*.c"), recursive=True))
                   if file in commands and not re.search(r"_(avx2|avx512|isa)\.c$", file))
    lines = {file: sum(1 for _ in open(os.path.join(ROOT, file), "rb")) for file in files}
    rng = random.Random(args.seed)
    step = sum(lines.values()) / args.n
    at, wanted, passed = rng.random() * step, collections.Counter(), 0
    for file in files:
        passed += lines[file]
        while at < passed:
            wanted[file] += 1
            at += step
    say(f"{len(files)} files with {sum(lines.values())} lines; candidates of {len(wanted)} of them")
    chosen = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for file, found in zip(wanted, pool.map(lambda f: candidates(f, flags_of(commands[f])), wanted)):
            rng = random.Random(f"{args.seed} {file}")
            rng.shuffle(found)
            taken = []
            for one in found:
                if len(taken) < wanted[file] and all(one["end"] <= o["begin"] or o["end"] <= one["begin"] for o in taken):
                    taken.append(one)
            chosen += taken
    return chosen


# --- the mutated tree ---

def copy_tree():
    """What git knows or would take, where it differs; sources with mutants are written after this."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=True)
    names = {name for name in listed.stdout.decode().split("\0") if name and os.path.isfile(os.path.join(ROOT, name))}
    for folder, _, files in os.walk(TREE):
        for file in files:
            path = os.path.join(folder, file)
            if os.path.relpath(path, TREE) not in names:
                os.remove(path)
    for name in names:
        with open(os.path.join(ROOT, name), "rb") as f:
            yield name, f.read(), os.stat(os.path.join(ROOT, name)).st_mode


def write_if_new(path, data, mode=0o644):
    try:
        with open(path, "rb") as f:
            if f.read() == data:
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


def mutated(text, mutants):
    for one in sorted(mutants, key=lambda m: -m["begin"]):
        new = one["new"].replace("{m}", f"stk_mutant({one['id']})").encode()
        text = text[:one["begin"]] + new + text[one["end"]:]
    return b'#include "' + WORK.encode() + b'/mutant.h"\n#line 1\n' + text


def compiles(file, entry, mutants):
    with open(os.path.join(ROOT, file), "rb") as f:
        text = mutated(f.read(), mutants)
    flags = [word for word in flags_of(entry)] + [f"-I{ROOT}/{os.path.dirname(file)}"]
    done = subprocess.run(["cc", "-w", "-fsyntax-only", "-fopenmp", *flags, "-x", "c", "-"], input=text, capture_output=True)
    return done.returncode == 0


def drop_broken(chosen, commands):
    """What C does not take with both branches (a constant where a pointer is wanted)."""
    by_file = collections.defaultdict(list)
    for i, one in enumerate(chosen):
        one["id"] = i
        by_file[one["file"]].append(one)
    broken = set()
    for file, mutants in by_file.items():
        if not compiles(file, commands[file], mutants):
            broken |= {one["id"] for one in mutants if not compiles(file, commands[file], [one])}
    kept = [one for one in chosen if one["id"] not in broken]
    for one in chosen:
        if one["id"] in broken:
            say(f"left out, it does not compile: {one['file']}:{one['line']}: {shorten(one)}")
    for i, one in enumerate(kept):
        one["id"] = i
    return kept


def build(mutants, jobs):
    by_file = collections.defaultdict(list)
    for one in mutants:
        by_file[one["file"]].append(one)
    for name, data, mode in copy_tree():
        if name in by_file:
            data = mutated(data, by_file[name])
        if name == "src/base/error.c":
            data += CHOOSE.encode()
        write_if_new(os.path.join(TREE, name), data, mode & 0o777)
    log = os.path.join(WORK, "build.log")
    env = dict(os.environ, CCACHE_BASEDIR=WORK, CCACHE_NOHASHDIR="1")
    with open(log, "w") as f:
        for command in (["cmake", "-G", "Ninja", "-S", TREE, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS=-w"],
                        ["ninja", "-C", BUILD, f"-j{jobs}"]):
            if subprocess.run(command, stdout=f, stderr=f, env=env).returncode:
                sys.exit(f"mutate: the mutated tree does not build, see {log}")


# --- tests ---

def list_tests():
    done = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, check=True)
    tests = []
    for one in json.loads(done.stdout)["tests"]:
        if NO_TESTS.search(one["name"]) or "command" not in one:
            continue
        properties = {p["name"]: p["value"] for p in one.get("properties", [])}
        env = dict(word.split("=", 1) for word in properties.get("ENVIRONMENT", []) if "=" in word)
        tests.append({"name": one["name"], "command": one["command"], "env": env})
    return tests


def tree_of(pid):
    """A process and all that it started and did not leave behind."""
    children = collections.defaultdict(list)
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = open(stat).read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children[int(fields[1])].append(int(stat.split("/")[2]))
    found = [pid]
    for one in found:
        found += children[one]
    return found


class Runner:
    """Runs tests, each worker in folders of its own."""

    def __init__(self, worker):
        self.home = os.path.join(WORK, f"worker-{worker}")
        self.worker = worker
        os.makedirs(self.home, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(self.home, NOBODY, NOBODY)

    def before(self):
        # A shell without jobs starts what runs behind it with these ignored, and tests of ^C would wait for ever.
        for number in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        # Soft ones: tests set their own.
        for what, limit in ((resource.RLIMIT_DATA, 6 << 30), (resource.RLIMIT_FSIZE, 8 << 30), (resource.RLIMIT_CORE, 0)):
            resource.setrlimit(what, (limit, resource.getrlimit(what)[1]))
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    def run(self, test, env, timeout_s):
        """(how it ended, seconds): pass, skip, fail, signal or timeout."""
        shutil.rmtree(self.home, ignore_errors=True)
        os.makedirs(os.path.join(self.home, "tmp"))
        if os.geteuid() == 0:
            for path in (self.home, os.path.join(self.home, "tmp")):
                os.chown(path, NOBODY, NOBODY)
        # A folder that the test was given to work in becomes the worker's.
        command = [os.path.join(self.home, os.path.basename(word)) if word.startswith(BUILD + "/") and not os.path.isfile(word)
                   else word for word in test["command"]]
        full = dict(os.environ, GOMP_SPINCOUNT="5000", OMP_NUM_THREADS="2", HOME=self.home, TMPDIR=os.path.join(self.home, "tmp"),
                    PYTHONDONTWRITEBYTECODE="1", **test["env"])
        full.update(env)
        begin = time.monotonic()
        with open(os.path.join(self.home, "output"), "wb") as output:
            child = subprocess.Popen(command, cwd=self.home, env=full, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                     preexec_fn=self.before, start_new_session=True)
            try:
                code = child.wait(timeout_s)
                ended = {0: "pass", 77: "skip"}.get(code, "fail" if code > 0 else "signal")
            except subprocess.TimeoutExpired:
                ended = "timeout"
            # Whatever else it started is in its session, or hangs below it.
            below = tree_of(child.pid) if ended == "timeout" else []
            for kill, number in [(os.killpg, child.pid)] + [(os.kill, pid) for pid in below]:
                try:
                    kill(number, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass
            child.wait()
        return ended, time.monotonic() - begin


def stamp(test):
    """Changes when what the test runs does."""
    text = ""
    for word in test["command"]:
        if os.path.isfile(word):
            text += f" {word} {hashlib.sha256(open(word, 'rb').read()).hexdigest()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def in_workers(jobs, items, work):
    """work(runner, item) for each, in order, by that many threads."""
    items, lock = list(items), threading.Lock()

    def loop(worker):
        runner = Runner(worker)
        while True:
            with lock:
                if not items:
                    return
                item = items.pop(0)
            work(runner, item)
    threads = [threading.Thread(target=loop, args=(i,)) for i in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def open_to_nobody():
    """C tests make their folders in the build's."""
    if os.geteuid() == 0:
        for folder in (BUILD, os.path.join(BUILD, "tests")):
            os.chown(folder, NOBODY, NOBODY)


def find_reach(tests, n_mutants, digest, jobs):
    """By test: seconds and the mutants that it reaches; those that fail without a mutant are left out."""
    path = os.path.join(WORK, "reach.json")
    known = {}
    if os.path.exists(path):
        known = json.load(open(path))
        known = known["tests"] if known["digest"] == digest else {}
    reach, lock = {}, threading.Lock()

    def one(runner, test):
        key = stamp(test)
        found = known.get(test["name"])
        if not found or found["stamp"] != key or found["ended"] not in ("pass", "skip"):
            map_path = os.path.join(WORK, f"map-{runner.worker}")
            with open(map_path, "wb") as f:
                f.write(bytes(65536))
            os.chmod(map_path, 0o666)
            ended, seconds = runner.run(test, {"STK_MUTANT_MAP": map_path}, 300)
            with open(map_path, "rb") as f, mmap.mmap(f.fileno(), 65536, prot=mmap.PROT_READ) as m:
                reached = [i for i in range(n_mutants) if m[i]]
            found = {"stamp": key, "ended": ended, "seconds": round(seconds, 3), "reached": reached}
            if ended not in ("pass", "skip"):
                say(f"{test['name']} ends with '{ended}' without a mutant: left out")
        with lock:
            reach[test["name"]] = found
            json.dump({"digest": digest, "tests": reach}, open(path + ".new", "w"))
            os.replace(path + ".new", path)
    in_workers(jobs, tests, one)
    return reach


def order_tests(mutant, tests, reach):
    """The quickest first; those of the mutant's own folder count a quarter, that of its file a twentieth."""
    folder, stem = mutant["file"].split("/")[1], "test_" + os.path.splitext(os.path.basename(mutant["file"]))[0]
    listed = [test for test in tests if reach[test["name"]]["ended"] == "pass" and mutant["id"] in reach[test["name"]]["reached"]
              and reach[test["name"]]["seconds"] <= QUICK_S]

    def weight(name):
        return 0.05 if name.endswith("/" + stem) else 0.25 if name.startswith(folder + "/") else 1
    return sorted(listed, key=lambda t: reach[t["name"]]["seconds"] * weight(t["name"]))


def try_mutant(runner, mutant, tests, reach, budget_s):
    listed, spent = order_tests(mutant, tests, reach), 0.0
    result = {"id": mutant["id"], "killed_by": None, "how": "survived" if listed else "not reached", "n_tests": 0}
    begin = time.monotonic()
    for test in listed:
        usual = reach[test["name"]]["seconds"]
        if spent + usual > budget_s:
            continue
        spent += usual
        result["n_tests"] += 1
        limit = max(5.0, 10 * usual)
        ended, _ = runner.run(test, {"STK_MUTANT": str(mutant["id"])}, limit)
        if ended in ("pass", "skip"):
            continue
        # A test that fails for another reason kills nothing.
        if runner.run(test, {}, limit)[0] != "pass":
            continue
        result.update(killed_by=test["name"], how=ended)
        break
    result["seconds"] = round(time.monotonic() - begin, 1)
    return result


def run_all(mutants, tests, reach, digest, args):
    path = os.path.join(WORK, "results.jsonl")
    results = {}
    if os.path.exists(path):
        for line in open(path):
            one = json.loads(line)
            if one["digest"] == digest:
                results[one["id"]] = one
    todo = [m for m in mutants if m["id"] not in results or (args.survivors and not results[m["id"]]["killed_by"])]
    if args.ids:
        todo = [m for m in mutants if m["id"] in args.ids]
    # Spread over the files, so that a run that is stopped has seen something of each.
    random.Random(args.seed).shuffle(todo)
    if args.most:
        todo = todo[:args.most]
    lock, begin, n_done = threading.Lock(), time.monotonic(), 0

    def one(runner, mutant):
        nonlocal n_done
        if args.minutes and time.monotonic() - begin > 60 * args.minutes:
            return
        result = dict(try_mutant(runner, mutant, tests, reach, args.budget), digest=digest)
        with lock:
            n_done += 1
            results[mutant["id"]] = result
            with open(path, "a") as f:
                f.write(json.dumps(result) + "\n")
            say(f"{n_done}/{len(todo)} {result['how']:12} {mutant['file']}:{mutant['line']} {mutant['kind']}"
                f" {shorten(mutant)} ({result['killed_by'] or result['n_tests']}, {result['seconds']} s)")
    in_workers(args.jobs, todo, one)
    return results


# --- the table ---

def shorten(mutant):
    old, new = " ".join(mutant["old"].split()), " ".join((mutant["shown"] or "").split())
    old, new = (text if len(text) <= 70 else text[:67] + "..." for text in (old, new))
    return f"`{old}` removed" if mutant["kind"] == "removed" else f"`{old}` -> `{new}`"


def key_of(mutant):
    return f"{mutant['file']} {mutant['function']}: {shorten(mutant)}"


def read_reasons():
    """Lines 'FILE FUNCTION: MUTATION => REASON'."""
    reasons = {}
    for line in open(os.path.join(ROOT, "tools", "mutants.txt")):
        if " => " in line and not line.startswith("#"):
            key, reason = line.rstrip("\n").split(" => ", 1)
            reasons[key] = reason
    return reasons


def table(mutants, results, args):
    reasons = read_reasons()
    rows, survivors = collections.defaultdict(lambda: [0, 0, 0]), []
    for one in mutants:
        result = results.get(one["id"])
        if not result:
            continue
        folder = next(f for f in args.folders if one["file"].startswith(f + "/"))
        rows[folder][0] += 1
        rows[folder][1] += bool(result["killed_by"])
        if not result["killed_by"]:
            survivors.append((one, result))
            rows[folder][2] += reasons.get(key_of(one), "").startswith(("equivalent", "speed only"))
    n, n_killed, n_alike = (sum(row[i] for row in rows.values()) for i in (0, 1, 2))
    out = ["# Mutants", "",
           "`./dev mutate` changes the core in small ways, one at a time, and runs the quick tests that reach the change:",
           "tools/mutate.py. A mutant is killed when one of them fails, crashes or takes ten times as long as it does.", "",
           f"Seed {args.seed}: {n} of {len(mutants)} mutants were run, {n_killed} killed. Of the others {n_alike} change no value"
           " that anybody sees; the share is that of what is left without them.", "",
           "| folder | mutants | killed | no change | share |", "|---|---:|---:|---:|---:|"]
    for name, row in [(folder, rows[folder]) for folder in args.folders if rows[folder][0]] + [("all", (n, n_killed, n_alike))]:
        out.append(f"| {name} | {row[0]} | {row[1]} | {row[2]} | {100 * row[1] / max(row[0] - row[2], 1):.0f} % |")
    out += ["", "## Survivors", "",
            "Reasons stand in tools/mutants.txt; `hole` is a test that nobody has written yet.", "",
            "| where | function | mutation | reason |", "|---|---|---|---|"]
    for one, result in sorted(survivors, key=lambda s: (s[0]["file"], s[0]["line"])):
        reason = reasons.get(key_of(one), "not reached" if result["how"] == "not reached" else "hole")
        text = shorten(one).replace("|", "\\|")
        out.append(f"| {one['file']}:{one['line']} | {one['function']} | {text} | {reason} |")
    with open(os.path.join(ROOT, args.table), "w") as f:
        f.write("\n".join(out) + "\n")
    say(f"{n} run, {n_killed} killed, {n_alike} change nothing: {100 * n_killed / max(n - n_alike, 1):.1f} %;"
        f" table in {args.table}")


def main():
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", default=FOLDERS, help="folders of sources; all of the core without any")
    parser.add_argument("--n", type=int, default=200, help="mutants")
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=0, help="run that many of them at most")
    parser.add_argument("--minutes", type=float, default=0, help="begin no mutant after that")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds of tests that pass, a mutant")
    parser.add_argument("--ids", type=lambda text: [int(i) for i in text.split(",")], help="run these again: 3,17")
    parser.add_argument("--survivors", action="store_true", help="run those again that survived")
    parser.add_argument("--table", help="write the table there; docs/mutants.md for all of the core")
    args = parser.parse_args()
    args.folders = [folder.rstrip("/") for folder in args.folders]
    args.table = args.table or ("docs/mutants.md" if args.folders == FOLDERS and not args.most else "build/mutate/mutants.md")
    os.makedirs(WORK, exist_ok=True)
    commands = {os.path.relpath(entry["file"], ROOT): entry for entry in json.load(open(os.path.join(ROOT, "build", "compile_commands.json")))
                if entry["file"].startswith(os.path.join(ROOT, "src"))}
    digest = hashlib.sha256(f"{args.n} {args.seed} {args.folders}".encode())
    for file in sorted(commands):
        digest.update(open(os.path.join(ROOT, file), "rb").read())
    digest.update(open(os.path.abspath(__file__), "rb").read().split(b"# --- the mutated tree ---")[0])
    digest = digest.hexdigest()[:16]
    write_if_new(os.path.join(WORK, "mutant.h"), HEADER.encode())
    path = os.path.join(WORK, "mutants.json")
    kept = json.load(open(path)) if os.path.exists(path) else {}
    if kept.get("digest") != digest:
        kept = {"digest": digest, "mutants": drop_broken(choose(args, commands), commands)}
        json.dump(kept, open(path, "w"), indent=1)
    mutants = kept["mutants"]
    say(f"{len(mutants)} mutants; build")
    build(mutants, args.jobs)
    open_to_nobody()
    tests = list_tests()
    say(f"what {len(tests)} tests reach")
    reach = find_reach(tests, len(mutants), digest, args.jobs)
    results = run_all(mutants, tests, reach, digest, args)
    table(mutants, results, args)


main()
