"""What PyTorch's two exporters write of the networks of torchvision and transformers, computed here and by ONNX Runtime. Writes
docs/onnx-models.md.

usage: onnx_models.py BUILD_FOLDER WORK_FOLDER [--write FILE] [NAME]...

Weights are random and nothing is downloaded; networks are those of the libraries, small where they have settings for it. A
network that has been exported stays in WORK_FOLDER/NAME-EXPORTER with its inputs and what ONNX Runtime gives, so that another call
goes on where the last one ended; it is always computed here again. Ends with 1 where a value differs. Needs torch, torchvision, transformers,
safetensors, onnx, onnxruntime and onnxscript (./dev onnx-models installs them). An hour on two cores, 3 GB of memory, 6 GB of disk.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import warnings

import numpy
import onnx
import onnxruntime
import safetensors.numpy
import torch
import torchvision
import transformers
from torch import nn

BOUND = 1e-5
EXPORTERS = {"script": "TorchScript, opset 17", "dynamo": "torch.export, opset 18"}


# --- networks: name -> function that gives the module and its inputs by name ---

NETWORKS = {}


def network(name, make, **x):
    NETWORKS[name] = (make, x)


def image(side=64, channels=3, rows=1):
    return lambda: torch.randn(rows, channels, side, side)


def tokens(below=99, length=16, rows=2):
    return lambda: torch.randint(3, below, (rows, length))


def ones(length=16, rows=2):
    return lambda: torch.ones(rows, length, dtype=torch.int64)


def numbers(*shape):
    return lambda: torch.randn(*shape)


# torchvision: the classes as they are, with few classes to tell apart.

def vision(name, side=64, module=torchvision.models, **settings):
    network(name, lambda: getattr(module, name)(weights=None, num_classes=10, **settings), image=image(side))


for name in ("resnet18", "resnet50", "resnext50_32x4d", "densenet121", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large",
             "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5", "efficientnet_b0", "efficientnet_v2_s", "regnet_x_400mf",
             "regnet_y_400mf", "convnext_tiny", "swin_t", "swin_v2_t"):
    vision(name)
vision("googlenet", init_weights=False, aux_logits=False)
vision("inception_v3", 160, init_weights=False, aux_logits=False)
vision("alexnet", 224)
vision("maxvit_t", 224)
network("vision_transformer", lambda: torchvision.models.VisionTransformer(
    image_size=64, patch_size=16, num_layers=3, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=10), image=image())
segmentation = {"module": torchvision.models.segmentation, "weights_backbone": None}
for name in ("deeplabv3_resnet50", "deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large"):
    vision(name, 64, **segmentation)
network("raft_small", lambda: torchvision.models.optical_flow.raft_small(weights=None), first=image(128), second=image(128))
for name in ("r3d_18", "mc3_18", "r2plus1d_18"):
    network(name, lambda name=name: getattr(torchvision.models.video, name)(weights=None, num_classes=10), video=numbers(1, 3, 8, 32, 32))


# transformers: small configurations.

def hf(name, config, model, settings, **x):
    """config and model: names of classes."""
    def make():
        c = getattr(transformers, config)(**settings)
        c._attn_implementation = "eager"
        return getattr(transformers, model)(c)
    network(name, make, **x)


SMALL = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
         "max_position_embeddings": 64}
LM = {**SMALL, "num_key_value_heads": 2, "use_cache": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TEXT = {"input_ids": tokens(), "attention_mask": ones()}

hf("bert", "BertConfig", "BertForSequenceClassification", SMALL, **TEXT)
hf("roberta", "RobertaConfig", "RobertaForMaskedLM", SMALL, **TEXT)
hf("distilbert", "DistilBertConfig", "DistilBertForSequenceClassification",
   {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 64}, **TEXT)
hf("albert", "AlbertConfig", "AlbertForSequenceClassification", {**SMALL, "embedding_size": 16}, **TEXT)
hf("electra", "ElectraConfig", "ElectraForSequenceClassification", {**SMALL, "embedding_size": 16}, **TEXT)
hf("deberta-v2", "DebertaV2Config", "DebertaV2ForSequenceClassification",
   {**SMALL, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]}, **TEXT)
hf("mpnet", "MPNetConfig", "MPNetForSequenceClassification", SMALL, **TEXT)
hf("squeezebert", "SqueezeBertConfig", "SqueezeBertForSequenceClassification", {**SMALL, "embedding_size": 32}, **TEXT)
hf("mobilebert", "MobileBertConfig", "MobileBertForSequenceClassification",
   {**SMALL, "embedding_size": 16, "intra_bottleneck_size": 16}, **TEXT)
hf("roformer", "RoFormerConfig", "RoFormerForSequenceClassification", {**SMALL, "embedding_size": 32}, **TEXT)
hf("modernbert", "ModernBertConfig", "ModernBertForSequenceClassification", {**SMALL, "pad_token_id": 0, "local_attention": 8}, **TEXT)
hf("fnet", "FNetConfig", "FNetForSequenceClassification", SMALL, input_ids=tokens())
hf("funnel", "FunnelConfig", "FunnelForSequenceClassification",
   {"vocab_size": 99, "block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64}, **TEXT)
hf("gpt2", "GPT2Config", "GPT2LMHeadModel", {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "use_cache": False}, **TEXT)
hf("gpt-neo", "GPTNeoConfig", "GPTNeoForCausalLM",
   {"vocab_size": 99, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]],
    "max_position_embeddings": 64, "use_cache": False}, **TEXT)
hf("gpt-neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", {**SMALL, "use_cache": False}, **TEXT)
hf("gptj", "GPTJConfig", "GPTJForCausalLM",
   {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64, "use_cache": False}, **TEXT)
hf("opt", "OPTConfig", "OPTForCausalLM",
   {**SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32, "use_cache": False}, **TEXT)
hf("bloom", "BloomConfig", "BloomForCausalLM", {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4, "use_cache": False}, **TEXT)
hf("llama", "LlamaConfig", "LlamaForCausalLM", LM, **TEXT)
hf("mistral", "MistralConfig", "MistralForCausalLM", {**LM, "sliding_window": 8}, **TEXT)
hf("qwen2", "Qwen2Config", "Qwen2ForCausalLM", LM, **TEXT)
hf("qwen3", "Qwen3Config", "Qwen3ForCausalLM", {**LM, "head_dim": 8}, **TEXT)
hf("gemma", "GemmaConfig", "GemmaForCausalLM", {**LM, "head_dim": 8}, **TEXT)
hf("gemma2", "Gemma2Config", "Gemma2ForCausalLM", {**LM, "head_dim": 8, "sliding_window": 8}, **TEXT)
hf("phi", "PhiConfig", "PhiForCausalLM", LM, **TEXT)
hf("phi3", "Phi3Config", "Phi3ForCausalLM", LM, **TEXT)
hf("falcon", "FalconConfig", "FalconForCausalLM", {**SMALL, "use_cache": False}, **TEXT)
hf("stablelm", "StableLmConfig", "StableLmForCausalLM", LM, **TEXT)
hf("olmo2", "Olmo2Config", "Olmo2ForCausalLM", LM, **TEXT)
hf("mamba", "MambaConfig", "MambaForCausalLM",
   {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "use_cache": False}, input_ids=tokens(length=8))
hf("t5", "T5Config", "T5ForConditionalGeneration",
   {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "use_cache": False},
   **TEXT, decoder_input_ids=tokens(length=6))
SEQ2SEQ = {"vocab_size": 99, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
           "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64, "use_cache": False}
hf("bart", "BartConfig", "BartForConditionalGeneration", SEQ2SEQ, **TEXT, decoder_input_ids=tokens(length=6))
hf("marian", "MarianConfig", "MarianMTModel", {**SEQ2SEQ, "pad_token_id": 0, "decoder_start_token_id": 0}, **TEXT,
   decoder_input_ids=tokens(length=6))
hf("whisper", "WhisperConfig", "WhisperForConditionalGeneration",
   {**{k: v for k, v in SEQ2SEQ.items() if k != "max_position_embeddings"}, "num_mel_bins": 16, "max_source_positions": 20,
    "max_target_positions": 20, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
    "suppress_tokens": None, "begin_suppress_tokens": None}, input_features=numbers(1, 16, 40), decoder_input_ids=tokens(length=6, rows=1))
hf("wav2vec2", "Wav2Vec2Config", "Wav2Vec2ForCTC",
   {**SMALL, "conv_dim": [16, 16, 16], "conv_stride": [5, 2, 2], "conv_kernel": [10, 3, 3], "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}, input_values=numbers(1, 1600))
VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 64, "patch_size": 16}
hf("vit", "ViTConfig", "ViTForImageClassification", VIT, pixel_values=image())
hf("deit", "DeiTConfig", "DeiTForImageClassification", VIT, pixel_values=image())
hf("beit", "BeitConfig", "BeitForImageClassification", {**VIT, "use_relative_position_bias": True}, pixel_values=image())
hf("dinov2", "Dinov2Config", "Dinov2ForImageClassification", {**VIT, "mlp_ratio": 2}, pixel_values=image())
hf("clip", "CLIPVisionConfig", "CLIPVisionModelWithProjection", {**VIT, "projection_dim": 16}, pixel_values=image())
hf("siglip", "SiglipVisionConfig", "SiglipVisionModel", VIT, pixel_values=image())
hf("segformer", "SegformerConfig", "SegformerForSemanticSegmentation",
   {"hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4], "decoder_hidden_size": 32}, pixel_values=image())
hf("swin", "SwinConfig", "SwinForImageClassification",
   {"image_size": 64, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}, pixel_values=image())
hf("swinv2", "Swinv2Config", "Swinv2ForImageClassification",
   {"image_size": 64, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}, pixel_values=image())
STAGES = {"hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1]}
hf("convnext", "ConvNextConfig", "ConvNextForImageClassification", STAGES, pixel_values=image())
hf("convnextv2", "ConvNextV2Config", "ConvNextV2ForImageClassification", STAGES, pixel_values=image())
hf("poolformer", "PoolFormerConfig", "PoolFormerForImageClassification", STAGES, pixel_values=image())
hf("pvt", "PvtConfig", "PvtForImageClassification", {**STAGES, "image_size": 64, "num_attention_heads": [1, 2, 2, 4]}, pixel_values=image())
hf("mobilevit", "MobileViTConfig", "MobileViTForImageClassification",
   {"image_size": 64, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 16, 16, 24, 24, 32, 64]}, pixel_values=image())
hf("mobilenet_v1", "MobileNetV1Config", "MobileNetV1ForImageClassification", {"depth_multiplier": 0.25}, pixel_values=image())
hf("resnet-hf", "ResNetConfig", "ResNetForImageClassification",
   {"embedding_size": 16, "hidden_sizes": [16, 24], "depths": [1, 2], "layer_type": "bottleneck"}, pixel_values=image())
hf("yolos", "YolosConfig", "YolosForObjectDetection", {**VIT, "image_size": [64, 64], "num_detection_tokens": 5}, pixel_values=image())
hf("dpt", "DPTConfig", "DPTForDepthEstimation",
   {**VIT, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16,
    "reassemble_factors": [4, 2, 1, 0.5]}, pixel_values=image())
hf("xlnet", "XLNetConfig", "XLNetForSequenceClassification",
   {"vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, "use_mems_eval": False}, **TEXT)
hf("longformer", "LongformerConfig", "LongformerForSequenceClassification", {**SMALL, "attention_window": 8}, **TEXT)
hf("bigbird", "BigBirdConfig", "BigBirdForSequenceClassification", {**SMALL, "attention_type": "original_full"}, **TEXT)
hf("mamba2", "Mamba2Config", "Mamba2ForCausalLM",
   {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "head_dim": 16, "num_heads": 4, "n_groups": 1, "chunk_size": 4,
    "use_cache": False}, input_ids=tokens(length=8))
hf("rwkv", "RwkvConfig", "RwkvForCausalLM", {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "use_cache": False},
   input_ids=tokens(length=8))
hf("clip-text", "CLIPTextConfig", "CLIPTextModelWithProjection", {**SMALL, "projection_dim": 16}, **TEXT)
hf("encodec", "EncodecConfig", "EncodecModel", {"num_filters": 8, "hidden_size": 16, "codebook_size": 16, "codebook_dim": 16,
   "upsampling_ratios": [4, 2]}, input_values=numbers(1, 1, 640))
hf("sew", "SEWConfig", "SEWForCTC", {**SMALL, "conv_dim": [16, 16], "conv_stride": [5, 2], "conv_kernel": [10, 3], "squeeze_factor": 2,
   "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}, input_values=numbers(1, 1600))
hf("levit", "LevitConfig", "LevitForImageClassification",
   {"image_size": 64, "hidden_sizes": [16, 24, 32], "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1], "key_dim": [8, 8, 8]}, pixel_values=image())
hf("patchtst", "PatchTSTConfig", "PatchTSTForPrediction",
   {"num_input_channels": 2, "context_length": 32, "patch_length": 4, "patch_stride": 4, "d_model": 16, "num_attention_heads": 2,
    "num_hidden_layers": 2, "ffn_dim": 32, "prediction_length": 8}, past_values=numbers(1, 32, 2))


# torch.nn: recurrent layers and others that the libraries' networks lack.

class Recurrent(nn.Module):
    """Layers one after the other, and the last step's logits."""

    def __init__(self, kind, **settings):
        super().__init__()
        self.layers = kind(12, 16, batch_first=True, **settings)
        self.head = nn.Linear(16 * (2 if settings.get("bidirectional") else 1), 5)

    def forward(self, x):
        y, state = self.layers(x)
        return self.head(y), (state[0] if isinstance(state, tuple) else state)


for name, kind in ("lstm", nn.LSTM), ("gru", nn.GRU), ("rnn", nn.RNN):
    network(name, lambda kind=kind: Recurrent(kind, num_layers=2), x=numbers(3, 11, 12))
    network(f"{name}-both-ways", lambda kind=kind: Recurrent(kind, bidirectional=True), x=numbers(3, 11, 12))
network("encoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False),
        x=numbers(2, 9, 32))
network("decoder", lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(32, 4, 64, batch_first=True), 2), x=numbers(2, 9, 32),
        memory=numbers(2, 7, 32))


# --- exporting ---

def tensors_of(y):
    """All tensors of what a network gives, in order."""
    if torch.is_tensor(y):
        return [y]
    values = y.values() if isinstance(y, dict) else y if isinstance(y, (list, tuple)) else []
    return [t for v in values for t in tensors_of(v)]


class Flat(nn.Module):
    """Inputs by position and tensors alone as outputs, which both exporters take of any network."""

    def __init__(self, net, names, by_name):
        super().__init__()
        self.net, self.names, self.by_name = net, names, by_name

    def forward(self, *x):
        y = self.net(**dict(zip(self.names, x))) if self.by_name else self.net(*x)
        return tuple(tensors_of(y))


def fill(model, x):
    """Random weights with which outputs depend on inputs, and which do not magnify rounding errors from layer to layer, as batch
    norms with a scale of 1 do before any training. Running statistics are those of some samples."""
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point() or "running" in name:
            continue
        if name.endswith("bias"):
            tensor.normal_(0.2, 0.2)
        elif tensor.dim() == 1:
            tensor.uniform_(0.2, 0.6)
        elif tensor.dim() > 1 and "relative_position" not in name and "coords" not in name:
            least = tensor[0].numel() ** -0.5
            if tensor.std() < least:
                tensor.normal_(0, least)
    norms = [m for m in model.eval().modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.track_running_stats]
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    if norms:
        inputs = {k: torch.cat([v() for _ in range(8)]) for k, v in x.items()}
        if isinstance(model, transformers.PreTrainedModel):
            model(**inputs)
        else:
            model(*inputs.values())
    for norm in norms:  # A channel that hardly varies among few samples would be a magnifier of rounding errors.
        norm.running_var.clamp_(min=norm.running_var.mean().item())
    return model.eval()


def export(name, exporter, folder):
    """Model, inputs and ONNX Runtime's outputs in a new folder; what the exporter says where it fails."""
    make, x = NETWORKS[name]
    torch.manual_seed(1)
    with torch.no_grad():
        model = fill(make(), x)
        torch.manual_seed(2)
        inputs = {k: v() for k, v in x.items()}
        flat = Flat(model, list(inputs), isinstance(model, transformers.PreTrainedModel)).eval()
        outputs = [f"y{i}" for i in range(len(flat(*inputs.values())))]
        os.makedirs(folder)
        torch.onnx.export(flat, tuple(inputs.values()), f"{folder}/model.onnx", opset_version=18 if exporter == "dynamo" else 17,
                          input_names=list(inputs), output_names=outputs, dynamo=exporter == "dynamo", verbose=False)
    session = onnxruntime.InferenceSession(f"{folder}/model.onnx", providers=["CPUExecutionProvider"])
    used = {i.name for i in session.get_inputs()}
    given = {k: v.numpy() for k, v in inputs.items() if k in used}
    names = [o.name for o in session.get_outputs()]
    want = dict(zip(names, session.run(None, given)))
    safetensors.numpy.save_file({k: numpy.ascontiguousarray(v) for k, v in given.items()}, f"{folder}/in.safetensors")
    safetensors.numpy.save_file({k: numpy.ascontiguousarray(v) for k, v in want.items()}, f"{folder}/want.safetensors")
    nodes = len(onnx.load(f"{folder}/model.onnx", load_external_data=False).graph.node)
    with open(f"{folder}/done.json", "w") as f:
        json.dump({"nodes": nodes}, f)


@contextlib.contextmanager
def quiet():
    """Nothing on standard output and standard error, where the exporters write graphs, some from C++."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for fd, to in zip(kept, (1, 2)):
            os.dup2(fd, to)
            os.close(fd)
        os.close(nothing)


def exported(name, exporter, folder):
    """What done.json says, from this call or an earlier one."""
    if not os.path.exists(f"{folder}/done.json"):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            with quiet():
                export(name, exporter, folder)
        except Exception as e:
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            text = f"{type(e).__name__}: {e}".strip().split("\n")[0]
            with open(f"{folder}/done.json", "w") as f:
                json.dump({"failed": re.sub(r"\x1b\[[0-9;]*m", "", text)[:120]}, f)
    with open(f"{folder}/done.json") as f:
        return json.load(f)


# --- comparing ---

def difference(folder, bench):
    """Of all outputs the largest, relative to the largest number of an output where that is above 1, and that of all; or
    the message."""
    done = subprocess.run([bench, "model.onnx", "in.safetensors", "got.safetensors"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip() or f"ended with {done.returncode}").removeprefix("bench_onnx: ")
    got, want = (safetensors.numpy.load_file(f"{folder}/{file}.safetensors") for file in ("got", "want"))
    if missing := want.keys() - got.keys():
        return f"the output '{missing.pop()}' is missing"
    worst = largest = 0.0
    for name, theirs in want.items():
        ours = got[name].astype(numpy.float64)
        theirs = theirs.astype(numpy.float64)
        if ours.shape != theirs.shape:
            return f"the output '{name}' is {list(ours.shape)}, and ONNX Runtime's {list(theirs.shape)}"
        if not numpy.isfinite(theirs).all():
            return f"ONNX Runtime's output '{name}' is not finite"
        if theirs.size:
            largest = max(largest, abs(theirs).max())
            worst = max(worst, abs(ours - theirs).max() / max(1, abs(theirs).max()))
    return float(worst), float(largest)


def escaped(text):
    """Of one line, as a cell of a table, without folders."""
    return re.sub(r"/\S+/", "", text).replace("|", "\\|").replace("\n", " ")


def row(name, exporter, work, bench):
    """A line of the table, and what became of it: equal, differs, refused, not exported."""
    folder = f"{work}/{name}-{exporter}"
    done = exported(name, exporter, folder)
    if "failed" in done:
        return "not exported", f"| {name} | {EXPORTERS[exporter]} | | | no model to compare with: {escaped(done['failed'])} |"
    what = difference(folder, bench)
    if isinstance(what, str):
        kind, largest, text = "refused", "", escaped(what)
    else:
        kind, largest = "equal" if what[0] <= BOUND else "differs", f"{what[1]:.3g}"
        text = f"{what[0]:.1e}" if kind == "equal" else f"**{what[0]:.1e}**"
    return kind, f"| {name} | {EXPORTERS[exporter]} | {done['nodes']:,} | {largest} | {text} |"


def document(rows):
    count = {kind: sum(k == kind for k, _ in rows) for kind in ("equal", "differs", "refused", "not exported")}
    text = f"""# What PyTorch exports

`./dev onnx-models` writes this page: networks of torchvision {torchvision.__version__}, transformers {transformers.__version__} and torch.nn with
random weights, written by both exporters of PyTorch {torch.__version__} with the sizes of their inputs fixed, read and computed here on the device
`cpu` in f32, compared with ONNX Runtime {onnxruntime.__version__}. The difference is the largest of any output, relative to that output's largest
number where this is above 1; {BOUND:g} is allowed.

Of {len(rows)} pairs of network and exporter {count['equal']} equal, {count['differs']} different, {count['refused']} refused; of \
{count['not exported']} there is no model, since the exporter or ONNX Runtime fails.

| Network | Exporter | Nodes | Largest output | Difference, or what is refused |
|---|---|--:|--:|---|
"""
    return text + "\n".join(line for _, line in rows) + "\n"


def recipes_section(build, work):
    """The table of tools/onnx_recipes.py, and whether all is well."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnx_recipes.py")
    done = subprocess.run([sys.executable, script, build, f"{work}-recipes", "--table"], stdout=subprocess.PIPE, text=True)
    return """
## Recipes as ONNX

Each recipe's network, with the weights that it begins with but for one small step (`tools/onnx_recipes.py`), written by
`stoker export --onnx`: how much the logits of ONNX Runtime and of our own importer differ from ours, relative to the largest.

| Recipe | Largest logit | ONNX Runtime | Read again |
|---|--:|--:|--:|
""" + done.stdout, done.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("work")
    parser.add_argument("--write")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if unknown := set(args.names) - NETWORKS.keys():
        sys.exit(f"onnx-models: no network '{unknown.pop()}'; there are {', '.join(NETWORKS)}")
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    onnxruntime.set_default_logger_severity(3)
    torch.backends.mha.set_fastpath_enabled(False)  # of torch.nn's own encoders, which TorchScript has no ONNX for
    work, bench = os.path.abspath(args.work), os.path.abspath(f"{args.build}/bench/bench_onnx")
    rows = []
    for name in args.names or NETWORKS:
        for exporter in EXPORTERS:
            rows.append(row(name, exporter, work, bench))
            print(rows[-1][0].ljust(12), rows[-1][1], flush=True)
    text = document(rows)
    print(re.search(r"\nOf .*\n", text)[0].strip())
    all_well = not any(kind == "differs" for kind, _ in rows)
    if args.write and not args.names:
        section, recipes_well = recipes_section(args.build, work)
        with open(args.write, "w") as f:
            f.write(text + section)
        all_well = all_well and recipes_well
    if not all_well:
        sys.exit("onnx-models: some values differ")


main()
