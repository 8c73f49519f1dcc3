"""All tests of the package, those of its docstrings among them. run.py [NAME]...: some of them, or notebooks.

77: all were skipped.
"""

import doctest
import importlib
import os
import sys
import unittest

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)


def doctests():
    import stoker

    suite = unittest.TestSuite()
    for name in sorted(os.listdir(os.path.dirname(stoker.__file__))):
        if not name.endswith(".py") or name in ("torch.py", "tf.py", "jax.py", "__main__.py"):
            continue
        module = "stoker" if name == "__init__.py" else "stoker." + name[:-3]
        try:
            suite.addTest(doctest.DocTestSuite(importlib.import_module(module)))
        except ValueError:
            pass  # it has none
    return suite


def main():
    loader = unittest.defaultTestLoader
    names = sys.argv[1:]
    suite = loader.loadTestsFromNames(names) if names else unittest.TestSuite([loader.discover(here), doctests()])
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    for test, reason in result.skipped:
        print("SKIP: %s: %s" % (str(test).split(" ")[0], reason))
    if 0 < result.testsRun == len(result.skipped) or result.skipped and result.testsRun == 0 and not result.errors:
        return 77
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
