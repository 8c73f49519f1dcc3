"""The table of docs/ulps.md, from what test_ulps prints.

    ulps.py COLUMN=FILE...      COLUMN: what the file was measured on, "cpu avx2"
"""
import sys

from machine import processor


def read(path):
    """{(dtype, function): (ulps, where)}"""
    with open(path, encoding="utf-8") as f:
        lines = [line.split() for line in f]
    return {(dtype, name): (float(ulps), at) for _, dtype, name, ulps, at in lines}


def cell(found):
    ulps, at = found
    if ulps < 0:
        return "-"
    return f"{ulps:.2f} at {float(at):.4g}" if ulps else "0"


def main():
    columns = [argument.split("=", 1) for argument in sys.argv[1:]]
    columns = [(name.replace(",", ", "), path) for name, path in columns]
    found = {name: read(path) for name, path in columns}
    first = found[columns[0][0]]
    print(f"""# How exact functions of one number are

`./dev ulps` writes this page: each function over a whole float type (every exponent, both signs, denormals, zeros, infinities, NaN;
4,096 numbers of each exponent in f32, 128 in f64), compared with libm in long double, on {processor()}. The error is in units of the
last place of the exact result, with the number where it is largest; 0.5 is rounding alone. `engine/test_ulps` holds `cpu` and
`reference` to 4.

`softplus` and `elu` are layers, of several ops: `max(x, 0) + log1p(exp(-|x|))`, and `expm1(x)` below 0. `silu` and `gelu` are products
with a small factor where x is far below 0, which the factor's denormals make coarse.
""")
    for dtype in ("f32", "f64"):
        print(f"\n## {dtype}\n\n| Function | " + " | ".join(name for name, _ in columns) + " |")
        print("|---|" + "--:|" * len(columns))
        for key in first:
            if key[0] == dtype:
                print(f"| `{key[1]}` | " + " | ".join(cell(found[name][key]) for name, _ in columns) + " |")


main()
