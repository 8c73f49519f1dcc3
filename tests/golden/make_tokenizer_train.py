"""What the package `tokenizers` learns from a small corpus: BPE's merges, and WordPiece's tokens.

Needs `pip install tokenizers==0.23.3`. Writes tokenizer_train.txt, the corpus, and tokenizer_train_golden.h next to this
file. Words of few letters make many ties and tokens that two merges make. WordPiece numbers its alphabet in another order
each time, so that only the tokens that it always learns are written.
"""

import json
import pathlib
import random

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
CORPUS = HERE / "tokenizer_train.txt"
N_BPE, N_WORDPIECE = 700, 300


def make_corpus():
    draw = random.Random(3)
    words = ["".join(draw.choice("abc") for _ in range(draw.randint(2, 9))) for _ in range(120)]
    words += "Über straße ça привет 日本語 the training it's we'll 12 345 aaaa aaaaa abababab".split()
    lines = []
    for _ in range(150):
        lines.append(" ".join(draw.choice(words) for _ in range(draw.randint(0, 8))) + draw.choice(["", "  ", ".", "\r"]))
    CORPUS.write_bytes("\n".join(lines).encode())


def train_bpe():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=N_BPE, min_frequency=2, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train([str(CORPUS)], trainer)
    return json.loads(tokenizer.to_str())["model"]


def train_wordpiece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=N_WORDPIECE, min_frequency=2, show_progress=False,
                                        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.train([str(CORPUS)], trainer)
    return set(tokenizer.get_vocab())


def c_text(text):
    return '"' + "".join(f"\\{b:03o}" if b < 32 or b > 126 or b in b'"\\?' else chr(b) for b in text.encode()) + '"'


def main():
    make_corpus()
    model = train_bpe()
    sure = set.intersection(*(train_wordpiece() for _ in range(20))) # all that there are: no pair is left to tie
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    out = ["/* Written by make_tokenizer_train.py: what the package tokenizers 0.23.3 learns. */", "/* clang-format off */", ""]
    out += [f"enum {{ GOLDEN_BPE = {N_BPE}, GOLDEN_WORDPIECE = {N_WORDPIECE} }};", ""]
    out += ["static const char *const golden_merges[][2] = {"]
    out += [f"    {{{c_text(a)}, {c_text(b)}}}," for a, b in model["merges"]] + ["};", ""]
    out += ["static const char *const golden_tokens[] = {"] + [f"    {c_text(t)}," for t in tokens] + ["};", ""]
    out += ["/* In every one of 20 runs. */", "static const char *const golden_pieces[] = {"]
    out += [f"    {c_text(t)}," for t in sorted(sure)] + ["};", ""]
    (HERE / "tokenizer_train_golden.h").write_text("\n".join(out))
    print(f"{len(tokens)} tokens, {len(model['merges'])} merges, {len(sure)} of {N_WORDPIECE} pieces")


main()
