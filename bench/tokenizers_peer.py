#!/usr/bin/env python3
"""Token for token compared with the Python package `tokenizers`, and how fast both are on one thread in the same run.

usage: tokenizers_peer.py STOKER [--lines 100000] [--text FILE]... [--seed 1] [--work FOLDER]

Makes lines of the given texts, of sentences in many scripts, and of random Unicode; trains six tokenizers on a part of
them with `tokenizers`, saves them, and has both encode all lines, one by one and without special tokens. Lines have no
line ends inside. `./dev tokenizers` calls it in an environment that has the package.
"""
import argparse
import array
import json
import os
import pathlib
import random
import subprocess
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import tokenizers
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA.replace("{1,3}", "")
SENTENCES = """The quick brown fox doesn't jump; they're WE'VE I'll I'm he'd it's 1,234.50 $ at 12:30
Über die Straße läuft ein SCHÖNER Hund, und der Fluß fließt träge vorbei
Ça va très bien, merci ; où est l'élève naïf ? Dès Noël où un zéphyr haï
El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío, añoraba a su querido cachorro
Съешь же ещё этих мягких французских булок, да выпей чаю
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία ΟΔΟΣ Σ
いろはにほへと ちりぬるを 日本語のテキスト、漢字。カタカナ ｶﾅ
中文字符测试，你好世界！天地玄黄，宇宙洪荒。
키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다
صِف خَلقَ خَودٍ كَمِثلِ الشَمسِ إِذ بَزَغَت ١٢٣
דג סקרן שט בים מאוכזב ולפתע מצא חברה עִבְרִית
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน
Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul ıIİi
Zażółć gęślą jaźń; Příliš žluťoučký kůň úpěl ďábelské ódy
😀😃 👩‍👩‍👧 🇩🇪🏳️‍🌈 👍🏽 𝕬𝖊𐍈 ﬁ ﬂ ㈱ ㌔ ﷺ ǅ ᾳ ṩ
e\u0301 a\u0323\u0308 \u212b \u1e9b\u0323 Z\u0337\u0322\u034ea\u0338l\u0335 soft\u00adhyphen zero\u200djoin nbsp\u00a0x
func(x){ return x_1+y2*3-[a]; } //c #h @u http://e.com/p?a=b&c=d ~`^|\\ !?...,,,;;; --- *** ((()))""".split("\n")
# Where random characters are drawn from: assigned and not, all planes that are used, and what normalizers care about.
RANGES = [(32, 127), (0xa0, 0x250), (0x250, 0x370), (0x370, 0x530), (0x530, 0x800), (0x900, 0xe00), (0xe00, 0x1000),
          (0x1e00, 0x2000), (0x2000, 0x2070), (0x2070, 0x2c00), (0x3000, 0x3200), (0x4e00, 0x9fff), (0xac00, 0xd7a4),
          (0xf900, 0xfb00), (0xfe00, 0x10000), (0x1d400, 0x1d800), (0x1f300, 0x1f700), (0x20000, 0x2a6d0)]


def clean(line):
    return line.replace("\n", " ").replace("\r", " ")


def make_lines(texts, n, seed):
    draw = random.Random(seed)
    given = [line for t in texts for line in pathlib.Path(t).read_text(encoding="utf-8", errors="replace").split("\n")]
    given = [clean(line) for line in given if line.strip()] or SENTENCES
    lines = []
    while len(lines) < n:
        kind = len(lines) % 4
        if kind < 2:
            line = given[len(lines) // 4 * 2 % len(given) + kind - len(given)]
        elif kind == 2:
            parts = (draw.choice(SENTENCES) for _ in range(draw.randint(1, 5)))
            line = draw.choice(["", " ", "  ", "\t"]).join(p[draw.randrange(len(p)):][:draw.randint(1, 40)] for p in parts)
        else:
            ranges = draw.sample(RANGES, draw.randint(1, 4))
            line = "".join(chr(draw.randrange(*draw.choice(ranges))) for _ in range(draw.randint(1, 60)))
        line = clean(line)
        if line:
            lines.append(line)
    return lines


def bpe(normalizer, *splits):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splits[0] if len(splits) == 1 else pre_tokenizers.Sequence(list(splits))
    trainer = trainers.BpeTrainer(vocab_size=8000, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return tokenizer, trainer


def wordpiece(normalizer, pre_tokenizer):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    return tokenizer, trainers.WordPieceTrainer(vocab_size=12000, show_progress=False, limit_alphabet=3000,
                                                special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])


def kinds():
    by_regex = {"behavior": "isolated"}
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return {
        "BPE, GPT-2": bpe(None, pre_tokenizers.ByteLevel(add_prefix_space=False)),
        "BPE, RoBERTa with NFC": bpe(normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=True)),
        "BPE, Llama 3": bpe(None, pre_tokenizers.Split(Regex(LLAMA), **by_regex), plain),
        "BPE, Qwen 2 with NFC": bpe(normalizers.NFC(), pre_tokenizers.Split(Regex(QWEN), **by_regex), plain),
        "WordPiece, BERT uncased": wordpiece(normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()),
        "WordPiece, BERT cased": wordpiece(normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer()),
    }


def ours(stoker, tokenizer, separator, lines, out):
    """The tokens of each line, and the seconds."""
    done = subprocess.run([stoker, "tokenize", lines, "--lines", "--separator", separator, "--threads", "1", "--json",
                           "--tokenizer", tokenizer, "--out", out], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    facts = json.loads(pathlib.Path(out + ".json").read_text())
    ids = array.array("H" if facts["dtype"] == "u16" else "I")
    ids.frombytes(pathlib.Path(out).read_bytes())
    end, by_line, line = Tokenizer.from_file(tokenizer).token_to_id(separator), [], []
    for i in ids:
        if i == end:
            by_line.append(line)
            line = []
        else:
            line.append(i)
    return by_line, json.loads(done.stdout)["seconds"]


def count_differences(lines, theirs, mine):
    n = abs(len(theirs) - len(mine))
    for line, a, b in zip(lines, theirs, mine):
        n += a != b
        if a != b and n <= 3:
            print(f"  {line!r} {[hex(ord(c)) for c in line]}\n    tokenizers {a}\n    stoker     {b}")
    return n


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("stoker")
    parser.add_argument("--lines", type=int, default=100000)
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", default=None)
    args = parser.parse_args()
    work = args.work or tempfile.mkdtemp(prefix="stk-tokenizers-")
    os.makedirs(work, exist_ok=True)
    lines = make_lines(args.text, args.lines, args.seed)
    path = os.path.join(work, "lines.txt")
    pathlib.Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} lines, {os.path.getsize(path) / 2**20:.1f} MiB; tokenizers {tokenizers.__version__}; one thread\n")
    print("| Tokenizer | Tokens | Lines that differ | `tokenizers` | Stoker | |\n|---|---:|---:|---:|---:|---:|")
    failed = False
    for name, (tokenizer, trainer) in kinds().items():
        tokenizer.train_from_iterator(lines[::7], trainer)
        saved = os.path.join(work, "tokenizer.json")
        tokenizer.save(saved)
        tokenizer = Tokenizer.from_file(saved)
        start = time.perf_counter()
        theirs = tokenizer.encode_batch(lines, add_special_tokens=False)
        their_s = time.perf_counter() - start
        separator = "[SEP]" if name.startswith("WordPiece") else "<|endoftext|>"
        mine, my_s = ours(args.stoker, saved, separator, path, os.path.join(work, "lines.bin"))
        n = count_differences(lines, [e.ids for e in theirs], mine)
        failed = failed or n > 0
        print(f"| {name} | {sum(map(len, mine)):,} | {n} | {their_s:.2f} s | {my_s:.2f} s | {their_s / my_s:.1f}x |", flush=True)
    raise SystemExit(1 if failed else 0)


main()
