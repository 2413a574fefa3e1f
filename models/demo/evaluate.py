"""Measures the exported model on the held-out text.

  python evaluate.py [--model hf] [--heldout heldout] [--bytes N] [--window 512] [--stride 256]
                     [--dtype float32] [--threads 2]

Prints, for each kind of text, bits per byte beside `xz -9e` of the same bytes;
the smallest share of tokens that any expert takes over all kinds together; and
for each kind and layer the experts that take most. Every token of a file is
counted once, after <|endoftext|> and the tokens before it: at least
window - stride of them, except at the file's beginning.
"""
import argparse
import json
import lzma
import math
import pathlib
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer

from model import Config, Model

KINDS = ["novels", "poetry", "dictionary", "code", "arithmetic"]
END = 0  # <|endoftext|>
BATCH = 8  # windows at a time


def load(folder):
    """The training model with the weights of a Hugging Face folder."""
    described = json.loads((folder / "config.json").read_text())
    model, tensors = Model(Config()), load_file(folder / "model.safetensors")
    assert described["num_hidden_layers"] == model.c.layers and described["num_experts"] == model.c.experts
    state = {"embed": tensors["model.embed_tokens.weight"], "norm": tensors["model.norm.weight"]}
    for i in range(model.c.layers):
        theirs, ours = f"model.layers.{i}.", f"blocks.{i}."
        state[ours + "attn_norm"] = tensors[theirs + "input_layernorm.weight"]
        state[ours + "ffn_norm"] = tensors[theirs + "post_attention_layernorm.weight"]
        for part in "qkvo":
            state[ours + f"attn.{part}"] = tensors[theirs + f"self_attn.{part}_proj.weight"]
        for part in ("q_norm", "k_norm"):
            state[ours + f"attn.{part}"] = tensors[theirs + f"self_attn.{part}.weight"]
        state[ours + "moe.router"] = tensors[theirs + "mlp.gate.weight"]
        for part in ("gate", "up", "down"):
            state[ours + f"moe.{part}"] = torch.stack(
                [tensors[theirs + f"mlp.experts.{e}.{part}_proj.weight"] for e in range(model.c.experts)])
    model.load_state_dict({name: t.float() for name, t in state.items()})
    return model


def windows(num_tokens, window, stride):
    """(first input position, first counted target, end) of overlapping windows over the tokens."""
    counted = 0
    while counted < num_tokens:
        end = min(num_tokens, window if counted == 0 else counted + stride)
        yield max(0, end - window), counted, end
        counted = end


@torch.no_grad()
def measure(model, ids, window, stride, dtype):
    """Nats over all of ids, and [layers, experts] counts of the choices made for them."""
    stream = torch.tensor([END] + ids)
    nats, counts = 0.0, 0
    spans = list(windows(len(ids), window, stride))
    for i in range(0, len(spans), BATCH):
        group = spans[i:i + BATCH]
        longest = max(end - start for start, _, end in group)
        inputs = torch.full((len(group), longest), END)
        for row, (start, _, end) in zip(inputs, group):
            row[:end - start] = stream[start:end]
        hidden, _, _, chosen = model(inputs, dtype)
        counts = counts + chosen
        for h, (start, first, end) in zip(hidden, group):
            logits = F.linear(h[first - start:end - start], model.embed.to(dtype)).float()
            nats += F.cross_entropy(logits, stream[first + 1:end + 1], reduction="sum").item()
    return nats, counts


def print_sizes(results):
    print("| Text | Bytes | Tokens | xz -9e | Model | Below xz |\n|---|---|---|---|---|---|")
    for kind, (num_bytes, num_tokens, xz, model, _) in results.items():
        print(f"| {kind} | {num_bytes} | {num_tokens} | {xz:.3f} | {model:.3f} | {1 - model / xz:.1%} |")


def print_experts(results):
    shares = {kind: r[4] / r[4].sum(1, keepdim=True) for kind, r in results.items()}
    over_all = torch.stack(list(shares.values())).mean(0)
    low, high = over_all.min().item(), over_all.max().item()
    print(f"\nShare of a layer's choices that an expert takes, all kinds alike: {low:.2%} to {high:.2%}")
    distance = torch.stack([(s - over_all).abs().sum(1) / 2 for s in shares.values()]).mean().item()
    print(f"Choices a kind would have to change to be spread like all kinds: {distance:.1%}\n")
    print("| Layer | " + " | ".join(shares) + " |\n|---" + "|---" * len(shares) + "|")
    for layer in range(over_all.shape[0]):
        cells = []
        for share in shares.values():
            top = share[layer].topk(3)
            cells.append(", ".join(f"{e} ({s:.0%})" for s, e in zip(top.values.tolist(), top.indices.tolist())))
        print(f"| {layer} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, default=pathlib.Path("hf"))
    parser.add_argument("--heldout", type=pathlib.Path, default=pathlib.Path("heldout"))
    parser.add_argument("--bytes", type=int, help="only about this much of each file's beginning")
    parser.add_argument("--window", type=int, default=512, help="tokens the model sees at a time")
    parser.add_argument("--stride", type=int, default=256, help="tokens counted in each window")
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="float32")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    model, tokenizer = load(args.model), Tokenizer.from_file(str(args.model / "tokenizer.json"))
    results, began = {}, time.time()
    for kind in KINDS:
        data = (args.heldout / f"{kind}.txt").read_bytes()[:args.bytes].decode("utf-8", "ignore").encode()
        ids = tokenizer.encode(data.decode()).ids
        nats, counts = measure(model, ids, args.window, args.stride, getattr(torch, args.dtype))
        xz = len(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)) * 8 / len(data)
        results[kind] = (len(data), len(ids), xz, nats / math.log(2) / len(data), counts.double())
    print_sizes(results)
    print_experts(results)
    print(f"\n{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
