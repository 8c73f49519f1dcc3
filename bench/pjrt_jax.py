#!/usr/bin/env python3
"""Training steps by one PJRT plug-in, asked by Stoker and by JAX's jit in turns: the same networks, batches of the same shapes, f32, no
dropout. With a Python that has JAX, and the plug-in's package or file.

usage: pjrt_jax.py [--build FOLDER] [--plugin FILE] [--steps N] [--rounds N] [NETWORK...]

NETWORK: resnet18 (recipes/bench-resnet18.yaml), bert-mini (sst2-bert-mini), gpt2-mini (shakespeare-gpt); STOKER_DATA says where data
are. Each is a process of its own, and nothing is found compiled. Prints medians of the rounds: milliseconds of a step, N of them after a
few first ones, and seconds from the start of the process to the end of its first step, with JAX's time over Stoker's.
"""
import argparse
import functools
import glob
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIRST = 3  # steps that are not timed

RECIPES = {"resnet18": ("bench-resnet18", []),
           "bert-mini": ("sst2-bert-mini", ["model.bert.dropout=0"]),
           "gpt2-mini": ("shakespeare-gpt", ["model.gpt2.dropout=0"])}


def since_start():
    with open("/proc/self/stat") as f:
        ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


# --- JAX's side ---

class Weights:
    """Parameters by the order in which a network asks for them: made at the first pass, and then read."""

    def __init__(self, values=None):
        import numpy
        self.values, self.made, self.random = values, [], numpy.random.default_rng(1)

    def __call__(self, *shape, scale=None, value=None):
        if self.values is not None:
            self.made.append(None)
            return self.values[len(self.made) - 1]
        import numpy
        made = numpy.full(shape, value, "float32") if value is not None else self.random.normal(0, scale, shape).astype("float32")
        self.made.append(made)
        return made


def dense(w, x, width, scale=0.02):
    return x @ w(x.shape[-1], width, scale=scale) + w(width, value=0)


def layer_norm(w, x, eps=1e-5):
    import jax
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + eps) * w(x.shape[-1], value=1) + w(x.shape[-1], value=0)


def attend(w, x, heads, mask):
    import jax
    import jax.numpy as jnp
    n, t, width = x.shape
    q, k, v = jnp.split(dense(w, x, 3 * width).reshape(n, t, 3 * heads, width // heads), 3, 2)
    scores = jnp.einsum("nthd,nshd->nhts", q, k) / math.sqrt(width // heads)
    shares = jax.nn.softmax(jnp.where(mask, scores, -1e30), -1)
    return dense(w, jnp.einsum("nhts,nshd->nthd", shares, v).reshape(n, t, width), width)


def gpt2(w, ids, layers=4, heads=4, width=192, vocabulary=257, positions=128):
    import jax
    import jax.numpy as jnp
    words = w(vocabulary, width, scale=0.02)
    x = words[ids] + w(positions, width, scale=0.02)[:ids.shape[1]]
    causal = jnp.tril(jnp.ones((ids.shape[1], ids.shape[1]), bool))
    for _ in range(layers):
        x = x + attend(w, layer_norm(w, x), heads, causal)
        x = x + dense(w, jax.nn.gelu(dense(w, layer_norm(w, x), 4 * width)), width)
    return layer_norm(w, x) @ words.T


def bert(w, ids, layers=4, heads=4, width=256, vocabulary=6000, positions=32, classes=2):
    import jax
    import jax.numpy as jnp
    x = w(vocabulary, width, scale=0.02)[ids] + w(positions, width, scale=0.02)[:ids.shape[1]] + w(2, width, scale=0.02)[0]
    x = layer_norm(w, x, 1e-12)
    there = (ids != 0)[:, None, None]
    for _ in range(layers):
        x = layer_norm(w, x + attend(w, x, heads, there), 1e-12)
        x = layer_norm(w, x + dense(w, jax.nn.gelu(dense(w, x, 4 * width), approximate=False), width), 1e-12)
    return dense(w, jnp.tanh(dense(w, x[:, 0], width)), classes)


def resnet18(w, images, classes=10):
    import jax

    def convolve(x, width, side, stride):
        filters = w(side, side, x.shape[-1], width, scale=math.sqrt(2 / (side * side * width)))
        x = jax.lax.conv_general_dilated(x, filters, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
        statistics_of.append((mean, var))
        return (x - mean) * jax.lax.rsqrt(var + 1e-5) * w(width, value=1) + w(width, value=0)

    statistics_of = []
    x = jax.nn.relu(convolve(images, 64, 3, 1))
    for width, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first, 1):
            y = convolve(jax.nn.relu(convolve(x, width, 3, stride)), width, 3, 1)
            short = x if x.shape == y.shape else convolve(x, width, 1, stride)
            x = jax.nn.relu(short + y)
    return dense(w, x.mean((1, 2)), classes), statistics_of


def adamw(lr, beta2, decay, clip):
    """On lists of parameters; those of one dimension do not decay."""
    import jax.numpy as jnp

    def update(params, state, grads):
        means, squares, t = state
        norm = jnp.sqrt(sum((g * g).sum() for g in grads))
        grads = [g * jnp.minimum(1, clip / norm) for g in grads]
        t = t + 1
        means = [0.9 * m + 0.1 * g for m, g in zip(means, grads)]
        squares = [beta2 * s + (1 - beta2) * g * g for s, g in zip(squares, grads)]
        params = [p - lr * (m / (1 - 0.9 ** t) / (jnp.sqrt(s / (1 - beta2 ** t)) + 1e-8) + (decay if p.ndim > 1 else 0) * p)
                  for p, m, s in zip(params, means, squares)]
        return params, (means, squares, t)

    return update, lambda params: ([0 * p for p in params], [0 * p for p in params], jnp.float32(0))


def momentum(lr):
    def update(params, state, grads):
        state = [0.9 * m + g for m, g in zip(state, grads)]
        return [p - lr * m for p, m in zip(params, state)], state

    return update, lambda params: [0 * p for p in params]


def of_network(name):
    """(loss(weights, batch) -> loss and more state, batch, optimiser)"""
    import jax
    import jax.numpy as jnp
    import numpy
    random = numpy.random.default_rng(2)

    def cross_entropy(logits, labels):
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean()

    if name == "resnet18":
        def loss(w, batch):
            logits, more = resnet18(w, batch[0])
            return cross_entropy(logits, batch[1]), more
        batch = random.normal(size=(128, 32, 32, 3)).astype("float32"), random.integers(0, 10, 128).astype("int32")
        return loss, batch, momentum(0.01)
    if name == "bert-mini":
        ids = random.integers(1, 6000, (32, 32)).astype("int32")
        for i, row in enumerate(ids):
            row[8 + i % 25:] = 0
        return (lambda w, b: (cross_entropy(bert(w, b[0]), b[1]), [])), (ids, random.integers(0, 2, 32).astype("int32")), adamw(3e-4, 0.999, 0.01, 1)
    text = random.integers(0, 257, (16, 129)).astype("int32")
    return (lambda w, b: (cross_entropy(gpt2(w, b[0]), b[1]), [])), (text[:, :-1], text[:, 1:].copy()), adamw(2e-3, 0.99, 0.1, 1)


def time_jax(name, n_steps):
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_default_matmul_precision", "highest")  # as Stoker asks for
    loss, batch, (update, begin) = of_network(name)
    made = Weights()
    jax.eval_shape(lambda: loss(made, batch)[0])
    params = [jnp.asarray(v) for v in made.made]
    batch = jax.device_put(batch)

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(params, state, running, batch):
        (value, more), grads = jax.value_and_grad(lambda p: loss(Weights(p), batch), has_aux=True)(params)
        params, state = update(params, state, grads)
        running = [(0.9 * a + 0.1 * c, 0.9 * b + 0.1 * d) for (a, b), (c, d) in zip(running, more)]
        return params, state, running, value

    running = [(jnp.zeros(p.shape[-1]), jnp.ones(p.shape[-1])) for p in params if p.ndim == 4]
    state = begin(params)
    for i in range(FIRST):
        params, state, running, value = step(params, state, running, batch)
        if i == 0:
            value.block_until_ready()
            first_s = since_start()
    value.block_until_ready()
    start = time.perf_counter()
    for _ in range(n_steps):
        params, state, running, value = step(params, state, running, batch)
    value = float(value)
    took = time.perf_counter() - start
    return {"step_ms": 1e3 * took / n_steps, "first_s": first_s, "loss": value, "n_parameters": sum(p.size for p in params),
            "platform": jax.devices()[0].client.platform_version.splitlines()[0][:60]}


# --- both ---

def run_jax(args, name):
    environment = dict(os.environ, PJRT_NAMES_AND_LIBRARY_PATHS=f"plugin:{args.plugin}", JAX_PLATFORMS="plugin")
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--one", name, "--steps", str(args.steps)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{name} by JAX: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def run_stoker(args, name):
    recipe, sets = RECIPES[name]
    stoker, path = os.path.join(args.build, "stoker"), os.path.join(HERE, "recipes", recipe + ".yaml")
    sets = [word for one in [*sets, "precision=f32"] for word in ("--set", one)]
    folder = tempfile.mkdtemp(prefix="stoker-pjrt-")
    environment = dict(os.environ, STOKER_CACHE=os.path.join(folder, "cache"))
    try:
        done = subprocess.run([stoker, "train", path, "--device", f"pjrt:{args.plugin}", "--steps", str(FIRST + args.steps), "--quiet", "--out",
                               os.path.join(folder, "run"), *sets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        if done.returncode:
            sys.exit(f"{name} by Stoker: {done.stdout}")
        with open(os.path.join(folder, "run", "result.json")) as f:
            result = json.load(f)
        plan = json.loads(subprocess.run([stoker, "plan", path, "--json", *sets], stdout=subprocess.PIPE, check=True, text=True).stdout)
    finally:
        shutil.rmtree(folder)
    return {"step_ms": result["step_ms_median"], "first_s": result["first_step_s"], "n_parameters": plan["n_trainable"]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("networks", nargs="*", default=list(RECIPES), metavar="NETWORK")
    p.add_argument("--build", default=os.path.join(HERE, "build"))
    p.add_argument("--plugin", default=(glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/lammps_jax_pjrt_cpu/*.so")) or [None])[0])
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--one", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.one:
        print(json.dumps(time_jax(args.one, args.steps)))
        return
    if not args.plugin:
        sys.exit("pjrt_jax: no plug-in: pip install lammps-jax-pjrt-cpu, or --plugin FILE")
    print("| Network | Stoker, step in ms | JAX, step in ms | ratio | Stoker, first step in s | JAX, first step in s | ratio |\n|---|---:|---:|---:|---:|---:|---:|",
          flush=True)
    for name in args.networks:
        found = {"stoker": [], "jax": []}
        for _ in range(args.rounds):
            found["stoker"].append(run_stoker(args, name))
            found["jax"].append(run_jax(args, name))
        ours, theirs = found["stoker"][0]["n_parameters"], found["jax"][0]["n_parameters"]
        if ours != theirs:
            print(f"{name}: Stoker trains {ours:,} parameters and JAX {theirs:,}", file=sys.stderr, flush=True)
        middle = {of: {key: statistics.median(r[key] for r in found[of]) for key in ("step_ms", "first_s")} for of in found}
        cells = []
        for key, form in (("step_ms", "{:,.1f}"), ("first_s", "{:.2f}")):
            a, b = middle["stoker"][key], middle["jax"][key]
            cells += [form.format(a), form.format(b), f"{b / a:.2f}x"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
