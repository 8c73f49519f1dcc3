"""What the package's tests share."""

import shutil
import struct
import tempfile
import unittest
import zlib

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


def write_png(path, width, height, colour):
    """One colour (red, green, blue) all over."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(colour) * width) * height
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
