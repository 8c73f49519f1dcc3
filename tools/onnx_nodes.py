"""The node tests of the newest `onnx` package as files, which `build/tests/test_nodes` reads: FOLDER/test_name/model.onnx and
test_data_set_0/{input,output}_N.pb. Tests with more than one set of data keep the first.

    onnx_nodes.py write FOLDER          writes them
    onnx_nodes.py table LOG             the table of docs/onnx-nodes.md, from what test_nodes printed with STOKER_ONNX_VERBOSE=1
"""

import collections
import os
import re
import sys


def message(value, info):
    """The bytes of a value: a tensor, or a sequence, map or optional."""
    import onnx
    from onnx import numpy_helper

    if isinstance(value, onnx.TensorProto):
        return value.SerializeToString()
    kind = info.type.WhichOneof("value")
    make = {"map_type": numpy_helper.from_dict, "sequence_type": numpy_helper.from_list,
            "optional_type": numpy_helper.from_optional}.get(kind, numpy_helper.from_array)
    return make(value, info.name).SerializeToString()


def write(folder):
    from onnx.backend.test.case.node import collect_testcases

    n = 0
    for case in collect_testcases(None):
        data = f"{folder}/{case.name}/test_data_set_0"
        os.makedirs(data, exist_ok=True)
        with open(f"{folder}/{case.name}/model.onnx", "wb") as f:
            f.write(case.model.SerializeToString())
        inputs, outputs = case.data_sets[0]
        for name, values, infos in ("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output):
            for i, value in enumerate(values):
                with open(f"{data}/{name}_{i}.pb", "wb") as f:
                    f.write(message(value, infos[i]))
        n += 1
    print(f"{n} tests in {folder}")


def table(log):
    """Refused tests by op and by what was refused."""
    import onnx

    passed, failed = 0, []
    refused = collections.defaultdict(collections.Counter)
    for line in open(log, encoding="utf-8", errors="replace"):
        if m := re.match(r"skipped (test_\S+): (.*)", line):
            node = re.match(r"node '.*?' \((\w+)\): (.*)", m[2])
            op, why = (node[1], node[2]) if node else ("(any)", m[2])
            why = re.sub(r"'?\b(x|y|input\w*|output\w*|data|[A-Z])\b'?: ", "", why)
            refused[op][re.sub(r"(initialiser|input|output) '[^']*'", r"an \1", why)] += 1
        elif m := re.match(r"FAILED (\S+): (.*)", line):
            failed.append((m[1], m[2]))
        elif m := re.match(r"ONNX node tests: (\d+) passed, (\d+) failed, (\d+) skipped, of (\d+)", line):
            passed = m
    print(f"# ONNX's node tests\n\n`./dev onnx-nodes` writes this page: the node tests of the `onnx` package {onnx.__version__}, "
          f"on the device `cpu`, within ONNX's tolerances (but see docs/onnx.md).\n\n{passed[1]} of {passed[4]} give the recorded values, {passed[2]} "
          f"give others, {passed[3]} are refused, each with a text that names node, op and reason:\n")
    print("| Op | Tests | What is refused |\n|---|--:|---|")
    for op, whys in sorted(refused.items(), key=lambda item: (-sum(item[1].values()), item[0])):
        text = "; ".join(f"{why}" + (f" ({n})" if len(whys) > 1 else "") for why, n in whys.most_common())
        print(f"| {op} | {sum(whys.values())} | {text.replace('|', chr(92) + '|')} |")
    if failed:
        print("\nWrong values:\n")
        for name, why in failed:
            print(f"- {name}: {why}")


if __name__ == "__main__":
    {"write": write, "table": table}[sys.argv[1]](sys.argv[2])
