"""Writes a model as a safetensors folder: as save_pretrained does, with experts fused, or in FP8 with block scales."""
import copy
import json
import shutil

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import storage as st

FP8_TILE = 16  # rows and columns that share a scale
FP8_MAX = 448.0  # largest finite E4M3


def write(folder, model, storage):
    dtype = torch.bfloat16 if storage == "bf16" else torch.float32
    copy.deepcopy(model).to(dtype).save_pretrained(folder)  # a copy: to() rounds the rope's frequencies too
    (folder / "model.safetensors").chmod(0o644)  # the writer makes it private
    if storage == "fp8":
        to_fp8(folder)


def write_fused(folder, plain_folder, weights):
    """The same model with the names that transformers has in memory: experts.gate_up_proj [experts, 2 * ff, hidden]."""
    folder.mkdir(parents=True)
    shutil.copy(plain_folder / "config.json", folder)
    tensors = {name: torch.from_numpy(values.copy()) for name, values in weights.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)


def write_old_config(folder, plain_folder):
    """The same model described as transformers 4 did, which is what published folders hold."""
    shutil.copytree(plain_folder, folder)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    config["torch_dtype"] = config.pop("dtype")
    if "num_local_experts" in config and config["model_type"] != "mixtral":
        config["num_experts"] = config.pop("num_local_experts")
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def tiles(values):
    """(row slice, column slice, tile row, tile column) of each tile; the last ones are ragged."""
    rows, cols = values.shape
    for r in range(0, rows, FP8_TILE):
        for c in range(0, cols, FP8_TILE):
            yield slice(r, r + FP8_TILE), slice(c, c + FP8_TILE), r // FP8_TILE, c // FP8_TILE


def encode_fp8(values):
    """float32 [rows, cols] -> codes (uint8) and scales (float32, one per tile) with value = code * scale."""
    rows, cols = values.shape
    scales = np.empty((-(-rows // FP8_TILE), -(-cols // FP8_TILE)), np.float32)
    codes = np.empty(values.shape, np.uint8)
    for r, c, i, j in tiles(values):
        scales[i, j] = max(np.abs(values[r, c]).max() / np.float32(FP8_MAX), np.float32(1e-12))
        scaled = torch.from_numpy(values[r, c] / scales[i, j])
        codes[r, c] = scaled.to(torch.float8_e4m3fn).view(torch.uint8).numpy()
    return codes, scales


def decode_fp8(codes, scales):
    values = torch.from_numpy(codes).view(torch.float8_e4m3fn).float().numpy().copy()
    for r, c, i, j in tiles(codes):
        values[r, c] *= scales[i, j]
    return values


def kept_out_of_fp8(name):
    return not st.is_matrix(name) or "embed_tokens" in name or "lm_head" in name


def round_to_fp8(weights):
    """What the weights are after FP8. Expert stacks are tiled per expert and per projection, as the files hold them."""

    def one(values):
        return decode_fp8(*encode_fp8(np.ascontiguousarray(values)))

    out = dict(weights)
    for name, values in weights.items():
        if kept_out_of_fp8(name):
            continue
        if "gate_up_proj" in name:
            out[name] = np.stack([np.concatenate([one(half) for half in np.split(e, 2)]) for e in values])
        else:
            out[name] = np.stack([one(e) for e in values]) if values.ndim == 3 else one(values)
    return out


def to_fp8(folder):
    """Rewrites a float32 folder. The values are FP8 times a scale already, so that nothing more is lost."""
    path = folder / "model.safetensors"
    out = {}
    for name, tensor in load_file(path).items():
        if kept_out_of_fp8(name):
            out[name] = tensor
            continue
        codes, scales = encode_fp8(tensor.numpy())
        assert np.array_equal(decode_fp8(codes, scales), tensor.numpy()), name
        out[name] = torch.from_numpy(codes).view(torch.float8_e4m3fn)
        out[name + "_scale_inv"] = torch.from_numpy(scales)
    save_file(out, path, metadata={"format": "pt"})
    path.chmod(0o644)
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "quant_method": "fp8",
        "weight_block_size": [FP8_TILE, FP8_TILE],
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
