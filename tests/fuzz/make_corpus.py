"""Writes the fuzz targets' seeds to corpus/<target>/. Standard library only; run it in tests/fuzz.

The JPEG files were made once with Pillow (quality 30 to 40, optimised tables) and are kept here as text.
"""
import base64
import gzip
import io
import json
import pathlib
import random
import re
import struct
import tarfile
import zipfile
import zlib

JPEG = {
    "grey":
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKB"
        "TmCNl4x9lnN+gXz/wAALCAAIAAkBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABf/EABoQAAEFAQAAAAAAAAAAAAAAAAAEBRQhMWH/2gAI"
        "AQEAAD8AIbk2ULxuH//Z",
    "444":
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKB"
        "TmCNl4x9lnN+gXz/2wBDARUXFx4aHjshITt8U0ZTfHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8"
        "fHz/wAARCAAJAAoDAREAAhEBAxEB/8QAFAABAAAAAAAAAAAAAAAAAAAABf/EABsQAAICAwEAAAAAAAAAAAAAAAABAgQhIjEy/8QAFwEA"
        "AwEAAAAAAAAAAAAAAAAAAQMFAv/EABgRAQEBAQEAAAAAAAAAAAAAAAADAgES/9oADAMBAAIRAxEAPwASrDZF+1WsZLKGETu1N8jqvpDr"
        "DgsuIm9Mf//Z",
    "420":
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62r"
        "Z4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSk"
        "pKT/wAARCAANABEDASIAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAABQAE/8QAHhAAAgICAgMAAAAAAAAAAAAAAQIAAwQREiEFU5H/"
        "xAAVAQEBAAAAAAAAAAAAAAAAAAADAv/EAB4RAAEDBAMAAAAAAAAAAAAAAAABAhEDBBIUIVFh/9oADAMBAAIRAxEAPwAvHTsR3xydiEY6"
        "jYiq2NRhW2prkiEjca6rKvAqthkhXOv2J9Epi4iUrL0bcd0f/9k=",
    "progressive":
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62r"
        "Z4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSk"
        "pKT/wgARCAAQABEDASIAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAABAAD/8QAFgEBAQEAAAAAAAAAAAAAAAAAAgED/9oADAMBAAIQ"
        "AxAAAAEriKaLYV0//8QAGRABAQADAQAAAAAAAAAAAAAAAAIDERIh/9oACAEBAAEFApY3iW+Zf//EABgRAAMBAQAAAAAAAAAAAAAAAAAB"
        "ERNR/9oACAEDAQE/AZEavh//xAAXEQADAQAAAAAAAAAAAAAAAAAAAhED/9oACAECAQE/AdXpT//EABYQAQEBAAAAAAAAAAAAAAAAABAB"
        "Mf/aAAgBAQAGPwI0tP/EABkQAQADAQEAAAAAAAAAAAAAAAABESExUf/aAAgBAQABPyGCC/BBhO1in//aAAwDAQACAAMAAAAQYM//xAAW"
        "EQEBAQAAAAAAAAAAAAAAAAABEBH/2gAIAQMBAT8QRqyf/8QAGBEAAgMAAAAAAAAAAAAAAAAAAAERIVH/2gAIAQIBAT8QbREdP//EABoQ"
        "AAMBAAMAAAAAAAAAAAAAAAABESEQcfH/2gAIAQEAAT8Q1Ruj2UaouYlnXXH/2Q==",
    "restart":
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62r"
        "Z4C8ybqmx5moq6T/wAALCAAQABgBAREA/8QAFgABAQEAAAAAAAAAAAAAAAAABAEF/8QAJRAAAQIFAwQDAAAAAAAAAAAAAQMEAAIRITEF"
        "ElEUIjNBcYGR/90ABAAB/9oACAEBAAA/AM5kji0f/9BzJHFo/9Euquw/eiVPwo1llNjuNbn4NB+R/9KMkcWj/9Nepueh047DRZXskobj"
        "k/Q980j/1AMkcWj/2Q==",
    "cmyk":
        "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAbEhQXFBEbFxYXHhwbIChCKyglJShROj0wQmBVZWRfVV1baniZgWpxkHNbXYW1hpCeo6utq2eA"
        "vMm6pseZqKuk/8AAFAgACAAIBEMRAE0RAFkRAEsRAP/EABUAAQEAAAAAAAAAAAAAAAAAAAUG/8QAHBAAAgICAwAAAAAAAAAAAAAAAAMC"
        "BBIhIjFh/9oADgRDAE0AWQBLAAA/AEbru9jr58QhVfwomTxP/9k=",
}


def write(target, name, data):
    folder = pathlib.Path("corpus") / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


# --- PNG ---

ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def rows(width, height, bits_a_pixel, filters=(0,)):
    n = (width * bits_a_pixel + 7) // 8
    return b"".join(bytes([filters[y % len(filters)]]) + bytes((7 * x + 5 * y) & 255 for x in range(n))
                    for y in range(height if n else 0))


def png(width, height, depth, colour, extra=b"", interlaced=False, filters=(0,)):
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    if interlaced:
        data = b"".join(rows((width - x + dx - 1) // dx, (height - y + dy - 1) // dy, bits) for x, y, dx, dy in ADAM7)
    else:
        data = rows(width, height, bits, filters)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra
            + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


def make_png():
    palette = chunk(b"PLTE", bytes(range(48)))
    write("png", "rgb.png", png(5, 4, 8, 2, filters=(0, 1, 2, 3, 4)))
    write("png", "rgba.png", png(3, 3, 8, 6))
    write("png", "grey16.png", png(4, 3, 16, 0))
    write("png", "grey_alpha.png", png(3, 2, 8, 4))
    write("png", "bits.png", png(9, 3, 1, 0))
    write("png", "palette.png", png(5, 3, 4, 3, palette + chunk(b"tRNS", b"\0\x80")))
    write("png", "interlaced.png", png(9, 9, 8, 2, interlaced=True))
    write("png", "gamma.png", png(2, 2, 8, 2, chunk(b"gAMA", struct.pack(">I", 45455))))
    write("png", "cut.png", png(5, 4, 8, 2)[:60])


# --- tables ---

def make_csv():
    write("csv", "plain", b"0a,b,c\n1,2.5,x\n-3,1e5,\n\n4,nan,true\n")
    write("csv", "quoted", b'0a,"b ""x"" c"\r\n"two\nlines",\r\n\r\n"",""""\r\n')
    write("csv", "tab", b"1one\t2\n9223372036854775808\t-0.1\n")
    write("csv", "no_quotes", b'3"one\t2\n"\t0.30000000000000004\n')
    write("csv", "bad", b'0"a"b,c\n"open')


# --- tokenizers ---

def make_tokenizer():
    folder = pathlib.Path("../golden/tokenizers")
    texts = {"plain": b"The train's  batch\n\nis 1234 -- caf\xc3\xa9 <mask> king",
             "hard": "e\u0301 \u65e5\u672c \U0001f600\u200d\u4f60 [MASK]\t \u0130".encode() + b"\xff\xc3", "long": b"the" * 50}
    for path in sorted(folder.glob("*.json")):
        if path.name != "vocab.json":
            for name, text in texts.items():
                write("tokenizer", f"{path.stem}-{name}", path.read_bytes() + b"\0" + text)
    write("tokenizer", "vocab", b"V" + (folder / "vocab.txt").read_bytes() + b"\0" + texts["hard"])
    write("tokenizer", "merges", b"M" + (folder / "vocab.json").read_bytes() + b"\0"
          + (folder / "merges.txt").read_bytes() + b"\0" + texts["hard"])


# --- IDX ---

def exif(orientation, big):
    order = ">" if big else "<"
    tiff = (b"MM\0*" if big else b"II*\0") + struct.pack(order + "IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0)
    return b"\xff\xe1" + struct.pack(">H", len(tiff) + 8) + b"Exif\0\0" + tiff


def make_exif():
    for name, orientation, big in (("444", 6, True), ("420", 3, False), ("grey", 8, False), ("444", 2, False)):
        jpeg = base64.b64decode(JPEG[name])
        write("jpeg", f"exif_{orientation}.jpg", jpeg[:2] + exif(orientation, big) + jpeg[2:])
    jpeg = base64.b64decode(JPEG["444"])
    write("jpeg", "exif_cut.jpg", jpeg[:2] + exif(5, True)[:-12] + jpeg[2:])


def make_idx():
    images = struct.pack(">BBBBIII", 0, 0, 8, 3, 2, 3, 4) + bytes(range(24))
    labels = struct.pack(">BBBBI", 0, 0, 8, 1, 5) + bytes(range(5))
    write("idx", "images", images)
    write("idx", "labels", labels)
    write("idx", "images.gz", gzip.compress(images, mtime=0))
    write("idx", "two_members.gz", gzip.compress(labels[:6], mtime=0) + gzip.compress(labels[6:], mtime=0))
    write("idx", "zeros.gz", gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 1, 65536) + bytes(65536), mtime=0))
    write("idx", "cut.gz", gzip.compress(images, mtime=0)[:-9])
    write("idx", "huge", struct.pack(">BBBBIIII", 0, 0, 8, 4, *[0xFFFFFFFF] * 4))


# --- safetensors ---

def safetensors(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def make_safetensors():
    def entry(dtype, shape, begin, end):
        return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    write("safetensors", "empty", safetensors({}, b""))
    write("safetensors", "two", safetensors({"__metadata__": {"format": "pt"}, "a": entry("F32", [2, 3], 0, 24),
                                             "b \"x\" \\": entry("I64", [], 24, 32)}, bytes(32)))
    types = {"F32": 4, "BF16": 2, "F16": 2, "F64": 8, "I64": 8, "I32": 4, "I8": 1, "U8": 1, "BOOL": 1}
    header, at = {}, 0
    for name, size in types.items():
        header[name] = entry(name, [1], at, at + size)
        at += size
    write("safetensors", "types", safetensors(header, bytes(at)))
    write("safetensors", "overlap", safetensors({"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 2, 6)}, bytes(6)))
    header = {"a": entry("U8", [0, 4], 0, 0), "b": entry("U8", [4], 0, 4)}
    write("safetensors", "no_elements", safetensors(header, bytes(4)))
    write("safetensors", "long_header", struct.pack("<Q", 1 << 60) + b"{}")


def shards(index, a, b=b""):
    text = index if isinstance(index, bytes) else json.dumps(index).encode()
    return struct.pack("<H", len(text)) + text + struct.pack("<H", len(a)) + a + b


def make_shards():
    a = safetensors({"__metadata__": {"format": "pt"}, "x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                     "y": {"dtype": "U8", "shape": [1], "data_offsets": [24, 25]}}, bytes(25))
    b = safetensors({"z": {"dtype": "BF16", "shape": [5], "data_offsets": [0, 10]}}, bytes(10))
    def index(**where):
        return {"metadata": {"total_size": 35}, "weight_map": where}
    write("shards", "two", shards(index(x="a", y="a", z="b"), a, b))
    write("shards", "one", shards(index(x="a", y="a"), a))
    write("shards", "unlisted", shards(index(x="a", z="b"), a, b))
    write("shards", "missing", shards(index(x="a", y="a", w="b", z="b"), a, b))
    write("shards", "no_file", shards(index(x="a", y="c"), a))
    write("shards", "outside", shards(index(x="../a", y="a"), a))
    write("shards", "elsewhere", shards(index(x="a", y="a", z="a"), a, b))
    write("shards", "twice", shards(index(x="a", y="b"), a, a))
    write("shards", "no_text", shards(index(x=1), a))
    write("shards", "no_map", shards(b'{"weight_map": []}', a))
    write("shards", "no_json", shards(b'{"weight_map": {}', b"PK\3\4zipped"))
    write("shards", "empty", shards({"weight_map": {}}, b"\x80\2ctorch"))
    write("shards", "hdf5", shards({"weight_map": {"x": "a"}}, b"\x89HDF\r\n\x1a\n"))


# --- the JSON files of checkpoints ---

def make_state():
    state = {"format": 1, "stoker": "0.1.0", "step": 7, "epoch": 1, "i_batch": 2, "epoch_samples": 256, "best_epoch": 0,
             "best_metric": 0, "n_bad_epochs": 0, "epoch_loss_sum": "0x1.8p+1", "epoch_correct": "0x1p+4", "epoch_top5": "0x0p+0",
             "best_value": "inf", "stop_value": "inf", "epoch_weight": "0x1p+8", "seed": "18446744073709551615", "recipe": "batch: 4\n"}
    files = {name: {"bytes": 10, "xxh64": "0123456789abcdef"}
             for name in ("model.safetensors", "optimizer.safetensors", "state.json")}
    write("state", "state", json.dumps(state, indent=1).encode())
    write("state", "skipped", json.dumps({**state, "skipped": {"keys": [-5, 7, 1 << 60], "records": ["a/b.png: torn"]}}).encode())
    write("state", "minimal", json.dumps({key: state[key] for key in state if key != "recipe"}).encode())
    write("state", "manifest", json.dumps({"format": 1, "files": files}, indent=1).encode())
    write("state", "format", b'{"format": 2}')
    write("state", "duplicate", b'{"format": 1, "format": 1}')


def make_data_record():
    image = {"name": "image", "dtype": "encoded", "height": 30, "width": 40}
    label = {"name": "label", "dtype": "i64", "shape": []}
    part = {"records": 100, "staged": False, "fields": [image, label], "classes": ["cat", "a \"dog\"", "\u00e9"]}
    table = {"records": 7, "staged": True, "fields": [{"name": "x", "dtype": "f32", "shape": [2, 3]}, label]}

    def record(**parts):
        return json.dumps({"stoker_data": 1, **parts}, separators=(",", ":")).encode()
    write("data_record", "images", record(train=part, test=part))
    write("data_record", "table", record(train=table, valid=table))
    write("data_record", "unknown_size", record(train={**part, "fields": [{**image, "height": 0, "width": 0}]}))
    write("data_record", "large", record(train={**part, "fields": [{**image, "height": 65535, "width": 65535}]}))
    write("data_record", "large_array", record(train={**table, "fields": [{**label, "shape": [1 << 20, 1 << 20]}]}))
    write("data_record", "no_fields", record(test={**table, "fields": []}))
    write("data_record", "twice", record(test={**table, "fields": [label, {**label, "shape": [2]}]}))
    write("data_record", "no_records", record(test={**table, "records": 0}))
    write("data_record", "no_dtype", record(test={**table, "fields": [{"name": "x", "shape": [1]}]}))
    write("data_record", "no_name", record(test={**table, "fields": [{"dtype": "u8", "shape": [1]}]}))
    write("data_record", "no_shape", record(test={**table, "fields": [{**label, "shape": 1}]}))
    write("data_record", "no_side", record(test={**table, "fields": [{**label, "shape": [0]}]}))
    write("data_record", "no_classes", record(test={**part, "classes": []}))
    write("data_record", "no_text", record(test={**part, "classes": ["cat", 1]}))
    write("data_record", "newer", b'{"stoker_data": 2}')
    write("data_record", "no_json", b'{"stoker_data": 1')


# --- recipes ---

RECIPE = b"""name: small
data:
  train:
    source: {images: a/train}
    shuffle: true
    stages: [decode, {random_crop: {size: 32, pad: 4}}, random_flip, {normalize: cifar10}]
  valid: {share: 0.1}
  test:
    source:
      idx: {images: b.gz, labels: c.gz}
    stages: [{scale: 1/255}]
batch: 128
model: {cnn: {widths: [32, 64]}}
optimizer: {sgd: {lr: 0.05, momentum: 0.9}}
schedule: cosine
epochs: 12
"""


def make_yaml():
    write("yaml", "recipe", RECIPE)
    layers = b"\n  layers:\n    - flatten\n    - dense: {units: 10}"
    write("yaml", "layers", RECIPE.replace(b"{cnn: {widths: [32, 64]}}", layers))
    write("yaml", "scalars",
          b"a: 'it''s'\nb: \"x\\ty\\u00e9\\0\"\nc: |\n  two\n  lines\n"
          b"d: >-\n  folded\n  text\ne: ~\nf: [1, -2.5e3, true]\n")
    write("yaml", "anchor", b"a: &x 1\nb: *x\n")
    write("yaml", "deep", b"[" * 70 + b"]" * 70)
    write("yaml", "twice", b"a: 1\na: 2\n")
    write("yaml", "empty", b"# nothing\n")
    # --set, after a byte 0x1E
    write("yaml", "set", RECIPE + b"\x1eoptimizer.sgd.lr=0.1\x1edata.train.stages.1.random_crop.pad=2\x1ememory=60%"
          b"\x1emodel={cnn: {widths: [8]}}\x1edata.train.take=5")
    for name, text in (("number", b"data.train.stages.9=decode"), ("scalar", b"epochs.x=1"), ("empty_key", b"a..b=1"),
                       ("nothing", b"epochs"), ("deeper", b".".join([b"a"] * 70) + b"=1"), ("bad", b"a={")):
        write("yaml", f"set_{name}", RECIPE + b"\x1e" + text)
    settings = (b"memory: 1.5 GiB\ncheckpoint: {every: 2 epochs}\nlog: {every: 10 steps}\nearly_stopping: {}\n"
                b"precision: auto\n")
    write("yaml", "settings", RECIPE + settings)
    tfrecord = b"{tfrecord: {files: a, parse_example: {image: {shape: [2, 2], dtype: u8}, label: i64}}}"
    write("yaml", "named", RECIPE.replace(b"{images: a/train}", tfrecord))
    write("yaml", "shards", RECIPE.replace(b"    shuffle: true\n", b"    shard: {count: 2, index: 2}\n"))


# --- NumPy ---

def npy(descr, shape, data, version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + data


def npz(method, **arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in arrays.items():
            info = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            with archive.open(info, "w", force_zip64=True) as member:
                member.write(data)
    return out.getvalue()


def make_npy():
    small = npy("<f4", (2, 3), bytes(24))
    write("npy", "f4.npy", small)
    write("npy", "v2.npy", npy("|u1", (5,), bytes(5), 2))
    write("npy", "v3.npy", npy("<i8", (), bytes(8), 3))
    write("npy", "huge.npy", npy("<f8", (1 << 62, 1 << 62), b""))
    write("npy", "old.npy", small.replace(b"(2, 3), ", b"(2L,3L,)"))
    write("npy", "stored.npz", npz(zipfile.ZIP_STORED, x=small, y=npy("|b1", (2,), bytes(2))))
    write("npy", "deflated.npz", npz(zipfile.ZIP_DEFLATED, x=small))
    zipped = npz(zipfile.ZIP_STORED, x=small)
    n = len(zipped) - 22  # A list of members that goes on for some bytes: once written past its end.
    write("npy", "short_list.npz", zipped[:n] + bytes(9) + zipped[n:n + 12] +
          struct.pack("<I", struct.unpack("<I", zipped[n + 12:n + 16])[0] + 9) + zipped[n + 16:])
    write("npy", "cut.npz", npz(zipfile.ZIP_DEFLATED, x=small)[:-30])


# --- TFRecord and Example ---

def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", crc32c(head)) + data + struct.pack("<I", crc32c(data))


def varint(x):
    x &= (1 << 64) - 1
    out = b""
    while x > 127:
        out += bytes([x & 127 | 128])
        x >>= 7
    return out + bytes([x])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def features(**values):
    return field(1, b"".join(field(1, field(1, k.encode()) + field(2, v)) for k, v in values.items()))


def make_records():
    ints, floats, text = field(3, field(1, varint(5) + varint(-6))), field(2, field(1, bytes(8))), field(1, field(1, b"ab"))
    whole = features(x=ints, image=text, y=floats)
    write("example", "whole", whole)
    write("example", "floats", features(x=floats))
    write("example", "unpacked", features(x=field(3, varint(8) + varint(3) + varint(8) + varint(-1)),
                                          image=field(2, varint(13) + bytes(4))))
    write("example", "two_strings", features(x=field(1, field(1, b"a") + field(1, b""))))
    write("example", "groups", varint(9 << 3 | 3) + varint(16 << 3) + varint(1) + varint(9 << 3 | 4) + whole)
    write("example", "twice", features(x=ints) + features(x=floats))
    write("example", "long", field(1, b"")[:1] + varint(1 << 60))
    write("tfrecord", "three", record(whole) + record(b"") + record(bytes(300)))
    write("tfrecord", "cut", record(whole)[:-5])
    write("tfrecord", "huge", struct.pack("<QI", 1 << 63, crc32c(struct.pack("<Q", 1 << 63))) + bytes(20))
    write("tfrecord", "crc", record(whole)[:-1] + b"!")
    write("tfrecord", "gzip", gzip.compress(record(whole), mtime=0))


# --- tar ---

def make_tar():
    def tar(kind, *names):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size = len(name)
                archive.addfile(info, io.BytesIO(name.encode()))
        return out.getvalue().rstrip(b"\0") + bytes(1100)
    long = "d" * 90 + "/" + "e" * 90
    write("tar", "ustar", tar(tarfile.USTAR_FORMAT, "a/1.jpg", "a/1.cls", long[:150] + ".jpg"))
    write("tar", "gnu", tar(tarfile.GNU_FORMAT, "1.jpg", long + ".jpg", long + ".cls"))
    write("tar", "pax", tar(tarfile.PAX_FORMAT, "1.jpg", long + ".jpg", "1.CLS"))
    write("tar", "cut", tar(tarfile.GNU_FORMAT, "1.jpg", long + ".jpg")[:1700])
    binary = bytearray(tar(tarfile.USTAR_FORMAT, "1.jpg"))
    binary[124:136] = b"\x80" + bytes(10) + b"\5"
    write("tar", "binary_size", bytes(binary))
    entries = b"".join(struct.pack("<QQI", 512 * i, 3, len(name)) + name for i, name in enumerate([b"a.jpg", b"a.cls"]))
    write("tar", "index", entries + bytes(600))


# --- archives ---

def make_archive():
    def tar(*members):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for name, kind in members:
                info = tarfile.TarInfo(name)
                info.type, info.linkname, info.size = kind, "/tmp", 3 if kind == tarfile.REGTYPE else 0
                archive.addfile(info, io.BytesIO(b"abc") if info.size else None)
        return out.getvalue().rstrip(b"\0") + bytes(1100)
    def zipped(method):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as archive:
            for name in "top/a.txt", "top/.hidden", "../up", "top/":
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), b"" if name.endswith("/") else b"abc" * 9,
                                 method)
        return out.getvalue()
    whole = tar(("top/a.txt", tarfile.REGTYPE), ("top/link", tarfile.SYMTYPE), ("../up", tarfile.REGTYPE))
    write("archive", "tar", whole)
    write("archive", "tgz", gzip.compress(whole, mtime=0))
    write("archive", "two_streams", gzip.compress(whole[:700], mtime=0) + gzip.compress(whole[700:], mtime=0))
    write("archive", "cut_tgz", gzip.compress(whole, mtime=0)[:-9])
    write("archive", "bomb", gzip.compress(bytes(1 << 21), mtime=0))
    write("archive", "stored", zipped(zipfile.ZIP_STORED))
    write("archive", "deflated", zipped(zipfile.ZIP_DEFLATED))
    write("archive", "name", b"\1./top//a/../" + 256 * b"b")
    write("archive", "long", ("d" * 200 + "/").encode() * 6)


# --- packs ---

def make_pack():
    whole = b"""{"stoker_pack": 1, "n_records": 3, "fingerprint": "00ff", "has_labels": true, "classes": ["a", "b"],
 "shards": [{"file": "shard-00000.tar", "n_records": 3, "n_bytes": 512, "crc32": "0badcafe"}]}"""
    write("pack", "whole", whole)
    write("pack", "cut", whole[:-40])
    write("pack", "no_classes", whole.replace(b'["a", "b"]', b"null"))
    write("pack", "tfrecord", whole.replace(b'"n_records": 3, "fing', b'"format": "tfrecord", "n_records": 3, "fing')
          .replace(b'"crc32"', b'"entries": "shard-00000.tar.entries", "crc32"'))
    for i, (a, b) in enumerate(((b'["a", "b"]', b"[1]"), (b'["a", "b"]', b"[]"), (b"shard-00000.tar", b"../x"),
                                (b'"shards": [', b'"shards": 1, "x": ['), (b"0badcafe", b"0x bad"), (b'": 512', b'": -1'),
                                (b"}]}", b', "entries": "/x"}]}'), (b'"n_records": 3, "fing',
                                                                   b'"format": "zip", "n_records": 3, "fing'))):
        write("pack", f"bad_{i}", whole.replace(a, b, 1))
    write("pack", "other_format", whole.replace(b'pack": 1', b'pack": 9'))


# --- indexes of entry points; the fuzz target puts the checksum right ---

def entry_index(*files):
    table, names, entries = b"", b"", b""
    for name, n in files:
        table += struct.pack("<QqQIIqQ", 1000 + n, 1700000000000000000, len(entries) // 12, n, len(names), 17, 1 << 60)
        names += name + b"\0"
        entries += b"".join(struct.pack("<IHhhh", 600 + 50 * i, i % 8, 10 * i, -i, i) for i in range(n))
    head = b"stkjpg2\n" + struct.pack("<QQQ", len(files), len(names), len(entries) // 12)
    return head + table + names + entries + bytes(8)


def make_scan():
    def scan(answers, n=None):
        head = b"stksurv1" + struct.pack("<QQ", 7, len(answers) if n is None else n)
        return head + struct.pack(f"<{len(answers)}i", *answers) + bytes(8)
    write("scan", "whole", scan([1, 0, 5, -1, 2**31 - 1]))
    write("scan", "empty", scan([]))
    write("scan", "below", scan([1, -1000]))
    write("scan", "cut", scan([1, 2, 3])[:-3])
    write("scan", "many", scan([1, 2], 2**62))


def make_video_index():
    def index(frames, whole, times, keys, timed=1, height=48, width=64):
        head = struct.pack("<8q", 1 << 16 | 59, height, width, frames, whole, 2, timed, len(keys))
        return head + struct.pack(f"<{len(times) + len(keys)}q", *times, *keys)
    write("video_index", "whole", index(4, 4, [0, 512, 1024, 1536], [0, 1024]))
    write("video_index", "cut", index(9, 2, [0, 512], [-5]))
    write("video_index", "untimed", index(30, 30, [], [], timed=0))
    write("video_index", "falling", index(3, 3, [0, 512, 511], [0]))
    write("video_index", "keys_fall", index(2, 2, [0, 512], [7, 7]))
    write("video_index", "no_keys", index(2, 2, [0, 512], []))
    write("video_index", "flat", index(1, 1, [0], [0], height=0))
    write("video_index", "many", index(2**60, 2**60, [0], [0]))
    write("video_index", "odd", index(1, 1, [0], [0])[:-3])


def make_entries():
    whole = entry_index((b"a/1.jpg", 3), (b"a/2.jpg", 0), (b"b.jpg", 5))
    write("entries", "whole", whole)
    write("entries", "empty", entry_index())
    write("entries", "unsorted", entry_index((b"b.jpg", 1), (b"a.jpg", 1)))
    write("entries", "cut", whole[:-20])
    write("entries", "many_files", whole[:8] + struct.pack("<Q", 2**60) + whole[16:])
    write("entries", "far_entries", whole[:48] + struct.pack("<Q", 2**62) + whole[56:])
    write("entries", "older", whole.replace(b"stkjpg2", b"stkjpg1"))


# --- lists of objects, and profiles with keys ---

def make_listing():
    def contents(key, size, etag="&quot;d41d8&quot;"):
        return f"<Contents><Key>{key}</Key><Size>{size}</Size><ETag>{etag}</ETag></Contents>"

    def answer(*parts, declaration='<?xml version="1.0" encoding="UTF-8"?>\n'):
        root = '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        return (declaration + root + "".join(parts) + "</ListBucketResult>").encode()

    more = "<IsTruncated>true</IsTruncated><NextContinuationToken>1ueGcxLPRx1Tr/XYE=</NextContinuationToken>"
    write("listing", "two", answer(contents("a/1.jpg", 17), contents("&#252;&#x1F600;&amp;", 2**63 - 1)))
    write("listing", "more", answer(contents("a", 0), more))
    write("listing", "empty", answer("<Prefix/>", declaration=""))
    write("listing", "nested", answer("<Contents><Owner><ID>x</ID></Owner><Key>k</Key><Size>1</Size></Contents>"))
    write("listing", "cut", answer(contents("a/1.jpg", 17))[:-30])
    write("listing", "credentials", b"# mine\n[default]\r\naws_access_key_id = A\r\naws_secret_access_key=b=/+\n[x]\n")
    write("listing", "config", b"[profile default]\nregion = eu-west-1\ns3 =\n  endpoint_url = http://x\naws_access_key_id=A\n")


def field(number, value):
    """A field of a protobuf message: an int as a varint, else bytes."""
    def varint(x):
        out = b""
        while x > 127:
            out, x = out + bytes([x & 127 | 128]), x >> 7
        return out + bytes([x])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx_value(name, *dims):
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def onnx_node(op, inputs, output, attributes=(), to=None):
    ints = b"".join(field(5, field(1, name) + b"".join(field(8, x) for x in values) + field(20, 7))
                    for name, values in attributes)
    if to is not None:
        ints += field(5, field(1, b"to") + field(3, to) + field(20, 2))
    return b"".join(field(1, x) for x in inputs) + field(2, output) + field(3, b"n_" + output) + field(4, op) + ints


def onnx_model(nodes, inputs, output, initializers=()):
    graph = b"".join(field(1, n) for n in nodes) + field(2, b"g") + b"".join(field(5, t) for t in initializers)
    graph += b"".join(field(11, v) for v in inputs) + field(12, output)
    return field(1, 8) + field(7, graph) + field(8, field(1, b"") + field(2, 17))


def make_onnx():
    x, y = onnx_value(b"x", 2, 3, 4, 4), onnx_value(b"y", 2, 3, 4, 4)
    write("onnx", "relu", onnx_model([onnx_node(b"Relu", [b"x"], b"y")], [x], y))
    write("onnx", "unknown", onnx_model([onnx_node(b"Frobnicate", [b"x"], b"y")], [x], y))
    weight = field(1, 5) + field(1, 3) + field(1, 3) + field(1, 3) + field(2, 1) + field(8, b"w")
    weight += field(9, struct.pack("<135f", *[i / 135 for i in range(135)]))
    shape = field(1, 2) + field(2, 7) + field(8, b"shape") + field(9, struct.pack("<2q", 2, -1))
    nodes = [onnx_node(b"Conv", [b"x", b"w"], b"c", [(b"pads", (1, 1, 1, 1)), (b"kernel_shape", (3, 3))]),
             onnx_node(b"Relu", [b"c"], b"r"), onnx_node(b"MaxPool", [b"r"], b"p", [(b"kernel_shape", (2, 2))]),
             onnx_node(b"Reshape", [b"p", b"shape"], b"y")]
    write("onnx", "conv", onnx_model(nodes, [x], onnx_value(b"y", 2, 45), [weight, shape]))
    def elsewhere(**entries):
        pairs = b"".join(field(13, field(1, k.encode()) + field(2, v)) for k, v in entries.items())
        return field(1, 5) + field(1, 3) + field(1, 3) + field(1, 3) + field(2, 1) + field(8, b"w") + pairs + field(14, 1)
    for name, entries in {"external": {"location": b"w"}, "external_part": {"location": b"./w", "offset": b"64", "length": b"540"},
                          "external_up": {"location": b"../w"}, "external_root": {"location": b"/w"},
                          "external_folder": {"location": b"."}, "external_none": {"location": b"none"},
                          "external_far": {"location": b"w", "offset": b"600"}, "external_short": {"location": b"w", "length": b"9"},
                          "external_number": {"location": b"w", "offset": b"-1"}, "external_unnamed": {"checksum": b"location"},
                          }.items():
        write("onnx", name, onnx_model(nodes, [x], onnx_value(b"y", 2, 45), [elsewhere(**entries), shape]))
    nodes = [onnx_node(b"Shape", [b"x"], b"s"), onnx_node(b"Expand", [b"x", b"s"], b"y")]
    write("onnx", "shape", onnx_model(nodes, [x], y))
    # Once multiplied past the largest number.
    huge = field(1, 4) + field(2, 7) + field(8, b"shape") + field(9, struct.pack("<4q", 150994945, 16842753, 1, 117440514))
    write("onnx", "huge_shape", onnx_model([onnx_node(b"Reshape", [b"x", b"shape"], b"y")], [x], y, [huge]))
    # A number of each type, as raw bytes and one in an int32 each, and its sum with x.
    numbers = {"f16": (10, 2), "bf16": (16, 2), "f64": (11, 8), "i32": (6, 4), "i8": (3, 1), "u8": (2, 1), "bool": (9, 1), "i64": (7, 8)}
    for name, (number, size) in numbers.items():
        nodes = [onnx_node(b"Cast", [b"c"], b"d", to=1), onnx_node(b"Add", [b"x", b"d"], b"y")]
        raw = field(2, number) + field(8, b"c") + field(9, bytes([1] * size))
        write("onnx", f"raw_{name}", onnx_model(nodes, [x], y, [raw]))
        if size <= 4:
            listed = field(1, 4) + field(2, number) + field(8, b"c") + field(5, b"\1\0\1\1")
            write("onnx", f"list_{name}", onnx_model(nodes, [x], y, [listed]))
    deep = b""
    for _ in range(60):
        deep = field(1, field(5, field(6, deep)))
    write("onnx", "deep", field(7, deep))


def make_watch():
    """The first byte says which text it is; R is a recording."""
    texts = {
        "\x01": "4711 (a b) D 17 4711 4000 0 -1 4194560 100 200 30 40 500 70 6 7 20 0 12 0 98765 1000000 2560 "
                "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0\n",
        "\x02": "27867 188597 2\n",
        "\x03": "VmRSS:\t   8 kB\nVmSwap:\t   12 kB\n",
        "\x04": "some avg10=1.00 avg60=0.00 avg300=0.00 total=77\n",
        "\x05": "cpu  10 20 30 1000 5 6 7 8 0 0\ncpu0 5 10 15 500 2 3 3 4 0 0\nprocs_running 3\n",
        "\x06": " 259 0 nvme0n1 10 0 100 5 20 0 200 6 0 50 11\n 259 1 nvme0n1p1 10 0 100 5 20 0 200 6 0 50 11\n",
        "\x07": "Inter-| Receive\n lo: 5 1 0 0 0 0 0 0 5 1\n eth0:1000 1 0 0 0 0 0 0 2000 1\n",
        "\x08": "0-3,8,10-11\n",
        "\x09": "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 20 0:40 / /data rw shared:1 - nfs4 server:/x rw\n",
        "\x0a": "0 0x5 0x7f 0x1000 0x0 0x0 0x0 0x7ffc 0x7f36\n",
        "\x0b": "request_wait_answer",
        "\x0c": "7f-80 r-xp 0 0 0 /usr/lib/python3/torch/lib/libtorch_cpu.so\n",
        "\x0d": "#0-0 MISMATCH\n 1 rank has launched up to operation 6649:\n Rank 3 -- GPU 0\n",
        "\x0e": "50000 100000\n",
        "R": "stoker-watch-record 1\nI command a b\nM 0 0:3 1:100\nP 7 0:1 5:10\nH 7 0:8 4:3\nG 0 0:501\nT 100\n"
             "P 7 5:-3\nX H 7\nT 200\n",
    }
    texts["\x0f"] = "5:cpu,cpuacct:/docker/x\n3:memory:/\n0::/pods/job\n"
    for kind, text in texts.items():
        write("watch", f"{ord(kind):02x}", (kind + text).encode())
    for name, text in recordings().items():
        write("watch", name, ("R" + text).encode())


def recordings():
    """Jobs as a recording tells of them: counters of each tenth of a second."""
    source = (pathlib.Path(__file__).parent / "../../src/watch/sample.h").read_text()
    letters = {"M": "MACHINE", "G": "GPU", "P": "PROCESS", "H": "THREAD"}
    fields = {letter: re.findall(r"X\((\w+)\)", re.search(rf"{word}_FIELDS\(X\)(.*?)\n\n", source, flags=re.S)[1])
              for letter, word in letters.items()}

    def write_all(n, framework, counters):
        """counters(i): for each letter the fields of sample i that are known."""
        last, lines = {}, ["stoker-watch-record 1", "I command python <train>.py", f"I framework {framework}"]
        for i in range(n):
            for letter, known in counters(i).items():
                for field, value in known.items():
                    key = letter, fields[letter].index(field)
                    if value != last.get(key, -1):
                        lines.append(f"{letter} {0 if letter in 'MG' else 7} {key[1]}:{value - last.get(key, -1)}")
                        last[key] = value
            lines.append("T 100000")
        return "\n".join(lines) + "\nI missing GPM counters\nI overhead 0.004\nI exit 1\n"

    def job(gpu_busy, cores, moving=True):
        def counters(i):
            k = i if moving or i < 20 else 20
            return {"M": {"n_cpus": 2, "busy_ms": 100 * i, "memory_kb": 1000000, "available_kb": 900000 - 20000 * k, "oom_kills": 0,
                          "swapped_in_pages": 0, "swapped_out_pages": 0, "psi_io_us": 0, "psi_memory_us": 0},
                    "G": {"busy_permille": gpu_busy(i), "memory_mb": 80000, "memory_used_mb": 60000, "own_mb": 59000, "n_own": 1,
                          "other_mb": 0, "n_other": 0, "power_mw": 100000 + 500 * gpu_busy(i), "power_limit_mw": 700000,
                          "clock_mhz": 1900, "clock_most_mhz": 1980, "slowdown_mask": 0, "energy_mj": 1000000 + 20000 * i,
                          "pcie_sent_kbs": 100, "pcie_received_kbs": 900},
                    "P": {"parent": 1, "start_ticks": 5, "state": ord("R"), "n_threads": 1, "cpu_us": int(cores * 1e5 * k),
                          "main_us": int(cores * 1e5 * k), "asked_kb": 100 * k, "put_kb": 0, "read_kb": 0, "major_faults": 0,
                          "holds_gpu": 1, "n_allowed_cpus": 2, "wait": 4 if k < i else 0},
                    "H": {"process": 7, "cpu_us": int(cores * 1e5 * k), "waited_us": 0, "is_active": 1, "state": ord("R")}}
        return counters

    return {"starves": write_all(30, "torch", job(lambda i: 900 if i % 4 == 0 else 0, 0.9)),
            "healthy": write_all(30, "jax", job(lambda i: 990, 0.2)),
            "hangs": write_all(60, "torch", job(lambda i: 990 if i < 20 else 0, 0.5, moving=False))}


def make_http():
    write("http", "get", b"GET /metrics?x=1 HTTP/1.1\r\nHost: localhost:9464\r\nAccept: */*\r\n\r\n")
    write("http", "head", b"HEAD / HTTP/1.0\n\n")
    write("http", "post", b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")
    write("http", "cut", b"GET /metrics HTTP/1.1\r\nHost: loc")
    write("http", "old", b"GET /\r\n")
    write("http", "no_path", b"GET http://a/ HTTP/1.1\r\n\r\n")


def beat(rank=1, n_beats=1, step=9, phase=2, in_call=0, n_calls=20, call_ms=0, status=0, log=b"begins\nepoch 1", **more):
    numbers = [4711, n_beats, step, 0, 24, 3, n_calls, more.get("given", 0), call_ms, more.get("wait", 5), more.get("held", 0), more.get("aside", 0)]
    return (struct.pack("<4sIQ", b"STKB", 1080, 7) + struct.pack("<ii12q4i", rank, more.get("n_ranks", 3), *numbers, phase, in_call,
                                                                 status, more.get("memory", 0))
            + struct.pack("24s24s64s384s448s", b"all_reduce", b"cpu", b"a", b"/runs/x", log))


def make_beat():
    write("beat", "three", beat(0) + beat(1) + beat(2))
    late = [beat(r, n_beats=i, step=9 + i, wait=i * 600 * (r != 1), held=i * 500 * (r == 1)) for i in range(1, 14) for r in range(3)]
    write("beat", "slow", b"".join(late))
    write("beat", "silent", b"".join(late[:6] + late[::3]))
    write("beat", "stuck", beat(0) + beat(1) + beat(0, 2, in_call=1, n_calls=21, call_ms=9000) + beat(2, 2, in_call=1, n_calls=21, call_ms=9000))
    write("beat", "last", b"".join(beat(r, in_call=1, call_ms=9000, given=7 - (r == 1)) for r in range(3)))
    write("beat", "together", b"".join(beat(r, in_call=1, call_ms=9000) for r in range(3)))
    write("beat", "failed", beat(0) + beat(1, phase=5, status=4) + beat(2, phase=5, status=2**31 - 1))
    write("beat", "odd", beat(phase=-1, in_call=7, call_ms=-2**63, log=b"\xff" * 448, wait=2**63 - 1, held=-2**63, aside=2**63 - 1) * 2)
    write("beat", "gone", b"".join(late[:9]) + beat(1, 9, memory=2) + beat(0, 9))
    write("beat", "slept", b"".join(late[:9]) + beat(1, 9, memory=3) + b"".join(late[12:]))
    write("beat", "others", beat(rank=-1) + beat(rank=3) + beat(n_ranks=4) + beat()[:-1])


def make_runs():
    """Bytes are decisions there, so any will do; the first says whether what they make is changed at random besides."""
    draw = random.Random(1)
    for target in "run_onnx", "run_recipe":
        for i in range(48):
            n = draw.choice([40, 80, 160, 320])
            write(target, f"random_{i}", bytes([draw.randrange(9, 256)]) + draw.randbytes(n))
    for name in "conv", "shape":
        write("run_onnx", name, pathlib.Path("corpus/onnx", name).read_bytes())
    write("run_recipe", "mlp.yaml", b"data: {train: {source: {synthetic: {fields: {x: [6]}, classes: 4, samples: 9}}}}\n"
          b"batch: 4\nmodel: {mlp: {hidden: [5]}}\noptimizer: {sgd: {lr: 0.1, momentum: 0.9}}\nepochs: 1\n")


for decoder in "jpeg", "jpeg_crop", "transcode":
    for file_name, text in JPEG.items():
        write(decoder, file_name + ".jpg", base64.b64decode(text))
    write(decoder, "cut.jpg", base64.b64decode(JPEG["420"])[:-40])
    write(decoder, "fill_bytes.jpg", b"\xff\xd8" + b"\xff" * 8)  # Once read past its end.
# A progressive file without all of its scans, which is smoothed: the coefficients alone do not give its pixels.
write("transcode", "smoothed.jpg", base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6j"
    "q62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKRgpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSk"
    "pKSkpKSkpKT/wgARCAAQABEDASIAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAABAAD/8QAFgEBAQEAAAAAAAAAAAAAAAAAAgED"
    "/9oADAMBAAIQAxAAAAEriKaLYV0//8QAGRABAQADAQAAAAAAAAAAAAAAAAIDERIh/9oACAEBAAEFApY3ibmJZ11x/9k="))


# --- results of stoker bench, and prices ---

def make_bench():
    def run(number, figure, **more):
        return {"number": number, "round": number if number else None, "warm_up": not number, "counted": bool(number), "outlier": False,
                "marks": [], "at_s": 0.5, "figure": figure, "wall_s": 0.1, "user_s": 0.1, "system_s": 0, "joules": None,
                "during": {"neighbour_cores": 0.1}, **more}

    def case(name, unit, value, **more):
        median = {"value": value, "low": value * 0.9, "high": value * 1.1}
        return {"name": name, "command": ["x", "<b>"], "figure": "x", "unit": unit, "better": "more", "peak": None,
                "summary": {"median": median, "counted_runs": 2, "marked_runs": 1, "marks": {"heat": 1}, "outliers": 1, "trend": True,
                            "trend_share": 0.1, "first_run_s": 1, "joules": 3, **more.pop("summary", {})},
                "runs": [run(0, value), run(1, value), run(2, value, outlier=True, marks=["heat"])], **more}

    metrics = {"step_s": 0.5, "step_flop": 5e9, "recomputed_flop": 1e9, "step_bytes": 1e8, "batch": 8, "planned_bytes": 1e6,
               "resident_bytes": 2e6, "input_share": 0.1, "first_step_s": 1, "gpu_joules_per_sample": 2}
    training = {"metrics": metrics, "gpu_joules": 5}
    whole = {"schema": "stoker-bench-1", "stoker": "1", "name": "n", "date": "d", "settings": {"counts_marked": True},
             "machine": {"processor": "p", "cores": 2, "gpus": [], "published": {"bf16_tflop_per_s": 0.001}}, "before": {"load": 1},
             "after": {}, "seconds": 3, "disturbed": False, "ended": "time", "energy": "none",
             "cases": [case("matmul", "GFLOP/s", 90, precision="bf16", about="what"), case("memory", "GB/s", 9),
                       case("train", "samples/s", 8, precision="bf16", replicas=1, scaling="strong", summary=training),
                       case("train 2", "samples/s", 18, precision="bf16", replicas=2, scaling="strong", summary=training),
                       case("few", "s", 2, scaling="weak", replicas=1, summary={"median": {"value": 2}})],
             "comparisons": [{"from": 0, "to": 1, "paired": True, "pairs": 8, "change": {"value": 0.1, "low": 0, "high": 1},
                              "further_runs": 3, "verdict": "better"}]}
    text = json.dumps(whole)
    write("bench_result", "whole", text.encode())
    write("bench_result", "disturbed", text.replace('"disturbed": false', '"disturbed": true').encode())
    write("bench_result", "odd", text.replace('"step_s": 0.5', '"step_s": 1e-300').replace('"replicas": 2', '"replicas": 1e99').encode())
    write("bench_result", "impossible", text.replace('"figure": 8,', '"figure": -8,').encode())
    write("bench_result", "other", b'{"schema": "else"}')
    write("bench_result", "cut", text.encode()[:-9])
    prices = (b"date: 2026-11-01\ncurrency: EUR\nelectricity: 0.30 EUR/kWh\npue: 1.3\nwork: 50000 samples\nmachines:\n"
              b"  - {name: rented, source: a, hourly: 2.40 EUR/h, rate: '1,200 samples/s'}\n"
              b"  - {name: bought, source: b, date: 2026-10-01, purchase: 2000 EUR, lifetime: 3 years, power: 450 W, utilisation: 50%,\n"
              b"     rate: 800 samples/s}\n  - {name: measured, source: c, hourly: 1 EUR/h, result: r, case: c}\n")
    write("bench_prices", "whole", prices)
    for i, (a, b) in enumerate(((b"2026-11-01", b"2026-13-01"), (b"EUR\ne", b"euro\ne"), (b"2.40 EUR/h", b"2.40"), (b"50000 samples", b"5"),
                                (b", case: c", b""), (b"power: 450 W, ", b""), (b"2.40 EUR/h", b"1e400 EUR/h"), (b", rate: '1,200 samples/s'", b""),
                                (b"hourly: 2.40 EUR/h, ", b""), (b"800 samples/s", b"800 samples/s, result: x, case: y"))):
        write("bench_prices", f"bad_{i}", prices.replace(a, b, 1))


make_png()
make_exif()
make_idx()
make_safetensors()
make_shards()
make_state()
make_data_record()
make_yaml()
make_npy()
make_records()
make_tar()
make_archive()
make_pack()
make_entries()
make_scan()
make_video_index()
make_listing()
make_tokenizer()
make_csv()
make_onnx()
make_runs()
make_watch()
make_http()
make_beat()
make_bench()
