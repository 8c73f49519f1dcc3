"""Writes src/data/text/class_runs.h: what each code point is to the tokenizers of the package `tokenizers`, asked of the
package itself, since its parts follow different versions of Unicode (its regular expressions a recent one, BERT's
punctuation and controls version 8). Needs `pip install tokenizers==0.23.3`.

    python3 tools/make_text_classes.py > src/data/text/class_runs.h
"""

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

POINTS = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]


def matches(pattern):
    """The code points that a pattern of one character takes out of a text."""
    split, found = pre_tokenizers.Split(Regex(pattern), "removed"), set()
    for at in range(0, len(POINTS), 4096):
        text = "".join(map(chr, POINTS[at : at + 4096]))
        kept = "".join(word for word, _ in split.pre_tokenize_str(text))
        found |= set(map(ord, text)) - set(map(ord, kept))
    return found


def vanish(normalizer):
    """Those that are not there any more after an 'a'."""
    return {c for c in POINTS if normalizer.normalize_str("a" + chr(c)) == "a"}


def main():
    bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    punctuation, words = pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Whitespace()
    bits = [
        ("LETTER", matches(r"\p{L}")),
        ("NUMBER", matches(r"\p{N}")),
        ("SPACE", matches(r"\s")),
        ("WORD", {c for c in POINTS if len(words.pre_tokenize_str(f"a{chr(c)}a")) == 1}),
        ("CONTROL", vanish(normalizers.BertNormalizer(**{**bert, "clean_text": True})) | {0}),
        ("ACCENT", vanish(normalizers.BertNormalizer(**{**bert, "strip_accents": True}))),
        ("PUNCTUATION", {c for c in POINTS if len(punctuation.pre_tokenize_str(f"a{chr(c)}a")) == 3}),
        ("MARK", vanish(normalizers.StripAccents())),
    ]
    runs, before = [], None
    for c in range(0x110000):
        value = sum(1 << i for i, (_, members) in enumerate(bits) if c in members)
        if value != before:
            runs.append(c << 8 | value)
        before = value
    print(f"/* Written by tools/make_text_classes.py from tokenizers {tokenizers.__version__}: each run of code points is")
    print(" * (first << 8 | bits), up to the next. Bits:")
    print(" *     " + ", ".join(f"{1 << i} {name.lower()}" for i, (name, _) in enumerate(bits)) + " */")
    print("/* clang-format off */")
    for i in range(0, len(runs), 10):
        print("    " + " ".join(f"0x{r:x}," for r in runs[i : i + 10]))
    print("/* clang-format on */")


main()
