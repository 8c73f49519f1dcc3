"""examples/notebooks: each runs from the first cell to the last, where nbclient is here."""

import importlib.util
import os
import tempfile
import unittest

from test_notebook import BOOKS

NEEDS = {"2_feed_pytorch": "torch", "3_why_is_it_slow": "numpy"}


def has(*names):
    return all(importlib.util.find_spec(name) for name in names)


@unittest.skipUnless(has("nbclient", "nbformat", "ipykernel"), "there is no nbclient with ipykernel (Debian: python3-nbclient, python3-ipykernel)")
class Notebooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="stoker-test-")  # they share the digits

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_book(self, path):
        import nbclient
        import nbformat

        book = nbformat.read(path, 4)
        nbclient.NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": self.folder.name}}).execute()
        outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
        self.assertTrue(any("data" in output for output in outputs), "nothing is shown")


def add(path):
    name = os.path.basename(path)[:-6]
    test = unittest.skipUnless(name not in NEEDS or has(NEEDS[name]), "there is no %s" % NEEDS.get(name))(lambda self: self.run_book(path))
    setattr(Notebooks, "test_" + name, test)


for path in BOOKS:
    add(path)


if __name__ == "__main__":
    unittest.main()
