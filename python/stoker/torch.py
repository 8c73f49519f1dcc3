"""PyTorch: batches as tensors, over the memory that Stoker's threads wrote to.

    from stoker.torch import from_imagefolder
    for images, labels in from_imagefolder("train", 224, batch_size=64, train=True):
        ...                                     # images: float32 [64, 3, 224, 224], labels: int64 [64]

or, of any data set, `for batch in stoker.torch.DataLoader(dataset): batch["image"]`.
"""

import os
import warnings

import torch

from .dataset import Dataset, stages
from .loader import Loader

# What torch.utils.dlpack.from_dlpack does with a capsule in the end.
_from_dlpack = getattr(torch._C, "_from_dlpack", torch.utils.dlpack.from_dlpack)

__all__ = ["DataLoader", "from_imagefolder", "tensor", "tensors"]


def tensor(array):
    """An Array as a tensor over the same memory."""
    return _from_dlpack(array.__dlpack__())


def tensors(batch):
    """A batch's arrays as tensors, by field."""
    return {name: _from_dlpack(array.__dlpack__()) for name, array in batch.items()}


class DataLoader:
    """Takes the place of torch.utils.data.DataLoader.

    dataset: a Stoker Dataset (batched, or with `batch_size`), a recipe, or one of PyTorch's. A TensorDataset is read from its
    tensors; any other with `__getitem__` and `__len__`, and an IterableDataset, is called under Python's lock, by one thread
    at a time: what such a data set does in Python stays as slow as it is, and without workers there is one of it.

    Gives dicts of tensors by field; with `fields` tuples in that order. Samples of PyTorch's data sets come as they went in:
    tuples as lists, dicts as dicts.

    batch_size, shuffle, drop_last  as PyTorch has them
    generator                       its initial seed is that of the shuffle and of random stages
    num_workers                     threads, of which Stoker needs no more than there are cores; 0: that many
    pin_memory                      batches are copied to pinned memory, for fast copies to a GPU
    prefetch_factor                 batches made ahead for each worker
    sampler, batch_sampler, collate_fn, worker_init_fn, multiprocessing_context, persistent_workers, timeout, in_order
                                    what is not needed warns, and what would change batches is an error
    fields                          names, for tuples
    channels_first                  images [N,H,W,C] as [N,C,H,W] without a copy (torch.channels_last in memory)

    `state_dict()` and `load_state_dict()` are two integers; `set_epoch` is not needed, and is there.
    """

    def __init__(self, dataset, batch_size=None, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=None,
                 pin_memory_device="", in_order=True, fields=None, channels_first=True, world_size=0, rank=0, seed=None,
                 memory=None, part="train", set=None):
        _refuse(sampler=sampler, batch_sampler=batch_sampler, collate_fn=collate_fn)
        _warn(worker_init_fn=worker_init_fn, multiprocessing_context=multiprocessing_context,
              persistent_workers=persistent_workers, timeout=timeout or None, pin_memory_device=pin_memory_device or None)
        if generator is not None and seed is None:
            seed = generator.initial_seed()
        self.dataset = dataset
        if pin_memory and not torch.cuda.is_available():
            warnings.warn("'pin_memory': there is no GPU to copy to, so batches stay where they are", stacklevel=2)
        self.pin_memory = pin_memory and torch.cuda.is_available()
        self.num_workers = num_workers
        self.drop_last = drop_last
        self._fields = tuple(fields) if fields is not None else None
        self._is_sequence = False
        self._channels_first = channels_first
        made = self._dataset(dataset, batch_size, shuffle, drop_last, seed or 0)
        slots = max(2, num_workers * prefetch_factor) if prefetch_factor and num_workers else 0
        more = {} if isinstance(made, Dataset) else {"part": part, "set": set}
        self.loader = Loader(made, threads=num_workers or None, slots=slots, memory=memory, seed=seed, world_size=world_size,
                             rank=rank, **more)
        self.batch_size = self.loader._dataset.batch_size

    def _dataset(self, dataset, batch_size, shuffle, drop_last, seed):
        """A batched Dataset, or a recipe as it is."""
        if isinstance(dataset, (str, os.PathLike, dict)):
            if batch_size is not None or shuffle is not None:
                raise TypeError("the recipe says 'batch' and 'shuffle': set={'batch': 64} changes them")
            return dataset
        if not isinstance(dataset, Dataset):
            dataset = self._convert(dataset)
        if dataset.batch_size:
            if batch_size is not None or shuffle is not None:
                raise TypeError("the data set has its batches and its order already")
            return dataset
        if shuffle:
            dataset = dataset.shuffle(seed=seed)
        return dataset.batch(1 if batch_size is None else batch_size, drop_last)

    def _convert(self, dataset):
        if isinstance(dataset, torch.utils.data.TensorDataset):
            self._sequence(len(dataset.tensors))
            return Dataset.arrays({str(i): t.detach().contiguous() for i, t in enumerate(dataset.tensors)})
        if isinstance(dataset, torch.utils.data.IterableDataset):
            fields = self._describe(next(iter(dataset)))
            return Dataset.generator(lambda epoch: (_plain(s) for s in dataset), fields)
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise TypeError("a data set of Stoker's or PyTorch's, or a recipe, is wanted, not %r" % (type(dataset),))
        return Dataset.function(lambda i: _plain(dataset[i]), len(dataset), self._describe(dataset[0]))

    def _describe(self, sample):
        if not isinstance(sample, dict):
            sample = sample if isinstance(sample, (tuple, list)) else (sample,)
            self._sequence(len(sample))
            sample = {str(i): part for i, part in enumerate(sample)}
        fields = {}
        for name, part in sample.items():
            part = torch.as_tensor(part)
            # Python's numbers become what PyTorch's own collate_fn makes of them.
            fields[name] = (part.dtype, tuple(part.shape))
        self._channels_first = False
        return fields

    def _sequence(self, n):
        self._channels_first = False
        self._is_sequence = True
        if self._fields is None:
            self._fields = tuple(str(i) for i in range(n))

    def _batches(self):
        return self.loader._begin((_from_dlpack, self._channels_first, self._fields, self._is_sequence))

    def _pinned(self):
        for batch in self._batches():
            if isinstance(batch, dict):
                batch = {name: value.pin_memory() for name, value in batch.items()}
            else:
                batch = type(batch)([value.pin_memory() for value in batch])
            yield batch
            del batch

    def __iter__(self):
        return self._pinned() if self.pin_memory else self._batches()

    def __len__(self):
        n = len(self.loader)
        shards = self.loader._config["shards"]
        return n if shards <= 1 else max(n // shards, 1)

    def state_dict(self):
        return self.loader.state_dict()

    def load_state_dict(self, state):
        self.loader.load_state_dict(state)

    def set_epoch(self, epoch):
        """For loops that tell samplers of epochs; here each epoch has an order of its own anyway."""
        if self.loader.state_dict() != {"epoch": epoch, "batch": 0}:
            self.loader.load_state_dict({"epoch": epoch, "batch": 0})

    @property
    def classes(self):
        return self.loader.classes

    def stats(self):
        return self.loader.stats()

    def close(self):
        self.loader.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def _refuse(**arguments):
    for name, value in arguments.items():
        if value is not None:
            raise TypeError("'%s' is Python code for every batch, which Stoker does not call: use Dataset.shuffle, shard, filter, "
                            "padded_batch and bucket for orders and batches, or pass the loader to torch.utils.data" % name)


def _warn(**arguments):
    names = ["'%s'" % name for name, value in arguments.items() if value]
    if names:
        warnings.warn("%s: not needed, since Stoker's threads are in this process" % ", ".join(names), stacklevel=3)


def _plain(sample):
    """PyTorch's tensors and numbers as arrays that C reads."""
    if isinstance(sample, dict):
        return {name: _array(part) for name, part in sample.items()}
    if isinstance(sample, (tuple, list)):
        return tuple(_array(part) for part in sample)
    return (_array(sample),)


def _array(part):
    if isinstance(part, (bool, int, float)):
        return part
    return torch.as_tensor(part).detach().contiguous()


def from_imagefolder(root, size, *, batch_size=1, train=False, shuffle=None, mean_std="imagenet", resize=None, drop_last=None,
                     seed=0, dataset=None, **options):
    """A loader of a folder with one sub-folder a class, as torchvision.datasets.ImageFolder has it with the usual transforms.

    train: RandomResizedCrop(size), RandomHorizontalFlip, shuffled, the last part of a batch dropped.
    Otherwise: Resize(resize, or size * 256 / 224), CenterCrop(size), in order.
    Both: ToTensor, Normalize. Gives (images float32 [N,3,size,size], labels int64 [N]).
    """
    ds = dataset if dataset is not None else Dataset.images(root)
    if train:
        work = [stages.decode(), stages.random_resized_crop(size), stages.random_flip()]
    else:
        shorter = resize if resize is not None else size * 256 // 224
        work = [stages.decode(), stages.resize(shorter=shorter), stages.center_crop(size)]
    work.append(stages.normalize(mean_std))
    ds = ds.map(work, "image").map(stages.cast("i64"), "label")
    if shuffle if shuffle is not None else train:
        ds = ds.shuffle(seed=seed)
    ds = ds.batch(batch_size, train if drop_last is None else drop_last)
    return DataLoader(ds, seed=seed, fields=("image", "label"), **options)
