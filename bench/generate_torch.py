#!/usr/bin/env python3
"""The same as bench_generate.c with PyTorch: transformers' GPT-2 with its cache, or the plainest loop of PyTorch itself.

usage: generate_torch.py [124m|mini|char [N_TOKENS [N_PROMPT [N_THREADS [f32|bf16 [hf|plain]]]]]]

hf      transformers.GPT2LMHeadModel, one call a token with past_key_values
plain   the network written out with a cache of fixed size, scaled_dot_product_attention and no Python objects between:
        what somebody who wants speed would write by hand
"""
import sys
import time

import torch
import torch.nn.functional as F

SIZES = {"124m": (12, 12, 768, 50257), "mini": (6, 6, 192, 50257), "char": (4, 4, 192, 257)}


class Plain:
    def __init__(self, layers, heads, width, vocabulary, positions, dtype):
        def make(*shape):
            return (torch.randn(*shape) * 0.02).to(dtype)
        self.heads, self.width, self.dtype = heads, width, dtype
        self.wte, self.wpe = make(vocabulary, width), make(positions, width)
        self.blocks = [{"ln1": (torch.ones(width, dtype=dtype), torch.zeros(width, dtype=dtype)),
                        "ln2": (torch.ones(width, dtype=dtype), torch.zeros(width, dtype=dtype)),
                        "qkv": (make(3 * width, width), make(3 * width)), "proj": (make(width, width), make(width)),
                        "fc": (make(4 * width, width), make(4 * width)),
                        "out": (make(width, 4 * width), make(width)),
                        "k": torch.zeros(1, heads, positions, width // heads, dtype=dtype),
                        "v": torch.zeros(1, heads, positions, width // heads, dtype=dtype)} for _ in range(layers)]
        self.ln = (torch.ones(width, dtype=dtype), torch.zeros(width, dtype=dtype))

    def __call__(self, tokens, position):
        n, w = len(tokens), self.width
        x = self.wte[tokens] + self.wpe[position:position + n]
        for b in self.blocks:
            q, k, v = F.linear(F.layer_norm(x, (w,), *b["ln1"]), *b["qkv"]).view(1, n, 3, self.heads, -1).unbind(2)
            b["k"][:, :, position:position + n] = k.transpose(1, 2)
            b["v"][:, :, position:position + n] = v.transpose(1, 2)
            y = F.scaled_dot_product_attention(q.transpose(1, 2), b["k"][:, :, :position + n],
                                               b["v"][:, :, :position + n], is_causal=n > 1)
            x = x + F.linear(y.transpose(1, 2).reshape(n, w), *b["proj"])
            y = F.gelu(F.linear(F.layer_norm(x, (w,), *b["ln2"]), *b["fc"]), approximate="tanh")
            x = x + F.linear(y, *b["out"])
        return F.linear(F.layer_norm(x[-1], (w,), *self.ln), self.wte)


def make_plain(config, dtype):
    model = Plain(*config, 1024, dtype)

    def generate(prompt, n_tokens):
        start = time.perf_counter()
        logits = model(prompt, 0)
        middle = time.perf_counter()
        for i in range(n_tokens):
            logits = model(logits.argmax().view(1), len(prompt) + i)
        return middle - start, time.perf_counter() - middle
    return generate


def make_hf(config, dtype):
    from transformers import GPT2Config, GPT2LMHeadModel
    layers, heads, width, vocabulary = config
    model = GPT2LMHeadModel(GPT2Config(n_layer=layers, n_head=heads, n_embd=width, vocab_size=vocabulary,
                                       n_positions=1024)).to(dtype).eval()

    def generate(prompt, n_tokens):
        start = time.perf_counter()
        out = model(prompt[None], use_cache=True, logits_to_keep=1)
        middle = time.perf_counter()
        for _ in range(n_tokens):
            token = out.logits[:, -1].argmax(-1, keepdim=True)
            out = model(token, past_key_values=out.past_key_values, use_cache=True)
        return middle - start, time.perf_counter() - middle
    return generate


def main():
    given = dict(enumerate(sys.argv[1:]))
    size, n_tokens, n_prompt = given.get(0, "124m"), int(given.get(1, 100)), int(given.get(2, 64))
    torch.set_num_threads(int(given.get(3, 2)))
    precision, kind = given.get(4, "f32"), given.get(5, "hf")
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    with torch.inference_mode():
        generate = (make_hf if kind == "hf" else make_plain)(SIZES[size], dtype)
        prompt = torch.arange(n_prompt) * 31 % SIZES[size][3]
        runs = [generate(prompt, n_tokens) for _ in range(4)]
    print(f"{size} {kind} {precision}: {n_tokens / min(r[1] for r in runs):.1f} tokens/s, best of 4 times {n_tokens}, "
          f"after a prompt of {n_prompt} in {1e3 * min(r[0] for r in runs):.1f} ms; torch {torch.__version__}")


main()
