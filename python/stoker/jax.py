"""JAX: batches as arrays, on the CPU over the memory that Stoker's threads wrote to."""

import jax

from ._given import loader_of


def arrays(batch, sharding=None):
    """A batch's arrays as jax.Array, by field; with a sharding or a device they are put there."""
    made = {name: jax.dlpack.from_dlpack(array) for name, array in batch.items()}
    return made if sharding is None else jax.device_put(made, sharding)


def iterator(data, sharding=None, **options):
    """Batches of an epoch of a Loader, a batched Dataset or a recipe.

    sharding: of jax.sharding, or a device; None: they stay where they are, without a copy.
    """
    for batch in loader_of(data, **options):
        yield arrays(batch, sharding)
        del batch
