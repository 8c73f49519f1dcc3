#!/usr/bin/env python3
"""README, docs/*.md, recipes, public headers and examples name only what there is: verbs and options of `stoker` and
`./dev`, files, links and their anchors, functions, variables of the environment.

usage: test_docs.py STOKER WORK_FOLDER
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

from program import STOKER, check

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
os.chdir(ROOT)
PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", *sorted(glob.glob("docs/*.md"))]
COMMENTED = sorted(glob.glob("recipes/*.yaml") + glob.glob("include/stoker/**/*.h", recursive=True) + glob.glob("examples/*.c"))
# They show what a reader adds.
SHOW_NEW = set(glob.glob("docs/adding-*.md"))
FOLDERS = "src|docs|tests|tools|bench|recipes|examples|include|cli|cmake"
n_seen = {}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def saw(what):
    n_seen[what] = n_seen.get(what, 0) + 1


# --- commands ---

helps = {}


def help_of(*verb):
    if verb not in helps:
        done = subprocess.run([STOKER, *verb, "--help"], capture_output=True, text=True)
        helps[verb] = done.stdout if done.returncode == 0 else ""
    return helps[verb]


def blocks(text):
    """Fenced blocks as (language, lines), and the text without them."""
    found = re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, re.M | re.S)
    return found, re.sub(r"^ *```\w*\n.*?^ *```", "", text, flags=re.M | re.S)


def commands(page):
    text = read(page)
    if not page.endswith(".md"):
        spans = re.findall(r"`((?:stoker|build/stoker|\./dev) [^`]+)`", text)
        return spans + re.findall(r"^ *(?:#|\*) +((?:stoker|\./dev) [a-z].*)$", text, re.M)
    found, rest = blocks(text)
    lines = [re.sub(r"^(\$|\w+=\S+) ", "", line.strip()) for language, body in found if language in ("", "sh")
             for line in body.splitlines()]
    lines = [part for line in lines for part in re.split(r" && ", line)]
    spans = re.findall(r"`([^`]+)`", rest.replace("\n", " "))
    return [line for line in lines + spans if re.match(r"(stoker|build/stoker|build/stoker-watch|\./dev) ", line)]


BENCH_VERBS = ("compare", "cost", "part", "submit")  # of a verb that has work of its own


def words_of(line):
    line = re.split(r"\s+#\s|\s{3,}", line)[0]
    try:
        return shlex.split(line.replace("'s", "s"))
    except ValueError:
        return line.split()


def check_stoker(page, line, words):
    verbs = help_of().split()
    if not re.fullmatch(r"[a-z]+", words[0]):
        return  # a name in capitals, an option
    if page in SHOW_NEW and f'cli_{words[0]} = {{"{words[0]}"' in read(page):
        return  # the one that it adds
    check(words[0] in verbs, f"{page}: `{line}`: there is no verb '{words[0]}'")
    is_group = words[0] in ("data", "tokenizer") or words[0] == "bench" and words[1:2] and words[1] in BENCH_VERBS
    verb = tuple(words[:2]) if is_group and len(words) > 1 else (words[0],)
    known = help_of(*verb) + (help_of(words[0]) if len(verb) > 1 else "")
    for word in words[len(verb):]:
        if word == "--":
            break  # the watched command's
        option = re.match(r"--[a-z][a-z0-9-]*", word)
        if option and words[0] in verbs:
            saw("option")
            check(re.search(re.escape(option[0]) + r"(?![a-z0-9-])", known) or option[0] == "--help",
                  f"{page}: `{line}`: {' '.join(verb)} has no option '{option[0]}'")


def check_commands(page):
    for line in commands(page):
        words = words_of(line)
        saw("command")
        if words[0] == "./dev":
            dev = re.findall(r"^  ([a-z-]+)", subprocess.run(["./dev", "help"], capture_output=True, text=True).stdout, re.M)
            check(len(words) < 2 or words[1] in [*dev, "help"] or not words[1].islower(), f"{page}: `{line}`: ./dev has no verb '{words[1]}'")
        elif words[0].endswith("stoker-watch"):
            check_stoker(page, line, ["watch", *words[1:]])
        elif len(words) > 1:
            check_stoker(page, line, words[1:])


# --- files and links ---

def slugs(page):
    titles = re.findall(r"^#+ (.*)$", blocks(read(page))[1], re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def check_links(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", blocks(read(page))[1]):
        if re.match(r"[a-z]+:", target):
            continue
        saw("link")
        path, _, anchor = target.partition("#")
        whole = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        check(os.path.exists(whole), f"{page}: link to '{target}', which is not there")
        if anchor and os.path.exists(whole):
            check(anchor in slugs(whole), f"{page}: link to '{target}': no such title")


def there_is(path):
    path = path.rstrip(".,:/")
    places = [path, f"src/{path}", f"include/{path}", f"tests/{path}"]
    if path.startswith("stoker/"):
        places = [f"include/{path}"]
    if path.startswith("cli/"):
        places.append(f"tests/cli/test_{path[4:]}.py")  # by its name as a test
    return any(glob.glob(re.sub(r"[A-Z]{2,}", "*", place), recursive=True) for place in places)


def check_paths(page):
    text = read(page)
    named = set(re.findall(rf"(?<![\w/.<-])((?:{FOLDERS})/[\w./*-]*\w)(?![\w/]*[<({{])", text))
    named |= set(re.findall(r"(?<![\w/<])(stoker/[\w/]+\.h)\b", text))
    for path in sorted(named):
        saw("path")
        check(there_is(path), f"{page}: names '{path}', which is not there")
    for kind, name in set(re.findall(r"build/(bench|tests)/(\w+_\w+)", text)):
        where = f"bench/{name}.c" if kind == "bench" else f"tests/**/{name}.c"
        check(glob.glob(where, recursive=True), f"{page}: names build/{kind}/{name}, and there is no {where}")


def check_sources(page, sources):
    """Files and tests that are named without their folder."""
    names = set(re.findall(r"`(?:[\w.-]+/)*([\w-]+\.(?:c|h))`", read(page))) - {"gate.c", "main.c"}
    for name in sorted(names):
        saw("file")
        check(name in sources, f"{page}: names '{name}', and no source is called so")


def check_shown_recipe():
    """A recipe that README shows in full, but for the comments before it, is the one in recipes/."""
    shown = re.findall(r"This is `(recipes/[\w-]+\.yaml)`:\n\n```yaml\n(.*?)```", read("README.md"), re.S)
    check(len(shown) == 1, "README shows a recipe")
    for path, text in shown:
        check(text == re.sub(r"\A(#.*\n)+", "", read(path)), f"README.md: what it shows is not {path}")


def check_resuming():
    """The keys that may change when a run goes on, as docs/recipe.md has them, are those that their tables name."""
    keys, inner = [re.findall(r'\{\.name = "(\w+)",[\s\\]*\.type = \w+,[\s\\]*\.may_change', read(f"src/recipe/{name}.c"))
                   for name in ("keys", "keys_data")]
    said = re.search(r"`--resume` refuses another one, but(.*?) may change,\s+as may (.*?)\.\s*\n", read("docs/recipe.md"), re.S)
    check(said and len(keys) > 5 and sorted(re.findall(r"`(\w+)`", said[1])) == sorted(keys),
          f"docs/recipe.md: the keys that may change are {keys}")
    check(said and sorted(re.findall(r"`(?:data\.)?(\w+)`", said[2])) == sorted(inner),
          f"docs/recipe.md: of data there may change, too: {inner}")


def check_whole_header():
    """stoker/stoker.h is all of the library's interface, as its first line says."""
    for path in sorted(glob.glob("include/stoker/**/*.h", recursive=True)):
        folder = os.path.dirname(path)
        whole = "include/stoker/stoker.h" if folder == "include/stoker" else f"{folder}.h"
        check(path == whole or f'#include "{path[8:]}"' in read(whole), f"{whole} lacks {path[8:]}")


def check_results():
    """The figures of docs/results.md are of what the recipes expect now."""
    for row in re.findall(r"^\| \[([\w-]+)\]\(.*$", read("docs/results.md"), re.M):
        recipe = read(f"recipes/{row}.yaml")
        cells = [cell.strip() for cell in re.search(rf"^\| \[{row}\].*$", read("docs/results.md"), re.M)[0].strip("|").split("|")]
        expected = re.search(r"^expect: \[?([^\]#\n]*)", recipe, re.M)
        wanted = [part.strip() for part in expected[1].split(",")] if expected else []
        found = [re.sub(r": [^;]*$", "", part).strip() for part in cells[4].split(";") if part != "-"]
        check(wanted == found, f"docs/results.md: {row} was to reach {found}, and its recipe says {wanted}")
        check(f"\nepochs: {cells[3].split(',')[0]}" in recipe, f"docs/results.md: {row} ran {cells[3]} epochs, and its recipe says others")
        saw("result")


def check_c(page):
    """Examples in C compile, but for what they leave to the reader to declare."""
    includes = "".join(f"#include <{path[8:]}>\n" for path in COMMENTED if path.endswith(".h"))
    found = [body for language, body in blocks(read(page))[0] if language == "c"]
    for body in found:
        whole = re.search(r"^(static|int main)", body, re.M)
        text = includes + (body if whole else f"void example(void);\nvoid example(void)\n{{\n{body}\n}}\n")
        done = subprocess.run(["cc", "-x", "c", "-std=gnu11", "-fsyntax-only", "-Iinclude", "-include", "stdio.h", "-include", "stdlib.h", "-"],
                              input=text, capture_output=True, text=True)
        wrong = [line for line in done.stderr.splitlines()
                 if "error:" in line and "undeclared" not in line or "implicit declaration of function ‘stk_" in line
                 or "implicit declaration of function 'stk_" in line]
        saw("example")
        check(not wrong, f"{page}: an example in C: {wrong}")


# --- names in the code ---

def check_names(page, identifiers, code):
    text = read(page)
    for name in sorted(set(re.findall(r"\bstk_\w*[a-z0-9]\b(?!\*)", text))):
        saw("name")
        check(name in identifiers or any(i.startswith(name + "_") for i in identifiers) and f"{name}_" in text,
              f"{page}: names {name}, which is not there")
    for name in sorted(set(re.findall(r"\bSTOKER_[A-Z_]+[A-Z]\b", text))):
        saw("variable")
        check(name in code, f"{page}: names {name}, which nothing reads")


def check_fuzz_targets():
    """./dev build fuzz takes a target as `./dev fuzz` calls it and as its program is called; ninja is played."""
    work = os.path.abspath(sys.argv[2])
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(f"{work}/tests/fuzz")
    shutil.copy("dev", work)
    played = {"ninja": "echo ninja \"$@\"", "cmake": "mkdir -p build-fuzz && : >build-fuzz/build.ninja",
              "dpkg-query": "shift 3; printf '%s=installed ' \"$@\""}
    for name, script in played.items():
        with open(f"{work}/{name}", "w") as f:
            f.write(f"#!/bin/sh\n{script}\n")
        os.chmod(f"{work}/{name}", 0o755)
    open(f"{work}/tests/fuzz/fuzz_run_onnx.c", "w").close()
    for target, wanted in ("run_onnx", "fuzz_run_onnx"), ("fuzz_run_onnx", "fuzz_run_onnx"), ("stk_fuzzed", "stk_fuzzed"):
        done = subprocess.run(["./dev", "build", "fuzz", target], cwd=work, capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{work}:{os.environ['PATH']}"})
        check(done.returncode == 0 and re.search(rf"^ninja .* {wanted}$", done.stdout, re.M),
              f"./dev build fuzz {target}: {done.stdout}{done.stderr}")
    shutil.rmtree(work)


sources = [path for pattern in ("src/**/*.[ch]", "include/**/*.h", "tests/**/*.[ch]", "cli/**/*.[ch]")
           for path in glob.glob(pattern, recursive=True)]
whole = "\n".join(read(path) for path in sources)
identifiers = set(re.findall(r"\bstk_\w+", whole)) | {f"stk_stage_{n}" for n in re.findall(r"X\((\w+)\)", whole)}
others = [path for pattern in ("tools/*.py", "tests/**/*.py", "bench/*.py", "CMakeLists.txt", "cmake/*", "src/CMakeLists.txt", "tests/CMakeLists.txt",
                               "CMakePresets.json", "dev") for path in glob.glob(pattern, recursive=True)]
code = whole + "\n".join(read(path) for path in others if os.path.isfile(path))
check_fuzz_targets()
for page in PAGES + COMMENTED:
    check_commands(page)
    if page not in SHOW_NEW and not page.endswith((".h", ".c")):
        check_paths(page)
check_shown_recipe()
check_resuming()
check_whole_header()
check_results()
if shutil.which("cc"):
    for page in PAGES:
        if page not in SHOW_NEW and page != "docs/doctor.md":  # an entry of a table
            check_c(page)
for page in PAGES:
    check_links(page)
    if page not in SHOW_NEW:
        check_sources(page, {os.path.basename(path) for path in sources + glob.glob("bench/*.c") + glob.glob("examples/*.c") + glob.glob("python/src/*")})
    if page not in SHOW_NEW:
        check_names(page, identifiers, code)
check(n_seen.get("command", 0) > 100 and n_seen.get("path", 0) > 100 and n_seen.get("name", 0) > 100, f"too little was found: {n_seen}")
print(", ".join(f"{n} {what}s" for what, n in sorted(n_seen.items())))
import program

if program.n_failed:
    sys.exit(f"{program.n_failed} checks failed")
print("all checks passed")
