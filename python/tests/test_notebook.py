"""IPython, where it is here: the magic runs a cell and says what held it back. The curve of a training is a drawing.
The notebooks themselves are run by notebooks.py."""

import glob
import importlib.util
import json
import math
import os
import unittest
import xml.etree.ElementTree

import stoker
from stoker.notebook import Curve, is_notebook

from support import Folder

try:
    import IPython
except ImportError:
    IPython = None

HAS_KERNEL = all(importlib.util.find_spec(name) for name in ("jupyter_client", "ipykernel"))


BOOKS = sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "notebooks", "*.ipynb")))


def event(step, loss, wait):
    return {"kind": "step", "step": step, "n_steps": 2000, "epoch": 1, "n_epochs": 2, "loss": loss, "samples_per_s": 10.0, "input_wait_share": wait}


class Drawing(unittest.TestCase):
    def test_a_curve_is_a_drawing_of_bounded_size(self):
        curve = Curve()
        curve._show = lambda: None  # there is no notebook to show it in
        self.assertEqual(curve.svg(), "")
        for step in range(1, 3000):
            curve(event(step, math.exp(-step / 500), 0.25))
        root = xml.etree.ElementTree.fromstring(curve.svg())
        points = [p.split(",") for p in root.find("{*}polyline").get("points").split()]
        self.assertLess(len(points), 1000)
        heights = [float(y) for _, y in points]
        self.assertEqual(heights, sorted(heights))  # the loss falls, and y grows downwards
        self.assertIn("waits 25 %", root.find("{*}text").text)


@unittest.skipUnless(BOOKS, "the repository is not here")
class Books(unittest.TestCase):
    def test_nothing_of_a_run_is_in_them(self):
        self.assertEqual(len(BOOKS), 5)
        for path in BOOKS:
            with open(path, encoding="utf-8") as file:
                cells = json.load(file)["cells"]
            self.assertTrue(all((cell["outputs"], cell["execution_count"]) == ([], None) for cell in cells if cell["cell_type"] == "code"), path)


@unittest.skipUnless(IPython, "there is no IPython (Debian: python3-ipython)")
class Magic(unittest.TestCase):
    def test_a_watched_cell(self):
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.utils.capture import capture_output

        shell = InteractiveShell.instance()
        shell.history_manager.enabled = False
        shell.run_line_magic("load_ext", "stoker")
        with capture_output() as shown:
            shell.run_cell_magic("stoker_watch", "", "end = __import__('time').time() + 3\nwhile __import__('time').time() < end: seen = 5")
        self.assertEqual(shell.user_ns["seen"], 5)
        self.assertEqual(len(shown.outputs), 1)
        self.assertIn("srcdoc", shown.outputs[0].data["text/html"])
        self.assertNotIn("{", shown.outputs[0].data["text/plain"])  # for people
        self.assertFalse(is_notebook())


@unittest.skipUnless(HAS_KERNEL, "there is no Jupyter (Debian: python3-jupyter-client, python3-ipykernel)")
class Interrupts(unittest.TestCase):
    def test_an_interrupted_cell_is_saved_and_the_next_one_runs(self):
        from jupyter_client.manager import start_new_kernel

        recipe = {"name": "small", "batch": 8, "epochs": 1, "model": {"mlp": {"hidden": [8], "classes": 3}}, "data": {
            "train": {"source": {"synthetic": {"fields": {"image": [4, 4, 1]}, "samples": 10 ** 9, "classes": 3}}}}}
        with Folder() as folder:
            out = os.path.join(folder, "run")
            manager, client = start_new_kernel(extra_arguments=["--HistoryManager.enabled=False"])
            try:
                asked = client.execute("import stoker\nstoker.train(%r, out=%r)" % (recipe, out), stop_on_error=False)
                interrupted, error = False, None
                while error is None:
                    message = client.get_iopub_msg(timeout=60)
                    if message["parent_header"].get("msg_id") != asked:
                        continue
                    if message["msg_type"] == "update_display_data" and not interrupted:  # its curve, which steps have
                        manager.interrupt_kernel()
                        interrupted = True
                    error = message["content"] if message["msg_type"] == "error" else None
                self.assertEqual(error["ename"], "KeyboardInterrupt")
                self.assertTrue([name for name in os.listdir(out) if name.startswith("step-")])
                self.assertEqual(client.execute_interactive("1 + 1", timeout=60)["content"]["status"], "ok")
            finally:
                client.stop_channels()
                manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    unittest.main()
