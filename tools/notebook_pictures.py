#!/usr/bin/env python3
"""Runs examples/notebooks and draws each with its outputs into docs/notebooks, as a browser shows it. Run by ./dev notebook-pictures.

usage: notebook_pictures.py BUILD [NAME...]

Wants nbconvert, nbclient, ipykernel, Pillow and PyTorch in its own Python, and chromium.
"""
import os
import subprocess
import sys
import tempfile

import nbclient
import nbconvert
import nbformat
from PIL import Image, ImageChops

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WIDTH, HEIGHT, COLOURS = 920, 4000, 48
STYLE = "<style>body{margin:0;padding:8px!important} .jp-Cell{padding:2px!important}</style>"


def draw(html, picture, folder):
    page, shot = os.path.join(folder, "page.html"), os.path.join(folder, "shot.png")
    with open(page, "w", encoding="utf-8") as f:
        f.write(html.replace("</head>", STYLE + "</head>"))
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000",
                    f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={shot}", "file://" + page], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    image = Image.open(shot).convert("RGB")
    ink = ImageChops.difference(image, Image.new("RGB", image.size, image.getpixel((1, image.height - 1)))).getbbox()
    image = image.crop((0, 0, image.width, min(image.height, ink[3] + 12)))
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)
    print(f"{os.path.relpath(picture, ROOT)}: {image.width} x {image.height}, {os.path.getsize(picture) // 1024} KiB", flush=True)


def main():
    build, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    os.environ["PYTHONPATH"] = os.path.join(build, "python")
    os.environ["PATH"] = build + os.pathsep + os.environ["PATH"]
    books, out = os.path.join(ROOT, "examples", "notebooks"), os.path.join(ROOT, "docs", "notebooks")
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stoker-") as folder:  # they share the digits
        for name in sorted(os.listdir(books)):
            book = nbformat.read(os.path.join(books, name), 4)
            nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
            if not wanted or name[:-6] in wanted:
                draw(nbconvert.HTMLExporter(template_name="lab").from_notebook_node(book)[0], os.path.join(out, name[:-6] + ".png"), folder)


if __name__ == "__main__":
    main()
