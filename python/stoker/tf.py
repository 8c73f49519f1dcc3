"""TensorFlow: batches as tensors, over the memory that Stoker's threads wrote to."""

import tensorflow as tf

from ._given import loader_of


def tensors(batch):
    """A batch's arrays as eager tensors, by field, without a copy."""
    return {name: tf.experimental.dlpack.from_dlpack(array.__dlpack__()) for name, array in batch.items()}


def iterator(data, **options):
    """Batches of an epoch as eager tensors, without a copy."""
    return loader_of(data, **options)._begin((tf.experimental.dlpack.from_dlpack, False, None, False))


def dataset(data, **options):
    """A tf.data.Dataset of an epoch, for what takes such, as Keras' fit. TensorFlow copies each batch once on this way."""
    loader = loader_of(data, **options)
    first = next(iter(loader))
    signature = {name: tf.TensorSpec((None, *array.shape[1:]), array.dtype) for name, array in first.items()}
    loader.load_state_dict({"epoch": 0, "batch": 0})
    return tf.data.Dataset.from_generator(lambda: iterator(loader), output_signature=signature)
