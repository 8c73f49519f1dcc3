"""A file system that serves a folder slowly, as a network does: fuse_slow.py FOLDER MOUNT SECONDS_PER_READ."""
import os
import sys
import time

try:
    from fusepy import FUSE, Operations  # as Debian names it
except ImportError:
    try:
        from fuse import FUSE, Operations
    except ImportError:
        sys.exit("SKIP: no fusepy for this Python (Debian: python3-fusepy)")


class Slow(Operations):
    def __init__(self, root, delay):
        self.root, self.delay = root, delay

    def getattr(self, path, fh=None):
        s = os.lstat(self.root + path)
        return {k: getattr(s, k) for k in ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_mtime")}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self.root + path)]

    def open(self, path, flags):
        return os.open(self.root + path, os.O_RDONLY)

    def read(self, path, size, offset, fh):
        time.sleep(self.delay)
        return os.pread(fh, size, offset)

    def release(self, path, fh):
        os.close(fh)


if __name__ == "__main__":
    FUSE(Slow(sys.argv[1], float(sys.argv[3])), sys.argv[2], foreground=True, ro=True, direct_io=True, nothreads=False)
