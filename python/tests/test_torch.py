"""PyTorch, where it is here: the same memory, its DataLoader's arguments, its data sets."""

import os
import unittest
import warnings

import stoker
from stoker import Dataset, Loader, stages

try:
    import torch
except ImportError:
    raise unittest.SkipTest("there is no PyTorch")

from stoker.torch import DataLoader, from_imagefolder, tensor
from support import Folder, write_png


def vectors(n):
    return torch.arange(n * 3, dtype=torch.float32).reshape(n, 3)


class Tensors(unittest.TestCase):
    def test_the_memory_is_the_slots(self):
        batch = next(iter(Loader(Dataset.arrays(x=vectors(8)).batch(4))))
        for made in (tensor(batch["x"]), torch.from_dlpack(batch["x"])):
            self.assertEqual(made.data_ptr(), batch["x"].address)
            self.assertTrue(torch.equal(made, vectors(4)))
        copy = torch.from_dlpack(batch["x"], copy=True)
        self.assertNotEqual(copy.data_ptr(), batch["x"].address)

    def test_every_type(self):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8,
                      torch.uint8, torch.bool):
            data = torch.tensor([0, 1, 1, 0]).to(dtype)
            got = tensor(next(iter(Loader(Dataset.arrays(x=data).batch(4))))["x"])
            self.assertEqual(got.dtype, dtype)
            self.assertTrue(torch.equal(got, data))

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_pinning_without_a_gpu_is_a_warning(self):
        with self.assertWarnsRegex(UserWarning, "no GPU"):
            loader = DataLoader(Dataset.arrays(x=vectors(8)).batch(4), pin_memory=True)
        self.assertEqual(len(list(loader)), 2)

    def test_lists_of_half_numbers(self):
        numbers = torch.tensor([0, -0.0, 1, -2.5, 6e-8, 3e-5, 65504, float("inf"), -float("inf")])
        for dtype in (torch.float16, torch.bfloat16):
            data = numbers.to(dtype)
            self.assertEqual(next(iter(Loader(Dataset.arrays(x=data).batch(9))))["x"].tolist(), data.tolist())
            nan = torch.tensor([float("nan")]).to(dtype)
            self.assertNotEqual(*2 * next(iter(Loader(Dataset.arrays(x=nan).batch(1))))["x"].tolist())

    def test_one_that_is_kept_never_changes(self):
        loader = DataLoader(Dataset.arrays(x=vectors(64)), batch_size=4)
        kept = [next(iter(loader))["x"]]
        clone = kept[0].clone()
        for _ in range(5):
            for batch in loader:
                batch["x"].zero_()  # the consumer's own memory
        self.assertTrue(torch.equal(kept[0], clone))
        loader.close()
        self.assertTrue(torch.equal(kept[0], clone))


class Arguments(unittest.TestCase):
    def test_data_sets_of_pytorch(self):
        data = torch.utils.data.TensorDataset(vectors(10), torch.arange(10))

        class Map(torch.utils.data.Dataset):
            def __len__(self):
                return 10

            def __getitem__(self, i):
                return vectors(10)[i], i

        class Named(Map):
            def __getitem__(self, i):
                return {"x": vectors(10)[i].numpy(), "y": float(i)}

        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return ((vectors(10)[i], i) for i in range(10))

        for dataset in (data, Map(), Named(), Stream()):
            theirs = list(torch.utils.data.DataLoader(dataset, batch_size=4))
            ours = list(DataLoader(dataset, batch_size=4))
            self.assertEqual(len(theirs), len(ours))
            for a, b in zip(theirs, ours):
                self.assertEqual(type(a), type(b))
                pairs = [(a[k], b[k]) for k in a] if isinstance(a, dict) else list(zip(a, b))
                for x, y in pairs:
                    self.assertTrue(torch.equal(x.to(y.dtype), y))
                    self.assertEqual(x.dtype if x.dtype != torch.float64 else y.dtype, y.dtype)

    def test_shuffles_and_shards(self):
        data = torch.utils.data.TensorDataset(torch.arange(12))
        order = torch.cat([b[0] for b in DataLoader(data, 4, True, generator=torch.Generator().manual_seed(3))]).tolist()
        self.assertEqual(sorted(order), list(range(12)))
        self.assertNotEqual(order, list(range(12)))
        again = torch.cat([b[0] for b in DataLoader(data, 3, True, seed=3)]).tolist()
        self.assertEqual(order, again)
        parts = [DataLoader(data, 2, True, world_size=2, rank=i) for i in range(2)]
        self.assertEqual(sorted(sum((torch.cat([b[0] for b in p]).tolist() for p in parts), [])), list(range(12)))
        self.assertEqual(len(parts[0]), 3)

    def test_what_is_not_needed_is_said(self):
        data = torch.utils.data.TensorDataset(torch.arange(4))
        with self.assertRaisesRegex(TypeError, "collate_fn"):
            DataLoader(data, collate_fn=list)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loader = DataLoader(data, 2, num_workers=1, persistent_workers=True, prefetch_factor=3)
        self.assertIn("persistent_workers", str(caught[0].message))
        self.assertEqual(loader.stats()["threads"], 1)
        self.assertEqual(loader.stats()["slots"], 3)
        with self.assertRaises(TypeError):
            DataLoader(Dataset.arrays(x=vectors(4)).batch(2), batch_size=3)

    def test_images_have_their_channels_first(self):
        images = torch.arange(4 * 6 * 5 * 3, dtype=torch.uint8).reshape(4, 6, 5, 3)
        loader = DataLoader(Dataset.arrays(image=images).map(stages.scale(1.0)), batch_size=4)
        got = next(iter(loader))["image"]
        self.assertEqual(got.shape, (4, 3, 6, 5))
        self.assertTrue(got.is_contiguous(memory_format=torch.channels_last))
        self.assertTrue(torch.equal(got, images.permute(0, 3, 1, 2).float()))

    def test_a_folder_of_pictures(self):
        with Folder() as folder:
            for i, colour in enumerate(((255, 0, 0), (0, 255, 0))):
                os.mkdir(os.path.join(folder, "ab"[i]))
                for n in range(3):
                    write_png(os.path.join(folder, "ab"[i], "%d.png" % n), 20 + n, 30, colour)
            for train in (True, False):
                loader = from_imagefolder(folder, 16, batch_size=4, train=train)
                self.assertEqual(loader.classes, ["a", "b"])
                batches = list(loader)
                self.assertEqual([len(labels) for _, labels in batches], [4] if train else [4, 2])
                for images, labels in batches:
                    self.assertEqual((images.dtype, tuple(images.shape[1:]), labels.dtype), (torch.float32, (3, 16, 16), torch.int64))
                    want = (torch.eye(3)[labels] - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor([0.229, 0.224, 0.225])
                    self.assertTrue(torch.allclose(images, want[:, :, None, None].expand_as(images), atol=1e-3))

    def test_a_state_goes_on(self):
        data = torch.utils.data.TensorDataset(torch.arange(12))
        loader = DataLoader(data, 2, True, seed=1)
        whole = [b[0].tolist() for b in loader]
        for n in range(1, 6):
            again = DataLoader(data, 2, True, seed=1)
            again.load_state_dict({"epoch": 0, "batch": n})
            self.assertEqual([b[0].tolist() for b in again], whole[n:])
        loader.set_epoch(0)
        self.assertEqual([b[0].tolist() for b in loader], whole)


if __name__ == "__main__":
    unittest.main()
