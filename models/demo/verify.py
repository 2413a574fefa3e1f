"""Checks that the exported files say the same as the training model.

  python verify.py --checkpoint RUN/checkpoint.pt

Transformers' logits on the held-out text against model.py's, in float32; the
GGUF file's vocabulary and merges against tokenizer.json; the GGUF file's
matrices against the safetensors file's, within Q8_0's rounding.
"""
import argparse
import json
import pathlib

import gguf
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, AutoTokenizer

from export import gguf_tensors, load

KINDS = ["novels", "poetry", "dictionary", "code", "arithmetic"]
LENGTH = 384
# Router logits closer than this may be ordered either way by two float32
# implementations (their values are below 2^4, so a rounding is below 2^-20).
TIE = 1e-5


def first_tie(model, ids):
    """The first position at which a layer nearly chose another expert; the length of ids if none."""
    gaps = []

    def record(experts, inputs):
        logits = (inputs[0] @ experts.router.T).topk(experts.c.top_k + 1, -1).values
        gaps.append(logits[:, -2] - logits[:, -1])

    hooks = [block.moe.register_forward_pre_hook(record) for block in model.blocks]
    model(ids, torch.float32)
    for hook in hooks:
        hook.remove()
    ties = (torch.stack(gaps).amin(0) < TIE).nonzero()
    return ties[0].item() if len(ties) else ids.shape[1]


@torch.no_grad()
def check_logits(model, folder, heldout):
    """Compares up to the first tie: from there on, the two may rightly differ."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    peer = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for kind in KINDS:
        text = (heldout / f"{kind}.txt").read_text()[:4000]
        ids = torch.tensor([tokenizer(text)["input_ids"][:LENGTH]])
        end = first_tie(model, ids)
        expected = F.linear(model(ids, torch.float32)[0], model.embed)[:, :end]
        found = peer(ids).logits[:, :end]
        difference = (expected - found).abs().max().item()
        print(f"{kind}: {end} positions, largest logit {expected.abs().max().item():.2f}, "
              f"largest difference {difference:.1e}")
        # Eight layers of float32 roundings, relative to the largest logit.
        assert end > LENGTH // 2 and difference < 1e-4 * expected.abs().max().item()


def check_vocabulary(reader, folder):
    described = json.loads((folder / "tokenizer.json").read_text())
    ids = described["model"]["vocab"]
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in reader.fields["tokenizer.ggml.merges"].contents()]
    assert all(ids[token] == i for i, token in enumerate(tokens))
    assert merges == [tuple(m) for m in described["model"]["merges"]]
    print(f"vocabulary: {len(tokens)} tokens and {len(merges)} merges agree")


def check_matrices(reader, model):
    found = {t.name: t for t in reader.tensors}
    worst, names = 0.0, 0
    for name, tensor, _ in gguf_tensors(model):
        dequantized = gguf.quants.dequantize(found[name].data, found[name].tensor_type)
        values = torch.from_numpy(dequantized.copy())
        blocks = tensor.detach().float().reshape(-1, 32)
        difference = (values.reshape(-1, 32) - blocks).abs().amax(1)
        worst = max(worst, (difference / blocks.abs().amax(1).clamp_min(1e-12)).max().item())
        names += 1
    # A step of Q8_0 is the block's largest magnitude / 127; its F16 scale adds 2^-11.
    assert names == len(found) and worst < 0.5 / 127 + 2**-11
    print(f"tensors: {names} agree, largest difference {worst:.5f} of a block's largest magnitude")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, default=pathlib.Path("."),
                        help="folder with hf/ and the GGUF file")
    parser.add_argument("--heldout", type=pathlib.Path, default=pathlib.Path("heldout"))
    args = parser.parse_args()
    model = load(args.checkpoint)
    reader = gguf.GGUFReader(args.model / "demo-moe-q8_0.gguf")
    check_vocabulary(reader, args.model / "hf")
    check_matrices(reader, model)
    check_logits(model, args.model / "hf", args.heldout)


if __name__ == "__main__":
    main()
