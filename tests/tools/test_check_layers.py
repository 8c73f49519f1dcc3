"""tools/check_layers.py on small trees: a clean one passes, and each wrong include, circle and folder is named.
   test_check_layers.py CHECK_LAYERS"""
import subprocess
import sys
import tempfile
from pathlib import Path

CHECK = sys.argv[1]
LAYERS = """# a comment
base <-
data <- base
cli  <- base

data/codec  <-
data/source <- data/codec
"""
TREE = {
    "include/stoker/api.h": '#include "stoker/more.h"\n',
    "include/stoker/more.h": "#include <stddef.h>\n",
    "src/base/text.h": '#include "stoker/api.h"\n',
    "src/data/codec/png.h": '#include "base/text.h"\n',
    "src/data/source/files.c": '#include "data/codec/png.h"\n  #  include "data/source/files.h"\n#include <png.h>\n',
    "src/data/source/files.h": "",
    "cli/main.c": '#include "args.h"\n#include "base/text.h"\n',
    "cli/args.h": "",
}
n_bad = 0


def check(what, said_all_of, files={}, layers=LAYERS):
    """What the check says of TREE with other files; nothing at all is expected of an empty said_all_of."""
    global n_bad
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {**TREE, **files, "tools/layers.txt": layers}.items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        run = subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True)
    lines = (run.stdout + run.stderr).splitlines()
    good = run.returncode == (1 if said_all_of else 0) and len(lines) == len(said_all_of)
    if not good or any(words not in "\n".join(lines) for words in said_all_of):
        n_bad += 1
        print(f"{what}: wanted {said_all_of}, code {run.returncode} and:\n" + "\n".join(lines))


check("a clean tree", [])

# Includes, each with file and line.
check("an include of a layer above", ["src/base/text.h:2: 'base' may not include 'data/source'"],
      {"src/base/text.h": '\n#include "data/source/files.h"\n'})
check("an include of a room that comes later", ["src/data/codec/png.h:1: 'data/codec' may not include 'data/source'"],
      {"src/data/codec/png.h": '#include "data/source/files.h"\n'})
check("an include of the program", ["src/base/text.h:1: 'base' may not include 'cli'"],
      {"src/base/text.h": '#include "cli/args.h"\n'})
check("what the program may not see", ["cli/main.c:1: 'cli' may not include 'data/source'"],
      {"cli/main.c": '#include "data/source/files.h"\n'})
check("a file that is not there", ["src/data/codec/png.h:1: there is no src/base/gone.h"],
      {"src/data/codec/png.h": '#include "base/gone.h"\n'})
check("a public header that is not there", ["src/base/text.h:1: there is no include/stoker/gone.h"],
      {"src/base/text.h": '#include "stoker/gone.h"\n'})
check("a header of src in a public one", ["include/stoker/api.h:1: public headers may include 'stoker/' only"],
      {"include/stoker/api.h": '#include "base/text.h"\n'})
check("a name without its folder", ['src/base/text.h:1: "other.h" lacks its folder'], {"src/base/text.h": '#include "other.h"\n'})
check("a way up", ['src/base/text.h:1: "../data/x.h" is relative'], {"src/base/text.h": '#include "../data/x.h"\n'})
check("several at once", ["src/base/text.h:1:", "src/base/text.h:2:", "src/data/codec/png.h:1:"],
      {"src/base/text.h": '#include "data/codec/png.h"\n#include "data/source/files.h"\n',
       "src/data/codec/png.h": '#include "data/source/files.h"\n'})

# Folders.
check("an unknown layer", ["src/extra/x.c: 'extra/x.c' is not in tools/layers.txt"], {"src/extra/x.c": ""})
check("an unknown room", ["src/data/other/x.c: 'data/other' is not in tools/layers.txt"], {"src/data/other/x.c": ""})
check("an include of an unknown layer", ["src/base/text.h:1: 'extra' is not in tools/layers.txt"],
      {"src/base/text.h": '#include "extra/x.h"\n'})

# The list itself.
check("a circle of layers", ["a circle: base <- data <- base"], layers=LAYERS.replace("base <-\n", "base <- data\n"))
check("a circle of rooms", ["a circle: data/codec <- data/source <- data/codec"],
      layers=LAYERS.replace("data/codec  <-\n", "data/codec  <- data/source\n"))
check("a layer that has no line", ["'data' names 'tensor', which has no line"], layers=LAYERS.replace("data <- base", "data <- tensor"))
check("a room without its layer", ["'graph/one' names 'graph', which has no line"], layers=LAYERS + "graph/one <-\n")
check("no arrow", ["tools/layers.txt:2: expected 'folder <- folders'"], layers=LAYERS.replace("base <-", "base"))

if n_bad:
    sys.exit(f"{n_bad} trees were judged wrongly")
print("all trees judged as they should be")
