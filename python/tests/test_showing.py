"""Explanations and sheets of data sets."""

import json
import os
import struct
import subprocess
import unittest
import xml.etree.ElementTree

import stoker
from stoker import Dataset, stages
from stoker.__main__ import program
from support import Folder, write_png


def folder_of_images(path, n=6):
    for name in ("blue", "red"):
        os.makedirs(os.path.join(path, name))
        for i in range(n):
            write_png(os.path.join(path, name, "%d.png" % i), 8, 6, (255 * (name == "red"), 10 * i, 255 * (name == "blue")))


class Showing(unittest.TestCase):
    def make(self, folder):
        folder_of_images(os.path.join(folder, "images"))
        return Dataset.images(os.path.join(folder, "images")).shuffle(seed=2).map(
            [stages.decode(), stages.random_flip(), stages.scale("1/255")]).batch(5)

    def test_explain_is_what_the_program_says(self):
        with Folder() as folder:
            about = self.make(folder).explain()
            recipe = os.path.join(folder, "r.yaml")
            with open(recipe, "w") as f:
                f.write("name: r\ndata: {train: {source: {images: images}, shuffle: true, stages: [decode, random_flip, {scale: 1/255}]}}\nbatch: 5\n")
            told = json.loads(subprocess.run([program("stoker"), "data", "explain", recipe, "--json"], stdout=subprocess.PIPE, check=True).stdout)
        for key in ("source", "records", "classes", "samples", "order", "stages", "fields", "same_batches", "exact_resume", "in_memory"):
            self.assertEqual(about[key], told[key], key)

    def test_what_people_see(self):
        with Folder() as folder:
            about = self.make(folder).explain()
        text, drawing = str(about), about._repr_html_()
        for word in ("12 records", "2 classes", "shuffle of all 12 samples", "random_flip", "3 batches of 5"):
            self.assertIn(word, text)
            self.assertIn(word, drawing)
        root = xml.etree.ElementTree.fromstring(drawing)
        boxes = [e.get("fill") for e in root.iter("{http://www.w3.org/2000/svg}rect")]
        self.assertEqual(boxes.count("#fbe6cf"), 1)  # of three stages, one is random

    def test_names_that_are_markup(self):
        ds = Dataset.arrays({"<b>&": stoker.Array(bytes(4))}).batch(2)
        xml.etree.ElementTree.fromstring(ds.explain().svg())

    def test_sheet(self):
        with Folder() as folder:
            sheet = self.make(folder).sheet(2, 4)
            sheet.save(os.path.join(folder, "sheet.png"))
            self.assertEqual(os.path.getsize(os.path.join(folder, "sheet.png")), len(sheet.png))
        self.assertEqual(sheet.png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">II", sheet.png[16:24]), (sheet.width, sheet.height))
        self.assertEqual(sheet.n_samples, 8)
        self.assertIn("data:image/png;base64,", sheet._repr_html_())

    def test_what_cannot_be_shown(self):
        numbers = Dataset.arrays(x=stoker.Array(bytes(4)))
        with self.assertRaises(stoker.Error):
            numbers.explain()
        with self.assertRaises(stoker.Error):
            numbers.batch(2).sheet()
        with self.assertRaises(stoker.Error):
            numbers.batch(2).sheet(field="y")

        def fail(x):
            raise KeyError("none")

        with self.assertRaises(stoker.CorruptError) as caught:
            Dataset.arrays(image=stoker.Array(memoryview(bytes(4 * 6 * 6 * 3)).cast("B", (4, 6, 6, 3)))).map(fail, "image").batch(2).sheet()
        self.assertIsInstance(caught.exception.__cause__, KeyError)


if __name__ == "__main__":
    unittest.main()
