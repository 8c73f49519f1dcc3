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


def tokenizing():
    pathlib.Path("corpus").mkdir()
    for i in range(3):
        pathlib.Path(f"corpus/{i}.txt").write_text(f"document {i}\n" * 40)
    done = accepted(["tokenize", "corpus/*.txt", "--tokenizer", "bytes", "--out", "corpus.bin", "--json"])
    result = json.loads(done.stdout)
    check(result["tokens"] == 3 * (11 * 40 + 1) and result["documents"] == 3, f"--json: {result}")
    check(json.loads(pathlib.Path("corpus.bin.json").read_text())["dtype"] == "u16", "what lies beside it")
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
    check("table.csv', line 5: column 'a': 'seven' is no number" in done.stdout, f"verify: {done.stdout}")
    refused(["data", "explain", table, "--set", "data.train.source.csv.fields.label.columns=knid"], 1,
            "did you mean 'kind'?")


begin()
tokenizing()
looking()
end()
