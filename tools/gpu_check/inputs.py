"""Images for the figures that begin with files: CIFAR-10 and photographs where they are, generated digits for small checks."""
import os
import shutil
import tarfile

import recipes

N_CLASSES, SMALL_BATCH = 10, 4


def digits(s):
    """Generated here: 28 x 28, a folder for each class."""
    folder = s.work / "digits"
    if not folder.is_dir():
        s.run(s.stoker("get", "digits", "--out", folder, "--train", 200, "--test", 40))
    return folder if folder.is_dir() else None


def find_cifar10(s):
    """The folder with train and test; None: it is not here. What lies in an archive is unpacked once."""
    for folder in (s.data, recipes.DATA, recipes.LOCAL):
        if (folder / "cifar10/train").is_dir():
            return folder / "cifar10"
    carried = s.data / "cifar10.tar"
    if carried.exists():
        with tarfile.open(carried) as archive:
            archive.extractall(s.work / "cifar10.tmp")
        shutil.rmtree(s.data / "cifar10", ignore_errors=True)
        os.rename(s.work / "cifar10.tmp/cifar10", s.data / "cifar10")
        return s.data / "cifar10"
    archive = recipes.DATA / "cifar10.tar.zst"
    if archive.exists() and shutil.which("zstd"):
        folder, _ = recipes.find_cifar10()
        return folder and folder / "cifar10"
    return None


def airbench(s):
    """What to set in recipes/cifar-airbench.yaml, or why it cannot be trained."""
    folder = digits(s) if s.small else find_cifar10(s)
    if not folder:
        return None, "no CIFAR-10 (data/cifar10, or cifar10.tar of ./dev gpu-check --carry)"
    sets = [f"data.{part}.source.images={folder / part}" for part in ("train", "test")] + ["checkpoint.end=false"]
    if s.small:
        sets += ["batch=20", "epochs=1", "whiten.samples=20", "expect=test_accuracy >= 0", "data.train.take=80", "data.test.take=20",
                 "data.train.stages=[{decode: {channels: 3}}, {random_crop: {size: 32, pad: 4}}, {normalize: cifar10}]",
                 "data.test.stages=[{decode: {channels: 3}}, {random_crop: {size: 32, pad: 4}}, {normalize: cifar10}]"]
    return sets, None


def photo_tree(s):
    """The photographs as ten classes, which takes no more than links; None: they are not here."""
    source = next((f / "photos" for f in (s.data, recipes.DATA, recipes.LOCAL) if (f / "photos").is_dir()), None)
    if not source:
        return None
    tree = s.work / "photo-files"  # not the name of a figure, whose folder is emptied
    shutil.rmtree(tree, ignore_errors=True)
    for i, path in enumerate(sorted(p for p in source.iterdir() if p.suffix.lower() in (".jpg", ".jpeg"))):
        folder = tree / f"c{i % N_CLASSES}"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, folder / f"{i}.jpg")
        except OSError:
            shutil.copyfile(path, folder / f"{i}.jpg")
    return tree


def photos(s):
    """What to set in recipes/photos.yaml, so that ResNet-50 trains on them."""
    tree = digits(s) if s.small else photo_tree(s)
    if not tree:
        return None, "no photographs (../shared/data/photos, or those of ./dev gpu-check --carry)"
    tree = tree / "train" if s.small else tree
    sets = [f"data.train.source={{images: {tree}}}", "precision=bf16", "optimizer={sgd: {lr: 0.01, momentum: 0.9}}", "epochs=1",
            "checkpoint={end: false}"]
    if s.small:
        return [*sets, f"batch={SMALL_BATCH}", "model={cnn: {classes: 10, widths: [8, 16]}}", "data.train.repeat=1",
                "data.train.stages=[{decode: {channels: 3}}, {random_resized_crop: 32}, random_flip, {normalize: imagenet}]"], None
    return [*sets, "batch=256", f"model={{resnet50: {{classes: {N_CLASSES}}}}}", "data.train.repeat=2000"], None
