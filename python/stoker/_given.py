"""What framework-specific modules share: a loader out of whatever was given."""

import os

from .dataset import Dataset
from .loader import Loader


def loader_of(data, **options):
    """A Loader as it is; or one of a batched Dataset, or of a recipe."""
    if isinstance(data, Loader):
        if options:
            raise TypeError("the loader is there already: %s belong to it" % ", ".join(sorted(options)))
        return data
    if isinstance(data, (Dataset, dict, str, os.PathLike)):
        return Loader(data, **options)
    raise TypeError("a Loader, a Dataset or a recipe is wanted, not %r" % (type(data),))
