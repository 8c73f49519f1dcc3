#!/usr/bin/env python3
"""Writes npy_golden.h: .npy and .npz files as NumPy writes them, and what is in them.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install numpy
    /tmp/golden/bin/python tests/golden/make_npy.py
"""
import io
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent


def npy(array, version):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def npz(save, **arrays):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


def c_array(name, data):
    lines = [f"static const uint8_t {name}[{len(data)}] = {{"]
    for at in range(0, len(data), 20):
        lines.append("    " + ", ".join(f"{b}" for b in data[at:at + 20]) + ",")
    return "\n".join(lines) + "\n};\n"


x = (np.arange(24) * 0.5 - 3).astype(np.float32).reshape(4, 3, 2)
y = np.array([7, -1, 2, 1 << 40])
types = {"f4": np.float32, "f2": np.float16, "f8": np.float64, "i8": np.int64, "i4": np.int32, "i1": np.int8,
         "u1": np.uint8, "b1": np.bool_}
refused = {"big": np.arange(3, dtype=">f4"), "fortran": np.asfortranarray(np.ones((2, 3), np.float32)),
           "complex": np.ones(2, np.complex64), "text": np.array(["a", "bc"]),
           "structured": np.zeros(2, [("a", "f4"), ("b", "i4")]), "scalar": np.float32(3), "empty": np.zeros((0, 3))}
text = f"""/* Written by make_npy.py with NumPy {np.__version__}. */
/* clang-format off */
#ifndef TESTS_GOLDEN_NPY_GOLDEN_H
#define TESTS_GOLDEN_NPY_GOLDEN_H

#include <stdint.h>

/* x: f32 [4,3,2], 0.5 i - 3; y: i64 [4] */
static const int64_t golden_y[4] = {{7, -1, 2, {1 << 40}}};
"""
for version in (1, 2, 3):
    text += c_array(f"golden_x_v{version}", npy(x, (version, 0)))
text += c_array("golden_y_v1", npy(y, (1, 0)))
for name, dtype in types.items():
    text += c_array(f"golden_{name}", npy(np.array([[0, 1], [1, 0]], dtype), (1, 0)))
for name, array in refused.items():
    text += c_array(f"golden_{name}", npy(np.asarray(array), (1, 0)))
text += c_array("golden_stored_npz", npz(np.savez, x=x, y=y))
text += c_array("golden_deflated_npz", npz(np.savez_compressed, x=x, y=y))
(HERE / "npy_golden.h").write_text(text + "\n#endif\n")
