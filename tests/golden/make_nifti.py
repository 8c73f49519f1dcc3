#!/usr/bin/env python3
"""Writes nifti_golden.h and the fuzz corpus: small NIfTI files by nibabel, and what nibabel reads from them.

    python3 -m venv /tmp/nib && /tmp/nib/bin/pip install nibabel
    /tmp/nib/bin/python tests/golden/make_nifti.py
"""
import pathlib

import nibabel as nib
import numpy as np

HERE = pathlib.Path(__file__).parent
CORPUS = HERE.parent / "fuzz" / "corpus" / "nifti"
rng = np.random.default_rng(1)


def oblique():
    a = np.array([[0.1, -1.9, 0.2, 7], [-1.2, 0.1, 0.0, -3], [0.2, 0.1, 3.1, 5], [0, 0, 0, 1]])
    return a


def encode(kind, data, affine, code="sform", order="<"):
    header = kind.header_class(endianness=order)
    header.set_data_dtype(data.dtype)
    image = kind(data, affine, header)
    image.header.set_sform(affine, 1 if code == "sform" else 0)
    image.header.set_qform(affine, 1 if code == "qform" else 0)
    return bytearray(image.to_bytes())


def case(name, kind, data, affine, slope=None, **options):
    raw = encode(kind, data, affine, **options)
    big = options.get("order") == ">"
    if slope:  # as a scanner writes it: nibabel would scale the numbers itself
        where, form = ((112, "f4") if kind is nib.Nifti1Image else (176, "f8"))
        raw[where:where + 2 * int(form[1])] = np.array(slope, (">" if big else "<") + form).tobytes()
    image = kind.from_bytes(bytes(raw))
    values = np.asarray(image.get_fdata(dtype=np.float32))
    canonical = nib.as_closest_canonical(image)
    turned = np.asarray(canonical.get_fdata(dtype=np.float32))
    return dict(name=name, raw=bytes(raw), values=values, turned=turned, affine=image.affine)


ints = lambda dtype, *shape: rng.integers(0, 120, shape).astype(dtype)
plain = np.diag([2.0, 2.0, 3.0, 1.0])
CASES = [
    case("u8", nib.Nifti1Image, ints("u1", 5, 4, 3), plain),
    case("i16, scaled", nib.Nifti1Image, ints("i2", 4, 3, 2) - 60, plain, slope=(0.5, -1000)),
    case("f32, oblique", nib.Nifti1Image, rng.normal(size=(4, 3, 5)).astype("f4"), oblique()),
    case("u16, quaternion", nib.Nifti1Image, ints("u2", 3, 4, 2), nib.affines.from_matvec(
        nib.eulerangles.euler2mat(0.3, -1.2, 2.0) @ np.diag([1.5, 2, -2.5]), [1, 2, 3]), code="qform"),
    case("i16, other byte order", nib.Nifti1Image, ints("i2", 4, 3, 2), oblique(), order=">"),
    case("f64, channels", nib.Nifti1Image, rng.normal(size=(3, 4, 2, 2)), np.diag([-1.0, -1.0, 1.0, 1.0])),
    case("version 2, i32", nib.Nifti2Image, ints("i4", 3, 2, 4), oblique(), slope=(2, 1)),
    case("version 2, i64, other byte order", nib.Nifti2Image, ints("i8", 3, 2, 2), plain, order=">"),
]

CORPUS.mkdir(parents=True, exist_ok=True)
with open(HERE / "nifti_golden.h", "w") as f:
    f.write(f"/* NIfTI files by nibabel {nib.__version__}, and what it reads from them, as [z,y,x,C]: as stored and turned\n"
            " * (as_closest_canonical). Made by make_nifti.py. */\n"
            "#ifndef TESTS_GOLDEN_NIFTI_GOLDEN_H\n#define TESTS_GOLDEN_NIFTI_GOLDEN_H\n\n#include <stdint.h>\n\n"
            "/* clang-format off */\ntypedef struct golden_nifti {\n    const char *name;\n    int n;\n"
            "    uint8_t raw[1200];\n    int side[4], turned_side[3];\n    float values[128], turned[128];\n"
            "    double affine[12];\n} golden_nifti;\nstatic const golden_nifti golden_niftis[] = {\n")
    for i, c in enumerate(CASES):
        (CORPUS / f"{i}.nii").write_bytes(c["raw"])
        v, t = (np.moveaxis(np.atleast_3d(x)[..., None] if x.ndim == 3 else x, (0, 1, 2), (2, 1, 0))
                for x in (c["values"], c["turned"]))
        numbers = lambda a: "{" + ", ".join(float(x).hex() for x in np.asarray(a).reshape(-1)) + "}"
        f.write(f'    {{"{c["name"]}", {len(c["raw"])}, {{{", ".join(map(str, c["raw"]))}}},\n'
                f"     {{{', '.join(map(str, v.shape))}}}, {{{', '.join(map(str, t.shape[:3]))}}},\n"
                f"     {numbers(v)},\n     {numbers(t)},\n     {numbers(c['affine'][:3])}}},\n")
    f.write("};\n/* clang-format on */\n\n#endif\n")
