"""A few of the random calls of fuzz_calls.py, in a process of their own; `./dev python-fuzz` makes many."""

import os
import subprocess
import sys
import unittest


class Fuzz(unittest.TestCase):
    def test_random_calls(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuzz_calls.py")
        done = subprocess.run([sys.executable, script, "300"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("well", done.stdout)


if __name__ == "__main__":
    unittest.main()
