"""NVIDIA DALI on the processor, into tensors of PyTorch by its own iterator, on the work of recipes/photos.yaml and
recipes/bench-cifar-jpeg.yaml. For the programs of bench/ that compare with it: pip install nvidia-dali-cuda130.
"""
import glob
import os

BATCHES = {"photos": 64, "bench-cifar-jpeg": 128}
FOLDERS = {"photos": "photos", "bench-cifar-jpeg": "cifar10/train"}
IMAGENET = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
CIFAR = [125.3, 123.0, 113.9], [63.0, 62.1, 66.7]


def files_of(name, data):
    """Paths and labels; photographs have none, and lie in one folder."""
    folder = os.path.join(data, FOLDERS[name])
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    if not classes:
        files = sorted(glob.glob(os.path.join(folder, "*")))
        return files, [0] * len(files)
    files = [(path, label) for label, of in enumerate(classes) for path in sorted(glob.glob(os.path.join(folder, of, "*")))]
    return [path for path, _ in files], [label for _, label in files]


def batches(name, data, threads):
    """(images float32 [N,3,H,W], labels) without end."""
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.base_iterator import LastBatchPolicy
    from nvidia.dali.plugin.pytorch import DALIGenericIterator
    files, labels = files_of(name, data)
    mean, std = IMAGENET if name == "photos" else CIFAR

    @pipeline_def
    def pipeline():
        encoded, label = fn.readers.file(files=files, labels=labels, random_shuffle=True, name="files")
        if name == "photos":
            images = fn.decoders.image_random_crop(encoded, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3])
            images = fn.resize(images, resize_x=224, resize_y=224, interp_type=types.INTERP_LINEAR)
        else:
            start = fn.random.uniform(range=[-4, 5], shape=[2], dtype=types.INT32)
            images = fn.slice(fn.decoders.image(encoded, device="cpu"), start=start, shape=[32, 32], axes=[0, 1],
                              out_of_bounds_policy="pad", fill_values=0)
        images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mirror=fn.random.coin_flip(), mean=mean, std=std)
        return images, label

    made = pipeline(batch_size=BATCHES[name], num_threads=threads, device_id=None, prefetch_queue_depth=2)
    loader = DALIGenericIterator(made, ["image", "label"], reader_name="files", auto_reset=True,
                                 last_batch_policy=LastBatchPolicy.DROP)
    while True:
        for batch, in loader:
            yield batch["image"], batch["label"].flatten()
