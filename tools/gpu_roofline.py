"""Training steps predicted for chips that are not here: what each kernel must compute and move, at rates that the chip's maker states
and shares of them that are assumed here. tools/gpu_kernels.py writes docs/gpu-roofline.md with it."""
import collections
import datetime
import math

Step = collections.namedtuple("Step", "name title recipe sets samples tokens")
STEPS = [
    Step("resnet50", "ResNet-50, 256 images of 224 x 224, bf16", "recipes/bench-resnet50.yaml", ("batch=256", "precision=bf16"), 256, 0),
    Step("bert", "BERT-base, 256 sequences of 128 tokens, bf16", "recipes/bench-bert.yaml", ("batch=256", "precision=bf16"), 256, 128),
    Step("gpt2", "GPT-2 124M, 64 sequences of 1,024 tokens, bf16", "recipes/bench-gpt2.yaml",
         ("batch=64", "precision=bf16", "model.gpt2.length=1024", "data.train.source.synthetic.fields.tokens.shape=[1024]",
          "data.train.source.synthetic.fields.targets.shape=[1024]"), 64, 1024)]

# Per second: multiplications and additions of 16-bit tiles without sparsity and of f32, bytes. NVIDIA's data sheets of H100 (SXM)
# and H200 (SXM).
Chip = collections.namedtuple("Chip", "name tiles floats bytes units")
CHIPS = [Chip("H100", 989e12, 67e12, 3.35e12, 132), Chip("H200", 989e12, 67e12, 4.8e12, 132)]

TILES, FLOATS, BYTES = 0.7, 0.5, 0.85  # shares of these rates that a good kernel reaches
ENOUGH = 0.5                           # occupancy from which memory is busy all the time
LAUNCH = 2e-6                          # seconds from one kernel of a captured program to the next

PRODUCTS = ("matmul", "conv", "attention", "linear_cross_entropy")

Part = collections.namedtuple("Part", "label times flops bytes seconds bound assumed")


def is_product(node):
    return node["op"].startswith(PRODUCTS)


def is_16_bit(node):
    return any(text.startswith(("bf16", "f16")) for text in node["in"][:2])


def spread(node, kernels, occupancy, chip):
    """(the share of the chip that has work, the share of memory's rate that its occupancy allows), by the widest launch."""
    launches = [(l["groups"], kernels[l["kernel"]]) for l in node["launches"] if l["kernel"] in kernels and l["groups"]]
    if not launches:
        return 1, 1
    n_groups, kernel = max(launches, key=lambda l: l[0])
    there = occupancy(kernel)
    at_once = max(1, round(there * 64 / -(-kernel["group"] // 32))) * chip.units
    waves = n_groups / at_once
    busy = min(1, n_groups / chip.units) if waves <= 1 else waves / math.ceil(waves)
    return busy, min(1, there / ENOUGH)


def predict(node, kernels, occupancy, chip):
    """Of one run of the node: seconds, and what they are bound by."""
    busy, reach = spread(node, kernels, occupancy, chip)
    built = [kernels[l["kernel"]] for l in node["launches"] if l["kernel"] in kernels]
    tiles = is_product(node) and is_16_bit(node) and (not built or any(k["mma"] + k["wgmma"] for k in built))
    rate = chip.tiles * TILES if tiles else chip.floats * FLOATS
    compute = node["flops"] / (rate * busy)
    memory = node["bytes"] / (chip.bytes * BYTES * reach * busy)
    launch = LAUNCH * max(1, len(node["launches"]))
    slowest, bound = max((compute, "tiles" if tiles else "arithmetic"), (memory, "memory"), (launch, "launch"))
    return max(slowest, launch), bound


def label(node):
    ins = ", ".join(node["in"][:2]) + (", ..." if len(node["in"]) > 2 else "")
    return f"{node['op']} of {ins}" if ins else f"{node['op']} to {', '.join(node['out'][:1])}"


def list_parts(lines, occupancy, chip):
    """Nodes of the training step; those of the same op and shapes are one part."""
    kernels = {line["kernel"]: line for line in lines if "kernel" in line}
    parts, inside = {}, False
    for line in lines:
        if "program" in line:
            inside = line["program"] == "train"
        if "op" not in line or not inside:
            continue
        seconds, bound = predict(line, kernels, occupancy, chip)
        name, n = label(line), line["times"]
        old = parts.get(name, Part(name, 0, 0, 0, 0, bound, False))
        parts[name] = Part(name, old.times + n, old.flops + n * line["flops"], old.bytes + n * line["bytes"],
                           old.seconds + n * seconds, bound, not line["launches"])
    return sorted(parts.values(), key=lambda p: -p.seconds)


def short(text):
    """No more of a fused group's inputs than a row has room for."""
    return text if len(text) <= 90 else text[:87] + "..."


def write_step(step, lines, occupancy):
    both = [list_parts(lines, occupancy, chip) for chip in CHIPS]
    text = f"## {step.title}\n\n"
    for chip, parts in zip(CHIPS, both):
        seconds = sum(p.seconds for p in parts)
        flops, moved = sum(p.flops for p in parts), sum(p.bytes for p in parts)
        speed = f"{step.samples / seconds:,.0f} {'sequences' if step.tokens else 'images'}/s"
        if step.tokens:
            speed += f", {step.samples * step.tokens / seconds:,.0f} tokens/s"
        text += (f"- {chip.name}: **{seconds * 1e3:.1f} ms a step, {speed}**; {flops / seconds / chip.tiles * 100:.0f} % of the tiles' "
                 f"rate, {moved / seconds / chip.bytes * 100:.0f} % of memory's\n")
    text += (f"\n{sum(p.times for p in both[0]):,} kernels' work a step, {sum(p.flops for p in both[0]) / 1e12:.2f} TFLOP, "
             f"{sum(p.bytes for p in both[0]) / 1e9:.1f} GB at least. The ten that take longest, with what all of their times are together:\n\n")
    text += "| what | times | GFLOP | MB | H100, ms | H200, ms | share | bound by |\n|---|---:|---:|---:|---:|---:|---:|---|\n"
    other = {p.label: p for p in both[1]}
    total = sum(p.seconds for p in both[0])
    for p in both[0][:10]:
        text += (f"| {short(p.label)}{' *' if p.assumed else ''} | {p.times} | {p.flops / 1e9:,.1f} | {p.bytes / 1e6:,.1f} | "
                 f"{p.seconds * 1e3:.3f} | {other[p.label].seconds * 1e3:.3f} | {p.seconds / total * 100:.1f} % | {p.bound} |\n")
    rest = both[0][10:]
    text += (f"| {len(rest)} others | {sum(p.times for p in rest)} | {sum(p.flops for p in rest) / 1e9:,.1f} | "
             f"{sum(p.bytes for p in rest) / 1e6:,.1f} | {sum(p.seconds for p in rest) * 1e3:.3f} | "
             f"{sum(other[p.label].seconds for p in rest) * 1e3:.3f} | {sum(p.seconds for p in rest) / total * 100:.1f} % | |\n\n")
    by_op = collections.Counter()
    for p in both[0]:
        by_op[p.label.split(" ")[0]] += p.seconds
    text += "By op, on the H100: " + ", ".join(f"{op} {s * 1e3:.2f} ms" for op, s in by_op.most_common(12)) + ".\n\n"
    return text


def write_page(path, results, occupancy):
    """results: for each of STEPS the lines of gpu_compile, and why there are none."""
    text = f"""# Steps on an H100 and an H200, predicted

Nothing here was measured: `./dev gpu-kernels` on {datetime.date.today()} took the FLOPs and bytes of each op of a training step by its rule
(`stk_op_cost`; bytes: each input and output once), and divided them by rates. What an H100 did is in docs/gpu/h100.md.

- The rates are NVIDIA's, of the data sheets of the H100 and H200 (SXM, dense): {CHIPS[0].tiles / 1e12:.0f} TFLOP/s of bf16 tiles,
  {CHIPS[0].floats / 1e12:.0f} TFLOP/s of f32, {CHIPS[0].bytes / 1e12:.2f} and {CHIPS[1].bytes / 1e12:.1f} TB/s of memory, {CHIPS[0].units} multiprocessors.
- Shares of them that are assumed: {TILES} of the tiles' rate, {FLOATS} of f32's, {BYTES} of memory's. Where a kernel's occupancy
  (docs/gpu-kernels.md) is below {ENOUGH:.0%}, memory's share falls with it; where its groups do not fill the last wave of multiprocessors, all
  rates fall with that. Each kernel takes {LAUNCH * 1e6:.0f} us at least, as part of a captured program. Nothing overlaps; caches hold nothing.
- A product whose built kernel has no mma.sync or wgmma counts at f32's rate. `*`: there is no kernel of the op yet, or not of that call: a
  good one is assumed, and the op is not decomposed.

"""
    for step, (lines, why) in zip(STEPS, results):
        text += write_step(step, lines, occupancy) if lines else f"## {step.title}\n\nNot predicted: {why}.\n\n"
    path.write_text(text.rstrip("\n") + "\n")
