#!/usr/bin/env python3
"""Writes docs/python-api.md: every public name of the package stoker, its types out of the stubs, its text out of the docstrings.

usage: python_api.py > docs/python-api.md
"""
import ast
import inspect
import os

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python", "stoker")
# Heading, module, and names; None: all that its stub has.
PARTS = [("Data sets", "dataset", ["Dataset"]), (None, "compiled", ["native"]), (None, "showing", None), ("Loaders", "loader", ["Loader"]), ("stoker.torch", "torch", None), ("stoker.tf", "tf", None),
         ("stoker.jax", "jax", None), ("Training", "training", None), (None, "conversion", None), ("Steps of one's own", "session", ["Session", "Step"]), (None, "building", None),
         ("stoker.graph", "graph", None), ("Reports and the doctor", "reporting", None), (None, "watching", None),
         ("Notebooks", "notebook", ["Curve"])]
SHOWN = ("__init__", "__iter__", "__len__")


def parsed(name):
    with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
        return {node.name: node for node in ast.parse(file.read()).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def members(node):
    return {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}


def signature(name, stub, is_method):
    decorators = [ast.unparse(d) for d in stub.decorator_list]
    result = ast.unparse(stub.returns) if stub.returns else "None"
    if "property" in decorators:
        return "%s: %s" % (name, result)
    arguments = stub.args
    if is_method:
        first = arguments.posonlyargs or arguments.args
        del first[0]
    text = "%s(%s)" % (name, ast.unparse(arguments))
    return text if result == "None" else "%s -> %s" % (text, result)


def text_of(node):
    text = ast.get_docstring(node) if node is not None else None
    return inspect.cleandoc(text) if text else ""


def is_public(name):
    return not name.startswith("_") or name in SHOWN


def entry(title, text):
    lines = ["```python", title, "```", ""]
    if text:
        # Examples and lists of arguments are laid out by hand.
        for paragraph in text.split("\n\n"):
            is_plain = not any(line.startswith((">>>", "    ")) or "  " in line.strip() for line in paragraph.split("\n"))
            lines += [paragraph, ""] if is_plain else ["```", paragraph, "```", ""]
    return lines


def main():
    lines = ["# Reference of the package stoker", "", "Written by `tools/python_api.py` out of the package's stubs and docstrings. [python.md](python.md) "
             "tells how it all goes together.", ""]
    for heading, module, names in PARTS:
        stubs, ours = parsed(module + ".pyi"), parsed(module + ".py")
        lines += ["## " + heading, ""] if heading else []
        for name in names or [n for n in stubs if is_public(n)]:
            stub, node = stubs[name], ours.get(name)
            if isinstance(stub, ast.FunctionDef):
                lines += entry(signature(name, stub, False), text_of(node))
                continue
            lines += ["### " + name, ""]
            of_node = members(node)
            first = members(stub).get("__init__")
            if first:
                lines += entry(signature(name, first, True), text_of(node))
            for method, part in members(stub).items():
                text = text_of(of_node.get(method))
                if is_public(method) and method != "__init__" and (text or not method.startswith("_")):
                    lines += entry(signature("%s.%s" % (name, method), part, "staticmethod" not in str(part.decorator_list)), text)
    lines += ["## Arrays and exceptions", ""]
    for name, stub in parsed("_core.pyi").items():
        if name == "Array":
            lines += ["### Array", "", text_of(stub), ""]
            for method, part in members(stub).items():
                if not method.startswith("__getattr"):
                    lines += entry(signature("Array" if method == "__new__" else "Array." + method, part, True), "")
    lines += ["The exceptions are in [python.md](python.md#errors)."]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
