"""A table with every trouble, as Python's csv module writes it, and its cells. Standard library only.

    python3 make_csv.py > csv_golden.h
"""

import csv
import io
import random
import struct


def c_text(data):
    return '"' + "".join(f"\\{b:03o}" if b < 32 or b > 126 or b in b'"\\?' else chr(b) for b in data) + '"'


def main():
    draw = random.Random(3)
    signs = ['"', '""', ",", "\n", "\r\n", " ", "a", "bc", "é", "'", ";", "\t", "0.5", "日本"]
    rows = [["".join(draw.choice(signs) for _ in range(draw.randint(0, 5))) for _ in range(4)] for _ in range(60)]
    text = io.StringIO()
    for i, row in enumerate(rows):
        quoting = [csv.QUOTE_MINIMAL, csv.QUOTE_ALL][i % 2]
        csv.writer(text, quoting=quoting, lineterminator=["\n", "\r\n"][i % 3 == 0]).writerow(row)
    numbers = ["0", "-0", "1", "-1", "1.5", "0.1", "3.4028235e38", "1e-45", "123456789.123456789", "16777217", "1e22",
               "7.0064923216240854e-46", "0.000030517578125", " 2.5 ", "+3", "-.5", "5.", "1e5", "nan", "inf", "-inf",
               "9007199254740993", "0.30000000000000004", "8388608.5", "16777216.999999999", "1.00000017881393432617187499",
               "1.00000017881393432617187500", "1.00000017881393432617187501", "2147483647", "4.9e-324", "1.000000059604645"]
    for _ in range(40):
        numbers.append(f"{draw.choice(['', '-'])}{draw.random() * 10 ** draw.randint(-8, 9):.{draw.randint(0, 17)}f}")
    out = ["/* Written by make_csv.py. */", "/* clang-format off */", "static const char golden_table[] =", f"    {c_text(text.getvalue().encode())};"]
    out += ["static const char *const golden_cells[60][4] = {"]
    out += ["    {" + ", ".join(c_text(c.encode()) for c in row) + "}," for row in rows] + ["};", ""]
    out += ["static const struct {", "    const char *text;", "    unsigned long long f64;", "    unsigned f32;"]
    out += ["} golden_numbers[] = {"]
    for n in numbers:
        f64 = struct.unpack("<Q", struct.pack("<d", float(n)))[0]
        out.append(f"    {{{c_text(n.encode())}, 0x{f64:x}, 0x{to_f32(n):x}}},")
    print("\n".join(out + ["};"]))


def to_f32(text):
    """The nearest float of the decimal itself, ties to even, by exact fractions."""
    from fractions import Fraction

    value = float(text)
    if value != value or value in (float("inf"), float("-inf")):
        return struct.unpack("<I", struct.pack("<f", value))[0]
    near = struct.unpack("<I", struct.pack("<f", value))[0]
    exact, best = Fraction(text.strip().rstrip(".") if text.strip() != "." else "0"), None
    for bits in (near - 1, near, near + 1):
        if not 0 <= bits < 2**32:
            continue
        other = struct.unpack("<f", struct.pack("<I", bits))[0]
        if other != other or other in (float("inf"), float("-inf")):
            continue
        key = (abs(Fraction(other) - exact), bits & 1, bits != near)
        if best is None or key < best[0]:
            best = (key, bits)
    return best[1]


main()
