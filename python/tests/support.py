"""What the package's tests share."""

import shutil
import tempfile
import unittest

try:
    import numpy  # noqa: F401
    HAS_NUMPY = True
except ImportError:
    HAS_NUMPY = False

skip_without_numpy = unittest.skipUnless(HAS_NUMPY, "there is no numpy (Debian: python3-numpy)")


class Folder:
    """A folder for the time being."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="stoker-test-")
        return self.path

    def __exit__(self, *error):
        shutil.rmtree(self.path)
