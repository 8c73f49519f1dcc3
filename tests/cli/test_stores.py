#!/usr/bin/env python3
"""Data in object stores: a pack in a bucket trains as the folder does, signatures are checked by moto, wrong keys are told.
What needs no signature is checked against a server of our own.

usage: test_stores.py STOKER WORK_FOLDER
"""
import os
import shutil
import struct

import moto
from program import accepted, begin, check, end, losses, refused, run
from range_server import RangeServer

VARIABLES = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
             "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_CONFIG_FILE",
             "AWS_SHARED_CREDENTIALS_FILE", "GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY", "STORAGE_EMULATOR_HOST"]


def train(source, out):
    return ["train", "small.yaml", "--out", out, "--steps", "6", "--set", f"data.train.source.images={source}"]


def fresh(**variables):
    """No cache, and these variables only."""
    shutil.rmtree("cache", ignore_errors=True)
    for name in VARIABLES:
        os.environ.pop(name, None)
    os.environ.update(variables)


def without_keys():
    """A public bucket, as path-style addresses of an endpoint; the server is a plain one."""
    os.makedirs("public", exist_ok=True)
    shutil.copytree("packed", "public/bucket/a pack+1")
    server = RangeServer("public")
    fresh(AWS_ENDPOINT_URL=server.url)
    accepted(train("s3://bucket/a pack+1", "s3-public"))
    check(losses("local") == losses("s3-public"), "the losses are those of the folder")
    fresh(STORAGE_EMULATOR_HOST=server.url)
    accepted(train("gs://bucket/a pack+1", "gs-public"))
    check(losses("local") == losses("gs-public"), "the losses are those of the folder, with gs://")
    fresh(AWS_ENDPOINT_URL=server.url)
    refused(train("s3://bucket/none", "told"), 1, "'s3://bucket/none' has no folder of JPEG", lines=None)
    refused(train("s3://", "told"), 1, "'s3:", "names a bucket and no object", lines=None)
    shutil.copytree("digits/train", "public/bucket/digits+x")
    os.mkdir("public/bucket/texts")
    for name in "a.txt", "b.txt":
        with open(f"public/bucket/texts/{name}", "w") as f:
            f.write("no image")
    folders_and_patterns("s3://bucket")
    refused(files("s3://bucket/texts", "told"), 1, "folder 's3://bucket/texts' holds no JPEG, PNG or WebP file", lines=None)
    server.close()


def files(source, out):
    return ["train", "files.yaml", "--out", out, "--steps", "6", "--set", f"data.train.source.files.paths={source}"]


def folders_and_patterns(root):
    """What a bucket holds is listed: a folder with classes, files by pattern and by folder, shards by pattern."""
    for out in "folder", "files", "pattern", "tar":
        shutil.rmtree(f"bucket-{out}", ignore_errors=True)
    shutil.rmtree("cache", ignore_errors=True)
    with open("small.yaml") as f:
        recipe = f.read()
    with open("files.yaml", "w") as f:
        f.write(recipe.replace("images: digits/train", "files: {paths: digits/train, by: folder}"))
    with open("tar.yaml", "w") as f:
        f.write(recipe.replace("images: digits/train", "tar: packed/shard-*.tar").replace("cnn: {", "cnn: {classes: 10, "))
    accepted(files("digits/train", "local-files"))
    accepted(["train", "tar.yaml", "--out", "local-tar", "--steps", "6"])
    accepted(train("digits/train", "local-folder"))
    accepted(train(f"{root}/digits+x", "bucket-folder"))
    check(losses("local-folder") == losses("bucket-folder"), "a folder of classes in a bucket")
    accepted(files(f"{root}/digits+x/", "bucket-files"))
    check(losses("local-files") == losses("bucket-files"), "a plain folder in a bucket")
    accepted(files(f"{root}/digits+x/*/*.jpg", "bucket-pattern"))
    check(losses("local-files") == losses("bucket-pattern"), "a pattern in a bucket")
    accepted(["train", "tar.yaml", "--out", "bucket-tar", "--steps", "6", "--set",
              f"data.train.source.tar={root}/a pack+1/shard-*.tar"])
    check(losses("local-tar") == losses("bucket-tar"), "shards by pattern in a bucket")
    refused(files(f"{root}/digits+x/*.nothing", "told"), 1, "no object matches", "*.nothing", lines=None)
    refused(files(f"{root}/nowhere", "told"), 1, "there is no", "/nowhere", lines=None)
    refused(train(f"{root}/nowhere", "told"), 1, "/nowhere", "each class of images needs one", lines=None)


def another_host():
    """Two stores with a bucket and an object of one name, ETag and size: neither's blocks are taken for the other's."""
    for folder, value in ("one", 1), ("two", 2):
        os.makedirs(f"{folder}/bucket", exist_ok=True)
        with open(f"{folder}/bucket/x.npy", "wb") as f:
            f.write(b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }".ljust(117) + b"\n")
            f.write(struct.pack("<8f", *[value] * 8))
        os.utime(f"{folder}/bucket/x.npy", (1e9, 1e9))  # the ETag is of time and size
    with open("y.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }".ljust(117) + b"\n")
        f.write(struct.pack("<4i", 0, 1, 0, 1))
    with open("npy.yaml", "w") as f:
        f.write("data: {train: {source: {npy: {image: s3://bucket/x.npy, label: y.npy}}}}\nbatch: 4\nlog: {every: 1 step}\n"
                "model: {mlp: {hidden: [4], classes: 2}}\ncheckpoint: {end: false, every: 1000 epochs}\n")
    seen = []
    shutil.rmtree("cache", ignore_errors=True)
    for folder in "one", "two":
        server = RangeServer(folder)
        for name in VARIABLES:
            os.environ.pop(name, None)
        os.environ["AWS_ENDPOINT_URL"] = server.url
        accepted(["train", "npy.yaml", "--out", f"of-{folder}", "--steps", "1"])
        seen.append(losses(f"of-{folder}"))
        check(any(r for p, r in server.requests if r and r != "bytes=0-0"), f"store '{folder}' was asked for its bytes")
        server.close()
    check(seen[0] != seen[1], "each store's own numbers are read")


def endless_list():
    """A store whose continuation tokens lead round in a circle, at once or after a while."""
    for period in 1, 3:
        server = RangeServer("public", list_period=period)
        fresh(AWS_ENDPOINT_URL=server.url)
        refused(files("s3://bucket/digits+x", "told"), 1, "'s3://bucket/digits+x", "has no end", lines=None)
        check(len(server.requests) < 10, f"{len(server.requests)} requests for a list without end")
        server.close()


def another_region():
    """The bucket lies elsewhere: the store says where, and is asked there."""
    seen = []

    def fault(n, path):
        return "moved" if n == 1 else None
    server = RangeServer("public", fault, seen=seen)
    fresh(AWS_ENDPOINT_URL=server.url, AWS_ACCESS_KEY_ID="KEYID", AWS_SECRET_ACCESS_KEY="verysecret")
    accepted(train("s3://bucket/a pack+1", "moved"))
    scopes = [headers["Authorization"].split("/")[2] for headers in seen]
    check(scopes[0] == "us-east-1" and set(scopes[1:]) == {"eu-west-3"}, f"regions that were signed for: {scopes}")
    server.close()
    server = RangeServer("public", lambda n, path: "moved")
    fresh(AWS_ENDPOINT_URL=server.url)
    refused(train("s3://bucket/a pack+1", "told"), 1, "lies in 'eu-west-3'", "AWS_REGION", lines=None)
    server.close()


def checked_signatures(folder):
    server = moto.Moto(folder, ["data"])
    server.upload("data", "a pack+1/ü/", "packed")
    server.upload("data", "x/a pack+1/", "packed")
    server.upload("data", "x/digits+x/", "digits/train")
    source = "s3://data/a pack+1/ü"
    keys = {"AWS_ACCESS_KEY_ID": server.key, "AWS_SECRET_ACCESS_KEY": server.secret}
    fresh(AWS_ENDPOINT_URL=server.url, **keys)
    accepted(train(source, "s3"))
    check(losses("local") == losses("s3"), "the losses are those of the folder, from moto")
    folders_and_patterns("s3://data/x")
    os.makedirs("home/.aws", exist_ok=True)
    with open("home/.aws/credentials", "w") as f:
        f.write(f"[mine]\naws_access_key_id = {server.key}\naws_secret_access_key = {server.secret}\n")
    with open("home/.aws/config", "w") as f:
        f.write(f"[profile mine]\nregion = eu-central-1\nendpoint_url = {server.url}/\n")
    fresh(AWS_PROFILE="mine", HOME=os.path.abspath("home"))
    accepted(train(source, "profile"))
    check(losses("local") == losses("profile"), "the losses with keys of a profile")
    fresh(STORAGE_EMULATOR_HOST=server.url, GS_ACCESS_KEY_ID=server.key, GS_SECRET_ACCESS_KEY=server.secret)
    accepted(train(source.replace("s3:", "gs:"), "gs"))
    check(losses("local") == losses("gs"), "the losses with HMAC keys of gs://")
    fresh(AWS_ENDPOINT_URL=server.url, **{**keys, "AWS_SECRET_ACCESS_KEY": "wrongsecret"})
    done = refused(train(source, "told"), 1, "(403 SignatureDoesNotMatch)", "does not belong to the key id", lines=None)
    check("wrongsecret" not in done.stderr, "secrets are never shown")
    fresh(AWS_ENDPOINT_URL=server.url, **{**keys, "AWS_ACCESS_KEY_ID": "AKIAUNKNOWN"})
    refused(train(source, "told"), 1, "(403 InvalidAccessKeyId)", "does not know the key id", lines=None)
    server.close()


begin()
os.environ["STOKER_CACHE"] = os.path.abspath("cache")
if "libcurl" in run("data", "bench", "small.yaml", "--set", "data.train.source.images=http://127.0.0.1:9/x").stderr:
    print("SKIP: this build has no libcurl")
    raise SystemExit(77)
accepted(["pack", "digits/train", "--out", "packed"])
fresh()
accepted(train("packed", "local"))
without_keys()
another_host()
endless_list()
another_region()
if moto.find():
    checked_signatures(moto.find())
else:
    print("SKIP: signatures are not checked against a store: there is no moto_server (STOKER_MOTO)")
end()
