#!/usr/bin/env python3
"""Text: tokenize, then windows of its tokens; lines and tables through the commands that look at data.

usage: test_text.py STOKER WORK_FOLDER
"""
import json
import os
import pathlib

from program import accepted, begin, check, end, refused

RECIPE = """
name: {name}
data:
  train:
    source: {{{source}}}
    shuffle: true
    stages: [{stages}]
batch: 4
"""


def write_recipe(name, source, stages=""):
    pathlib.Path(f"{name}.yaml").write_text(RECIPE.format(name=name, source=source, stages=stages))
    return f"{name}.yaml"


MASKED = """
name: masked
data:
  train:
    source: {tokens: {files: words.bin, length: 8}}
    masked: {tokenizer: words.json}
  valid:
    source: {tokens: {files: words.bin, length: 8}}
batch: 4
model: {bert: {size: tiny, layers: 1, width: 16, vocabulary: 60, positions: 8, dropout: 0}}
loss: masked_lm
optimizer: {adamw: {lr: 1e-2}}
epochs: 2
"""


def masking():
    """A masked language model of a text that says the same again and again."""
    pathlib.Path("words.txt").write_text("the king and the queen of the old land went home\n" * 40)
    accepted(["tokenizer", "train", "words.txt", "--wordpiece", "--vocab", "60", "--out", "words.json"])
    accepted(["tokenize", "words.txt", "--tokenizer", "words.json", "--out", "words.bin"])
    pathlib.Path("masked.yaml").write_text(MASKED)
    accepted(["train", "masked.yaml", "--out", "masked"])
    lines = [json.loads(line) for line in pathlib.Path("masked/metrics.jsonl").read_text().splitlines()]
    valid = [line["valid_loss"] for line in lines if "valid_loss" in line]
    check(len(valid) == 2 and valid[1] < valid[0] < 4.2, f"the losses fall: {valid}")
    accepted(["data", "explain", "masked.yaml"], "15 % of the tokens hidden")
    for old, new, words in (("    masked: {tokenizer: words.json}\n", "", "data.train.masked"),
                            ("words.json", "bytes", "no token [MASK]"),
                            ("words.json", "nowhere.json", "'nowhere.json'"),
                            ("{bert: {size: tiny, layers: 1, width: 16, vocabulary: 60, positions: 8, dropout: 0}}",
                             "{gpt2: {size: mini, vocabulary: 60, positions: 8}}", "'gpt2' has a cross_entropy loss")):
        pathlib.Path("wrong.yaml").write_text(MASKED.replace(old, new))
        refused(["train", "wrong.yaml", "--out", "wrong"], 1, words)


def tokenizing():
    pathlib.Path("corpus").mkdir()
    for i in range(3):
        pathlib.Path(f"corpus/{i}.txt").write_text(f"document {i}\n" * 40)
    done = accepted(["tokenize", "corpus/*.txt", "--tokenizer", "bytes", "--out", "corpus.bin", "--json"])
    result = json.loads(done.stdout)
    check(result["tokens"] == 3 * (11 * 40 + 1) and result["documents"] == 3, f"--json: {result}")
    check(json.loads(pathlib.Path("corpus.bin.json").read_text())["dtype"] == "u16", "what lies next to it")
    check(os.path.getsize("corpus.bin") == 2 * result["tokens"], "two bytes each")
    accepted(["tokenize", "corpus/0.txt", "corpus/1.txt", "--tokenizer", "bytes", "--lines", "--separator", "none",
              "--out", "new/folder/lines.bin"], "800 tokens of 80 documents")
    refused(["tokenize", "corpus/0.txt", "--tokenizer", "bytes", "--out", "corpus.bin/x.bin"], 1, "a file is in the way")
    refused(["tokenize", "corpus/*.txt", "--tokenizer", "bytes"], 2, "--out FILE")
    refused(["tokenize", "corpus/*.txt", "--tokenizer", "nothing.json", "--out", "x.bin"], 1, "'nothing.json'")
    refused(["tokenize", "nothing.txt", "--tokenizer", "bytes", "--out", "x.bin"], 1, "nothing.txt")
    refused(["tokenize", "corpus/0.txt", "--tokenizer", "bytes", "--separator", "[X]", "--out", "x.bin"], 1, "'[X]'")
    check(not os.path.exists("x.bin") and not os.path.exists("x.bin.part"), "nothing is left behind")


def looking():
    windows = write_recipe("windows", "tokens: {files: corpus.bin, length: 32}")
    accepted(["data", "explain", windows], "tokens: i32[32]")
    accepted(["data", "verify", windows], "records are whole")
    lines = write_recipe("lines", "text: {files: corpus/*.txt}", "{tokenize: {tokenizer: bytes, length: 16}}")
    accepted(["data", "explain", lines], "120 records in 3 files", "text: u8[?] -> i32[16]")
    pathlib.Path("table.csv").write_text("a,b,kind\n1,2,x\n3,,y\n5,6,x\nseven,8,y\n")
    table = write_recipe("table", "csv: {files: table.csv, fields: {x: {dtype: f32, columns: [a, b], default: 0},"
                                  " label: {dtype: class, columns: kind}}}")
    accepted(["data", "explain", table], "2 classes", "x: f32[2]", "1 of 4 records looked at cannot be read, as '")
    done = refused(["data", "verify", table], 1, "1 of 4 records are corrupt")
    check("table.csv', line 5: column 'a': 'seven' is not a number" in done.stdout, f"verify: {done.stdout}")
    refused(["data", "explain", table, "--set", "data.train.source.csv.fields.label.columns=knid"], 1,
            "did you mean 'kind'?")


LANGUAGE = """
name: language
data:
  train: {source: {tokens: {files: corpus.bin, length: 16, stride: 4}}, shuffle: true}
batch: 8
model: {gpt2: {size: mini, layers: 1, heads: 2, width: 16, vocabulary: 257, positions: 16}}
optimizer: {adamw: {lr: 0.02}}
epochs: 2
"""


def generating():
    pathlib.Path("language.yaml").write_text(LANGUAGE)
    accepted(["train", "language.yaml", "--out", "language"])
    ask = ["generate", "language", "docu", "--temperature", "0", "--tokens", "30"]
    done = accepted(ask, "document")
    check("30 tokens in" in done.stderr, f"the summary: {done.stderr}")
    check(accepted(ask + ["--quiet", "--no-cache"]).stdout == done.stdout, "the same without the cache")
    result = json.loads(accepted(ask + ["--json"]).stdout)
    check(result["tokens"] == 30 and "docu" + result["text"] + "\n" == done.stdout, f"--json: {result}")
    drawn = ask[:3] + ["--seed", "3", "--temperature", "5", "--tokens", "200", "--quiet"]
    texts = [accepted(drawn + ["--top-k", k]).stdout for k in ("0", "0", "1")]
    check(texts[0] == texts[1] != texts[2], "a seed repeats a text")
    check("\ufffd" in texts[0], "bytes that are no characters become U+FFFD")  # and it is UTF-8, or reading it failed
    check(json.loads(accepted(ask + ["--json", "--end", "<|endoftext|>"]).stdout)["text"] == result["text"], "--end")
    refused(ask[:2] + ["x", "--end", "nothing"], 1, "no token 'nothing'")
    refused(ask[:2] + [""] + ["--end", "none"], 1, "one token at least")
    refused(ask[:2], 2, "a prompt")
    for option, value, words in (("--top-p", "2", "top_p is 2"), ("--top-p", "0", "top_p is 0"), ("--top-k", "-1", "--top-k"),
                                 ("--temperature", "-1", "temperature is -1"), ("--temperature", "nan", "temperature is nan")):
        check(refused(ask + [option, value], 2, words).stdout == "", f"no prompt before the error of {option} {value}")
    refused(["generate", "corpus", "x"], 1, "holds no run")
    accepted(["export", "language", "--safetensors", "--out", "language.safetensors"])
    accepted(["import", "language.safetensors", "--out", "back"], "try: stoker generate back PROMPT --tokenizer PATH")
    check(accepted(["generate", "back", *ask[2:], "--tokenizer", "bytes"]).stdout == done.stdout, "the hint holds")
    os.rename("corpus.bin.json", "moved.json")
    refused(ask, 1, "does not tell the tokenizer")
    check(accepted(ask + ["--tokenizer", "bytes"]).stdout == done.stdout, "--tokenizer")
    os.rename("moved.json", "corpus.bin.json")
    accepted(["train", "small.yaml", "--out", "images", "--steps", "1"])
    refused(["generate", "images", "x"], 1, "'gpt2' does")


def training():
    done = accepted(["tokenizer", "train", "corpus/*.txt", "--vocab", "300", "--out", "bpe.json", "--json"])
    result = json.loads(done.stdout)
    check(result["different_words"] == 5 and 257 < result["tokens"] <= 300, f"--json: {result}")
    accepted(["tokenize", "corpus/*.txt", "--tokenizer", "bpe.json", "--out", "bpe.bin"])
    check(json.loads(pathlib.Path("bpe.bin.json").read_text())["tokenizer"] == os.path.abspath("bpe.json"), "the note")
    accepted(["tokenizer", "train", "corpus/*.txt", "--wordpiece", "--vocab", "60", "--special", "[DOC]", "--out",
              "pieces.json"], "tokens of")
    check("[DOC]" in json.loads(pathlib.Path("pieces.json").read_text())["model"]["vocab"], "--special")
    accepted(["tokenizer", "train", "corpus/*.txt", "--vocab", "300", "--out", "made/here/bpe.json"])
    check(os.path.exists("made/here/bpe.json"), "the folder is made")
    refused(["tokenizer", "train", "corpus/*.txt"], 2, "--out FILE")
    refused(["tokenizer", "show"], 2, "tokenizer train")
    refused(["tokenizer", "train", "x", "--bpe", "--wordpiece", "--out", "y"], 2, "exclude each other")
    refused(["tokenizer", "train", "corpus/*.txt", "--vocab", "100", "--out", "no.json"], 1, "ask for more")


def no_text():
    """What is no text is named, by file and offset; the tokenizer of bytes takes all."""
    pathlib.Path("half.txt").write_bytes(b"fine\n" * 300000 + b"caf\xe9 caf\xe9\n")
    pathlib.Path("wide.txt").write_bytes("\ufefffine".encode("utf-8") + "wide".encode("utf-16-le"))
    for tokenizer in "bpe.json", "pieces.json", "char.json":
        ask = ["tokenize", "corpus/0.txt", "half.txt", "--tokenizer", tokenizer, "--out", "half.bin"]
        accepted(ask, "warning: 'half.txt' is no text in UTF-8", "offset 1500003 ", "as 2 in all", "iconv", "bytes")
        accepted([*ask[:1], "wide.txt", *ask[3:]], "'wide.txt'", "offset 8 ", "as 4 in all")
        check("warning" not in accepted([*ask[:2], *ask[3:]]).stderr, "a text needs no warning")
    done = accepted(["tokenize", "half.txt", "--tokenizer", "bytes", "--out", "half.bin"])
    check("warning" not in done.stderr, f"bytes takes any: {done.stderr}")


def vocabulary():
    """A token that the model has no row for: the line of the recipe that makes the rows."""
    with open("narrow.yaml", "w") as f:
        f.write(LANGUAGE.replace("vocabulary: 257", "vocabulary: 50"))
    line = 1 + [i for i, text in enumerate(LANGUAGE.split("\n")) if "vocabulary: 257" in text][0]
    refused(["train", "narrow.yaml", "--out", "narrow"], 1, f"narrow.yaml:{line}:", "gather of 'transformer.wte.weight'",
            "is not one of the 50 rows", "'vocabulary' must be above")
    # As many rows as the data's tokenizer has tokens, unless the recipe says; weights of another size are refused.
    for name, source, rows in (("noted", "corpus.bin", 257), ("bare", "bare.bin", 50257)):
        pathlib.Path(f"{name}.yaml").write_text(LANGUAGE.replace("vocabulary: 257, ", "").replace("corpus.bin", source))
        pathlib.Path("bare.bin").write_bytes(pathlib.Path("corpus.bin").read_bytes())
        more = ["--set", "data.train.source.tokens.dtype=u16"]
        accepted(["train", f"{name}.yaml", "--out", name, "--steps", "1", *more])
        check(f"vocabulary: {rows}" in pathlib.Path(f"{name}/recipe.yaml").read_text(), f"{name} has {rows} rows")
        accepted(["train", f"{name}.yaml", "--out", name, "--steps", "2", "--resume", *more], "from step 1")
    accepted(["export", "bare", "--safetensors", "--out", "bare.safetensors"])
    refused(["train", "noted.yaml", "--out", "other", "--set", "init.weights=bare.safetensors"], 1, "is [50257,16]", "[257,16]")


def of_characters():
    """Trained, tokenized, learnt from, and generated with: the text that is printed is of the corpus's characters."""
    accepted(["tokenizer", "train", "corpus/*.txt", "--kind", "char", "--out", "char.json"], "different characters")
    tokens = accepted(["tokenize", "corpus/*.txt", "--tokenizer", "char.json", "--out", "char.bin", "--json"])
    whole = "".join(path.read_text() for path in pathlib.Path("corpus").glob("*.txt"))
    vocabulary = 2 + len(set(whole))
    check(json.loads(pathlib.Path("char.bin.json").read_text())["vocabulary"] == vocabulary, "[UNK], the end, all others")
    check(json.loads(tokens.stdout)["tokens"] == len(whole) + len(list(pathlib.Path("corpus").glob("*.txt"))), tokens.stdout)
    recipe = LANGUAGE.replace("corpus.bin", "char.bin").replace("257", str(vocabulary)).replace("language", "letters")
    pathlib.Path("letters.yaml").write_text(recipe)
    accepted(["train", "letters.yaml", "--out", "letters"])
    done = accepted(["generate", "letters", "docu", "--temperature", "9", "--tokens", "60", "--quiet", "--end", "none"])
    shown = done.stdout[:-1].replace("<|endoftext|>", "").replace("[UNK]", "")
    check(set(shown) <= set(whole), f"only what the tokenizer knows: {shown!r}")
    accepted(["generate", "letters", "\u65e5docu", "--tokens", "3"])  # unknown, and no error
    accepted(["tokenizer", "train", "--kind", "char", "--characters", "abc ", "--out", "list.json"])
    refused(["tokenizer", "train", "corpus/*.txt", "--kind", "chars", "--out", "no.json"], 2, "bpe, wordpiece or char")
    refused(["tokenizer", "train", "x", "--kind", "char", "--bpe", "--out", "no.json"], 2, "exclude each other")


begin()
tokenizing()
masking()
training()
looking()
generating()
of_characters()
no_text()
vocabulary()
end()
