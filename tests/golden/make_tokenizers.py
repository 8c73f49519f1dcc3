"""Small tokenizers, trained here, and what the package `tokenizers` makes of hard texts with them.

Needs `pip install tokenizers==0.23.3`. Writes tokenizers/*.json, tokenizers/vocab.txt and tokenizers_golden.h next to this
file. Training WordPiece comes out a little different each time, so all of them are written together.
"""

import json
import pathlib
import random

from tokenizers import AddedToken, BertWordPieceTokenizer, Regex, Tokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent / "tokenizers"
LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TRAINING = """the training of the network is the thing that takes the time, and the time is what the data takes
when the batch is there the step begins; it's the pipeline that isn't fast, we'll see, don't they're you've I'm he'd
über die straße läuft ein schöner hund — ça va très bien, merci! el niño comió piñas mañana. привет, мир! как дела
日本語のテキスト、漢字。中文字符测试 你好世界 한국어 문장도 السلام عليكم שלום नमस्ते दुनिया ไทย 123 4567 2024 😀👍🏽
"""
TEXTS = [
    "",
    " ",
    "\n",
    "The quick brown fox doesn't jump; they're WE'VE I'll I'm he'd it's",
    "'s 's''t 'LL'd don''t '\u017f x'\u017f 'Re",
    "a  b   c\td\n\ne \n f\r\ng   \n\n  h  ",
    "   leading and trailing   ",
    "nbsp\u00a0\u00a0em\u2003sp ideographic\u3000line\u2028sep\u0085nel\u200bzwsp\ufeffbom",
    "1 12 123 1234 12345 67,890.12 $3.50 \u0661\u0662\u0663\u0664 \u00bd\u00b2\u2167",
    "Über die Straße läuft ein SCHÖNER Hund. \u0130stanbul \u0131 \u015e\u0130\u015eE",
    "e\u0301 caf\u00e9 cafe\u0301 a\u0323\u0308 a\u0308\u0323 \u1e9b\u0323 \u212b \u2126 \u0344 \u0301start",
    "\u0415\u0449\u0451 один день. Ελληνικά: Καλημέρα κόσμε ΟΔΟΣ Σ",
    "日本語のテキストと漢字、中文字符测试。\u3400\U00020000\uf900\u304b\u3099\uff76\uff9e",
    "한국어 \u1112\u1161\u11ab \u1112\u1161 문장",
    "السلام عليكم ١٢٣ עִבְרִית हिन्दी नमस्ते ไทยสวัสดี தமிழ்",
    "😀😃 👩\u200d👩\u200d👧 🇩🇪🏳\ufe0f\u200d🌈 👍🏽 \U0001d573\U0001d58a\U00010348",
    "Z\u0337\u0322\u034ea\u0338l\u0335g\u0336o\u0334 soft\u00adhyphen zero\u200djoin",
    "\x01\x02bell\x07 esc\x1b del\x7f c1\x80\x9f \ufffd \ufffe \ue000 \U000e0001",
    "func(x){ return x_1+y2*3-[a]; } //c #h @u http://e.com/p?a=b&c=d ~`^|\\",
    "<|endoftext|>the<|endoftext|> <|endof <mask>  the <mask> [MASK][CLS] [mask] [ MASK ]",
    "kings king king's  king, Café cafe\u0301 Caf\u00e9s  two words  two words two  words",
    "ﬁ ﬂ ㈱ ㌔ \ufdfa ǅ \u1fb3 \u03b0 \u1e69",
    "x" * 150 + " " + "ab" * 60,
    "!?...,,,;;;::: --- *** ((())) \"'\"'",
    "the" * 70 + "\n" + "😀" * 40,
    "the<unk> training</s> of\u00a0<s>x",
]


def text(kinds, seed, n):
    """Pieces of all kinds, mixed."""
    draw, parts = random.Random(seed), []
    for _ in range(n):
        source = draw.choice(kinds)
        at = draw.randrange(max(1, len(source) - 3))
        parts.append(source[at : at + draw.randint(1, 6)])
    return "".join(parts)


def bpe(pre_tokenizer, special, vocab, **settings):
    tokenizer = Tokenizer(models.BPE(**settings))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([TRAINING] * 3, trainer)
    return tokenizer


def wordpiece(normalizer, pre_tokenizer, vocab, **settings):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", **settings))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=vocab, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([TRAINING] * 3, trainer)
    return tokenizer


def bert(lowercase):
    tokenizer = wordpiece(
        normalizers.BertNormalizer(lowercase=lowercase), pre_tokenizers.BertPreTokenizer(), 420
    )
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def llama():
    split = [
        pre_tokenizers.Split(Regex(LLAMA), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    tokenizer = bpe(pre_tokenizers.Sequence(split), ["<|begin|>"], 360, ignore_merges=True)
    template = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", 0)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return tokenizer


def roberta():
    tokenizer = bpe(pre_tokenizers.ByteLevel(add_prefix_space=True), ["<s>", "<pad>", "</s>", "<unk>"], 340)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=True)])
    tokenizer.add_tokens(
        [AddedToken("Café"), AddedToken("king", single_word=True), AddedToken(" two words ", rstrip=True)]
    )
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def squeezed():
    steps = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    tokenizer = wordpiece(normalizers.Sequence(steps), pre_tokenizers.Whitespace(), 360, max_input_chars_per_word=20)
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    return tokenizer


def characters():
    """BPE without merges: a token for each character of the training text but the rarest."""
    special = ["[UNK]", "<|endoftext|>"]
    kept = special + sorted(c for c in set(TRAINING) if TRAINING.count(c) > 1)
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(kept)}, [], unk_token="[UNK]"))
    tokenizer.add_special_tokens(special)
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def c_text(data):
    return '"' + "".join(f"\\{b:03o}" if b < 32 or b > 126 or b in b'"\\?' else chr(b) for b in data) + '"'


def save(tokenizer, name):
    data = json.loads(tokenizer.to_str())
    (HERE / name).write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    return Tokenizer.from_file(str(HERE / name))


def main():
    HERE.mkdir(exist_ok=True)
    gpt2 = bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"], 380)
    cased = bert(False)
    files = [("gpt2.json", gpt2), ("llama.json", llama()), ("roberta.json", roberta())]
    files += [("bert.json", bert(True)), ("bert-cased.json", cased), ("squeezed.json", squeezed())]
    files += [("characters.json", characters())]
    cases = [(name, save(tokenizer, name)) for name, tokenizer in files]
    words = sorted(cased.get_vocab().items(), key=lambda item: item[1])
    (HERE / "vocab.txt").write_text("".join(word + "\n" for word, _ in words), encoding="utf-8")
    cases.append(("vocab.txt", BertWordPieceTokenizer(str(HERE / "vocab.txt"), lowercase=True)._tokenizer))
    model = json.loads(gpt2.to_str())["model"]
    (HERE / "vocab.json").write_text(json.dumps(model["vocab"], ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    (HERE / "merges.txt").write_text("#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in model["merges"]), encoding="utf-8")
    cases.append(("vocab.json", cases[0][1]))
    texts = TEXTS + [text(TEXTS[3:22] + [TRAINING], seed, 25) for seed in range(12)]
    texts.append("\n".join(TEXTS))
    out = ["/* Written by make_tokenizers.py: what the package tokenizers 0.23.3 makes of texts. */", "/* clang-format off */", ""]
    out += ["static const struct {", "    const char *text;", "    size_t n;", "} golden_texts[] = {"]
    out += [f"    {{{c_text(t.encode())}, {len(t.encode())}}}," for t in texts] + ["};", ""]
    out += ["/* By file and text: the number of tokens without special ones, then these with special ones. */"]
    out += ["static const short golden_ids[] = {"]
    decoded = []
    for name, tokenizer in cases:
        for t in texts:
            ids = tokenizer.encode(t).ids
            plain = tokenizer.encode(t, add_special_tokens=False).ids
            out.append("    " + ", ".join(map(str, [len(plain), len(ids)] + ids)) + ",")
        sample = [t for t in texts if 0 < len(t) < 120]
        decoded += [tokenizer.decode(tokenizer.encode(t).ids).encode() for t in sample[:10]]
    out += ["};", "", "/* By file: the first ten texts of 1 to 119 characters, there and back. */"]
    out += ["static const char *const golden_decoded[] = {"] + [f"    {c_text(d)}," for d in decoded] + ["};", ""]
    out += ["static const char *const golden_files[] = {"] + [f'    "{name}",' for name, _ in cases] + ["};", ""]
    (HERE.parent / "tokenizers_golden.h").write_text("\n".join(out))


main()
