"""Training, plans, prediction, weights, reports and the doctor from Python."""

import json
import os
import signal
import subprocess
import sys
import unittest

import stoker
from support import Folder

RECIPE = {"name": "small", "batch": 8, "epochs": 2, "seed": 1, "threads": 1, "model": {"mlp": {"hidden": [8], "classes": 3}},
          "optimizer": {"sgd": {"lr": 0.1}},
          "data": {"train": {"source": {"synthetic": {"fields": {"image": [4, 4, 1]}, "samples": 64, "classes": 3}}},
                   "test": {"source": {"synthetic": {"fields": {"image": [4, 4, 1]}, "samples": 16, "classes": 3}}}}}


class Training(unittest.TestCase):
    def test_a_run_and_what_comes_of_it(self):
        events = []
        with Folder() as folder:
            out = os.path.join(folder, "run")
            run = stoker.train(RECIPE, out=out, callbacks=events.append, progress=False, epochs=3,
                               set={"optimizer.sgd.lr": 0.05})
            self.assertEqual((run.result["steps"], run.result["epochs"], len(run.history)), (24, 3, 3))
            self.assertTrue(run.result["is_finished"])
            self.assertEqual(os.path.realpath(run.folder), os.path.realpath(out))
            kinds = [e["kind"] for e in events]
            self.assertEqual(kinds.count("step"), 24)
            self.assertIn("saved", kinds)
            weights = run.weights()
            self.assertEqual(sorted(w.shape for w in weights.values()), [(3,), (3, 8), (8,), (8, 16)])
            with run.model() as model:
                sample = stoker.Array(memoryview(bytes(4 * 16)).cast("f", (4, 4, 1)))
                one = model.predict(sample)
                self.assertAlmostEqual(sum(one.tolist()), 1, places=5)
                many = model.predict(memoryview(bytes(4 * 32)).cast("f", (2, 4, 4, 1)))
                self.assertEqual(many.tolist(), [one.tolist()] * 2)
                with self.assertRaisesRegex(ValueError, "the network takes float32"):
                    model.predict(stoker.Array(bytes(16)))
            with self.assertRaises(stoker.ClosedError):
                model.predict(sample)
            self.assertIn("<html", run.report().html)
            self.assertIn("srcdoc", run._repr_html_())
            # Weights in again: the same answers.
            again = stoker.import_weights(weights, RECIPE, out=os.path.join(folder, "again"))
            with again.model() as model:
                self.assertEqual(model.predict(sample).tolist(), one.tolist())
            with stoker.load(out, without_data=False) as model:
                self.assertEqual(model.evaluate("test")["samples"], 16)

    def test_a_callback_that_raises_stops_the_run_saved(self):
        def stop(event):
            if event["kind"] == "step" and event["step"] == 5:
                raise LookupError("enough")

        with Folder() as folder:
            out = os.path.join(folder, "run")
            with self.assertRaisesRegex(LookupError, "enough"):
                stoker.train(RECIPE, out=out, callbacks=stop, progress=False)
            run = stoker.train(RECIPE, out=out, resume=True, progress=False)
            self.assertEqual(run.result["steps"], 16)

    def test_ctrl_c_saves(self):
        code = ("import stoker, json, sys, os, signal\n"
                "def event(e):\n"
                "    if e['kind'] == 'step' and e['step'] == 3: os.kill(os.getpid(), signal.SIGINT)\n"
                "try: stoker.train(json.loads(sys.argv[1]), out=sys.argv[2], callbacks=event, progress=False)\n"
                "except KeyboardInterrupt as e: print('interrupted', 'resume=True' in str(e))\n")
        with Folder() as folder:
            out = os.path.join(folder, "run")
            done = subprocess.run([sys.executable, "-c", code, json.dumps(RECIPE), out], stdout=subprocess.PIPE, timeout=100)
            self.assertEqual((done.returncode, done.stdout), (0, b"interrupted True\n"))
            self.assertTrue([name for name in os.listdir(out) if name.startswith("step-")])

    def test_ctrl_c_from_outside_stops_within_a_step(self):
        code = ("import stoker, json, sys\n"
                "told = set()\n"
                "def event(e):\n"
                "    if e['kind'] not in told: print(e['kind'], flush=True)\n"
                "    told.add(e['kind'])\n"
                "    last[:] = [e['step']] if e['kind'] == 'step' else last\n"
                "last = [0]\n"
                "try: stoker.train(json.loads(sys.argv[1]), out=sys.argv[2], callbacks=event, progress=False)\n"
                "except KeyboardInterrupt: print('interrupted at', last[0], flush=True)\n")
        part = {"source": {"synthetic": {"fields": {"image": [4, 4, 1]}, "samples": 10 ** 9, "classes": 3}}}
        # Neither would end by itself: a pass of training, and one of evaluation.
        for data, when in (({"train": part}, "step"), ({"train": RECIPE["data"]["train"], "valid": part}, "eval")):
            with self.subTest(when), Folder() as folder:
                out = os.path.join(folder, "run")
                process = subprocess.Popen([sys.executable, "-c", code, json.dumps({**RECIPE, "data": data}), out], stdout=subprocess.PIPE, text=True)
                try:
                    for line in process.stdout:
                        if line == when + "\n":
                            process.send_signal(signal.SIGINT)
                            break
                    said = process.communicate(timeout=100)[0].splitlines()
                finally:
                    process.kill()
                self.assertEqual(process.returncode, 0)
                step = int(said[-1].removeprefix("interrupted at "))
                saved = max(int(name[5:]) for name in os.listdir(out) if name.startswith("step-"))
                self.assertIn(saved - step, (0, 1))

    def test_errors_are_those_of_c(self):
        with Folder() as folder:
            with self.assertRaisesRegex(stoker.InvalidError, "epoch"):
                stoker.train(RECIPE, out=folder + "/r", progress=False, epoch=3)
            with self.assertRaises(FileNotFoundError):
                stoker.train(folder + "/none.yaml")
            with self.assertRaises(stoker.Error):
                stoker.load(folder)
            with self.assertRaises(stoker.Error):
                stoker.report(folder)

    def test_a_plan(self):
        plan = stoker.plan(RECIPE)
        self.assertIn("<pre>", plan._repr_html_())
        self.assertTrue(any("bytes" in key or "memory" in key for key in plan))
        with self.assertRaisesRegex(stoker.NoMemoryError, "^the plan needs"):
            stoker.plan(RECIPE, memory="1KiB")
        os.environ["CLICOLOR_FORCE"] = "1"  # as notebooks have it
        try:
            with self.assertRaisesRegex(stoker.Error, "^--set modle"):
                stoker.plan(RECIPE, set={"modle": 3})
        finally:
            del os.environ["CLICOLOR_FORCE"]


class Doctor(unittest.TestCase):
    def test_a_block_is_watched(self):
        with stoker.watch(interval_ms=20) as w:
            sum(i * i for i in range(3_000_000))
        self.assertIsInstance(w.verdict, dict)
        self.assertIn("srcdoc", w._repr_html_())

    def test_a_block_that_is_over_at_once_has_no_verdict(self):
        with stoker.watch() as w:
            pass
        self.assertTrue(w.verdict is None or isinstance(w.verdict, dict))


if __name__ == "__main__":
    unittest.main()
