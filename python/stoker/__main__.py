"""The programs stoker and stoker-watch of the package: `python -m stoker train recipe.yaml`."""

import os
import sys


def program(name):
    """The path of "stoker" or "stoker-watch": the package's own, or in a build folder that of the build."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (os.path.join(here, "bin"), os.path.join(here, "..", "..")):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    raise FileNotFoundError("the program '%s' is not in this package" % name)


def _run(name):
    path = program(name)
    os.execv(path, [name, *sys.argv[1:]])


def main():
    _run("stoker")


def watch_main():
    _run("stoker-watch")


if __name__ == "__main__":
    main()
