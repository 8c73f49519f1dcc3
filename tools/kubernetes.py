#!/usr/bin/env python3
"""Checks examples/kubernetes against the schemas of the operators that read them.

usage: kubernetes.py MANIFESTS SCHEMA...    SCHEMA: a CustomResourceDefinition, as the operators' projects publish it

A key that a schema does not have is an error, as 'kubectl apply' warns of it.
"""
import glob
import os
import sys

import jsonschema
import yaml


def close(schema):
    """Objects have no keys but those that are named, as in a cluster that is strict."""
    if isinstance(schema, list):
        for one in schema:
            close(one)
    if not isinstance(schema, dict):
        return schema
    free = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if isinstance(schema.get("properties"), dict) and not free:
        schema["additionalProperties"] = False
        for one in schema["properties"].values():
            close(one)
    for key in ("items", "additionalProperties", "allOf", "anyOf", "oneOf"):
        close(schema.get(key))
    if schema.pop("x-kubernetes-int-or-string", False):
        schema.pop("anyOf", None)
        schema["type"] = ["integer", "string"]
    return schema


def read(path):
    with open(path) as f:
        return [text for text in yaml.safe_load_all(f) if text]


def main():
    folder, schemas = sys.argv[1], {}
    for path in sys.argv[2:]:
        for definition in read(path):
            for version in definition["spec"]["versions"]:
                key = f"{definition['spec']['group']}/{version['name']}", definition["spec"]["names"]["kind"]
                schema = close(version["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                schemas[key] = schema
    n_wrong = 0
    for path in sorted(glob.glob(os.path.join(folder, "*.yaml"))):
        for text in read(path):
            key = text["apiVersion"], text["kind"]
            if key not in schemas:
                sys.exit(f"{path}: no schema of {' '.join(key)} among those that were given")
            wrong = list(jsonschema.Draft4Validator(schemas[key]).iter_errors(text))
            for error in wrong:
                print(f"{path}: {'.'.join(str(part) for part in error.absolute_path)}: {error.message[:300]}")
            print(f"{path}: {key[1]} {'is wrong' if wrong else 'is valid'}")
            n_wrong += len(wrong)
    sys.exit(n_wrong > 0)


main()
