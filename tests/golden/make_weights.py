#!/usr/bin/env python3
"""Writes weights_golden.h: logits of torchvision's and transformers' networks, whose weights are a formula of each
tensor's name and the element's number, so that the test can make the same file without storing it.

    python3 make_weights.py        (PyTorch 2.15, torchvision 0.29, transformers 5.23)
"""
import math
import pathlib
import tempfile

import safetensors.torch
import torch
import torchvision
import transformers


TIED = ("lm_head.weight", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias")


def value_of(name, tensor):
    h = 2166136261
    for byte in name.encode():
        h = ((h ^ byte) * 16777619) & 0xFFFFFFFF
    i = torch.arange(tensor.numel(), dtype=torch.int64)
    x = (((i * 40503 + h) % (1 << 24)).double() / (1 << 24) - 0.5).reshape(tensor.shape)
    if tensor.dim() > 1:
        return (x * 2 / math.sqrt(tensor[0].numel())).float()
    if name.endswith("running_var") or name.endswith("weight"):
        return (1 + x / 2).float()
    return (x / 5).float()


def fill(model):
    state = model.state_dict()
    for name, tensor in state.items():
        if tensor.is_floating_point() and name not in TIED:
            state[name] = value_of(name, tensor)
    model.load_state_dict(state)
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    return model.eval()


def from_torchvision(vit, config):
    """Hugging Face's ViT with the same weights, read from a file with the names that its files have."""
    state, made = vit.state_dict(), {}
    for name, tensor in state.items():
        name = name.replace("class_token", "vit.embeddings.cls_token")
        name = name.replace("encoder.pos_embedding", "vit.embeddings.position_embeddings")
        name = name.replace("conv_proj", "vit.embeddings.patch_embeddings.projection")
        name = name.replace("encoder.layers.encoder_layer_", "vit.encoder.layer.").replace("encoder.ln.", "vit.layernorm.")
        name = name.replace("ln_1", "layernorm_before").replace("ln_2", "layernorm_after").replace("heads.head", "classifier")
        name = name.replace("mlp.0", "intermediate.dense").replace("mlp.3", "output.dense")
        name = name.replace("self_attention.out_proj", "attention.output.dense")
        if "in_proj_" in name:
            for part, rows in zip(("query", "key", "value"), tensor.chunk(3)):
                made[name.replace("self_attention.in_proj_", f"attention.attention.{part}.")] = rows.contiguous()
        else:
            made[name] = tensor.contiguous()
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        safetensors.torch.save_file(made, f"{folder}/model.safetensors", {"format": "pt"})
        model, info = transformers.ViTForImageClassification.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"], info
    return model.eval()


def image(size):
    i = torch.arange(2 * size * size * 3)
    nhwc = ((i * 7919 % 1009).float() / 1009 - 0.5).reshape(2, size, size, 3)
    return nhwc.permute(0, 3, 1, 2).contiguous()


def tokens(length, vocabulary):
    return (torch.arange(2 * length) * 31 % vocabulary).reshape(2, length)


def emit(out, name, logits):
    flat = logits.detach().flatten().tolist()
    out.append(f"static const float {name}[{len(flat)}] = {{")
    for i in range(0, len(flat), 6):
        out.append("    " + " ".join(f"{x:.9g}f," if "." in f"{x:.9g}" or "e" in f"{x:.9g}" else f"{x:.9g}.0f," for x in flat[i:i + 6]))
    out.append("};")


out = ["/* Made by make_weights.py. */"]
with torch.no_grad():
    for depth in (18, 50):
        model = fill(getattr(torchvision.models, f"resnet{depth}")(num_classes=5))
        emit(out, f"resnet{depth}_logits", model(image(64)))
    config = transformers.BertConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                     intermediate_size=64, max_position_embeddings=12, num_labels=3)
    bert = fill(transformers.BertForSequenceClassification(config))
    emit(out, "bert_logits", bert(tokens(8, 40)).logits)
    emit(out, "masked_logits", fill(transformers.BertForMaskedLM(config))(tokens(8, 40)).logits)
    config = transformers.GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=12, bos_token_id=0,
                                     eos_token_id=0)
    gpt2 = fill(transformers.GPT2LMHeadModel(config))
    emit(out, "gpt2_logits", gpt2(tokens(8, 40)).logits)
    vit = fill(torchvision.models.VisionTransformer(16, 8, 2, 2, 16, 64, num_classes=3))
    emit(out, "vit_logits", vit(image(16)))
    config = transformers.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                                    image_size=16, patch_size=8, num_labels=3)
    emit(out, "hf_vit_logits", from_torchvision(vit, config)(image(16)).logits)
(pathlib.Path(__file__).parent / "weights_golden.h").write_text("\n".join(out) + "\n")
