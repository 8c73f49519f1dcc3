"""What libstoker.so exports: src/symbols.txt, the headers' STK_API functions and the library say the same.
   test_symbols.py CC INCLUDE_FOLDER SYMBOLS_FILE LIBRARY"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LIST = "src/symbols.txt"
SHOWN = 5


def read_list(text):
    """{name: version}, and what is wrong with the list itself."""
    versions, names, last, wrong = [], {}, "", []
    for line in text.splitlines():
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        if not line.startswith(" "):
            versions.append(line)
            last = ""
        elif not versions:
            wrong.append(f"{LIST}: '{line.strip()}' stands before the first version")
        else:
            name = line.strip()
            if name in names:
                wrong.append(f"{LIST}: '{name}' is there twice")
            if name < last:
                wrong.append(f"{LIST}: '{name}' belongs before '{last}': names are sorted within a version")
            names[name], last = versions[-1], name
    return names, versions, wrong


def read_headers(cc, folder):
    """{name: header} of every function that a header declares with STK_API, macros unfolded."""
    headers = {path: path.read_text() for path in sorted(folder.rglob("*.h"))}
    run = subprocess.run([cc, "-E", "-P", "-x", "c", "-std=c11", "-DSTK_BUILD", f"-I{folder}", "-"], capture_output=True, text=True,
                         check=True, input="".join(f'#include "{path}"\n' for path in headers))
    names = {}
    for found in re.finditer(r'visibility\("default"\)\)\)([^;{]*?)\b(stk_\w+)\s*\(', run.stdout):
        names[found[2]] = "of a list in include/"
    for path, text in headers.items():
        for name in re.findall(r"\b(stk_\w+)\(", text):
            if name in names:
                names[name] = str(path.relative_to(folder))
    return names


def read_library(path):
    """{name: version}, out of the table that the loader reads."""
    run = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", str(path)], capture_output=True, text=True,
                         check=True)
    names = {}
    for line in run.stdout.splitlines():
        kind, name = line.split()[-2:]
        name, _, version = name.partition("@")
        if kind != "A":  # the versions themselves
            names[name] = version.lstrip("@")
    return names


def compare(listed, versions, declared, exported):
    """The complaints, each with what to do."""
    newest = versions[-1] if versions else "a version"
    for name in sorted(set(declared) - set(listed)):
        yield (f"{name} ({declared[name]}) is public and not in {LIST}: add it below {newest}, or below a new version where "
               f"{newest} has been released")
    for name in sorted(set(listed) - set(declared)):
        yield f"{name} is in {LIST} and no header declares it with STK_API: remove the line, or before a release declare it again"
    for name in sorted(set(listed) & set(declared) - set(exported)):
        yield f"{name} is in {LIST} and the library lacks it: no source defines it, or one without its header"
    for name in sorted(set(exported) - set(listed)):
        yield f"the library exports {name}, which is not in {LIST}: is it linked with the list (cmake/products.cmake)?"
    for name in sorted(set(listed) & set(exported)):
        if exported[name] != listed[name]:
            yield f"{name} is of {exported[name] or 'no version'} in the library and of {listed[name]} in {LIST}: build again"


def check_itself():
    """Each complaint comes where it should."""
    listed, versions, wrong = read_list("# note\nV_1\n  stk_b\n  stk_a\n\nV_2\n  stk_b\n")
    assert versions == ["V_1", "V_2"] and len(wrong) == 2 and "sorted" in wrong[0] and "twice" in wrong[1], wrong
    assert "before the first version" in read_list("  stk_a\n")[2][0]
    listed = {"stk_a": "V_1", "stk_gone": "V_1", "stk_lost": "V_1", "stk_old": "V_1"}
    declared = {"stk_a": "x.h", "stk_new": "x.h", "stk_lost": "x.h", "stk_old": "x.h"}
    exported = {"stk_a": "V_1", "stk_gone": "V_1", "stk_inside": "V_1", "stk_old": ""}
    said = list(compare(listed, ["V_1"], declared, exported))
    for name, words in (("stk_new (x.h)", "add it below V_1"), ("stk_gone", "no header declares it"), ("stk_lost", "lacks it"),
                        ("exports stk_inside", "not in"), ("stk_old", "no version")):
        assert sum(name in line and words in line for line in said) == 1, (name, said)
    assert len(said) == 5, said
    # A header's declarations, through macros and over several lines; what is not STK_API is nobody's business.
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "api.h").write_text('#define STK_API __attribute__((visibility("default")))\n#define X(n) STK_API int stk_##n(int);\n'
                                      "X(made)\nSTK_API const char *stk_two(int a,\n int b);\nint stk_inside(void);\n")
        assert read_headers(sys.argv[1], folder) == {"stk_made": "of a list in include/", "stk_two": "api.h"}


def main():
    cc, folder, list_path, library = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
    if not shutil.which("nm"):
        print("SKIP: there is no nm to look with (Debian: binutils)")
        return 77
    check_itself()
    listed, versions, wrong = read_list(list_path.read_text())
    wrong += compare(listed, versions, read_headers(cc, folder), read_library(library))
    for line in wrong[:SHOWN]:
        print(line)
    if len(wrong) > SHOWN:
        print(f"... and {len(wrong) - SHOWN} more")
    print(f"{len(listed)} symbols in {len(versions)} version(s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
