"""How matrices are stored: encoders for block types, and which type a tensor gets.

Where the gguf package has an encoder it is used. For Q4_K and Q6_K a plain one
stands here: nearest values under the largest magnitude, no search. The golden
is of the decoded weights, so the encoder's quality does not matter.
"""
import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import quants

BLOCK = 256  # elements of a K super-block


def is_matrix(name):
    """Norms, biases, routers and the shared expert's gate stay in float32, as in published files."""
    return not name.endswith(("norm.weight", ".bias", ".gate.weight", "shared_expert_gate.weight"))


def type_of(name, storage):
    """name: of the parameter in transformers."""
    if not is_matrix(name):
        return T.F32
    # Published Q4_K files mix: the output head and the down projections are in Q6_K.
    if storage == "q4_k" and ("lm_head" in name or "down_proj" in name):
        return T.Q6_K
    return {"f32": T.F32, "f16": T.F16, "bf16": T.BF16, "q8_0": T.Q8_0, "q4_0": T.Q4_0, "q4_k": T.Q4_K, "q6_k": T.Q6_K}[storage]


def divide(a, b):
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape), np.float32), where=b != 0)


def encode_q4_k(rows):
    """rows [n, 256] -> [n, 144]: d, dmin (f16), 8 scales and 8 minima of 6 bits, 256 quants of 4 bits."""
    x = rows.reshape(-1, 8, 32)
    low = np.minimum(x.min(-1), 0)
    scale = (x.max(-1) - low) / np.float32(15)
    d = (scale.max(-1, keepdims=True) / np.float32(63)).astype(np.float16)
    dmin = ((-low).max(-1, keepdims=True) / np.float32(63)).astype(np.float16)
    wide_d, wide_dmin = d.astype(np.float32), dmin.astype(np.float32)
    sc = np.clip(np.rint(divide(scale, wide_d)), 0, 63).astype(np.uint8)  # [n, 8]
    mn = np.clip(np.rint(divide(-low, wide_dmin)), 0, 63).astype(np.uint8)
    step = (wide_d * sc)[..., None]
    q = np.clip(np.rint(divide(x + (wide_dmin * mn)[..., None], step)), 0, 15).astype(np.uint8)
    packed = np.empty((len(x), 12), np.uint8)
    packed[:, 0:4] = sc[:, :4] | (sc[:, 4:] >> 4 << 6)
    packed[:, 4:8] = mn[:, :4] | (mn[:, 4:] >> 4 << 6)
    packed[:, 8:12] = (sc[:, 4:] & 15) | (mn[:, 4:] & 15) << 4
    pairs = q.reshape(-1, 4, 2, 32)
    quants_4 = (pairs[:, :, 0] | pairs[:, :, 1] << 4).reshape(-1, 128)
    return np.concatenate([d.view(np.uint8), dmin.view(np.uint8), packed, quants_4], axis=1)


def encode_q6_k(rows):
    """rows [n, 256] -> [n, 210]: 4 low bits, 2 high bits, 16 scales of 8 bits, d (f16)."""
    x = rows.reshape(-1, 16, 16)
    scale = np.abs(x).max(-1) / np.float32(31)
    d = (scale.max(-1, keepdims=True) / np.float32(127)).astype(np.float16)
    sc = np.clip(np.rint(divide(scale, d.astype(np.float32))), 0, 127).astype(np.int8)
    step = (d.astype(np.float32) * sc)[..., None]
    q = (np.clip(np.rint(divide(x, step)), -32, 31) + 32).astype(np.uint8).reshape(-1, 2, 4, 32)  # half, quarter, lane
    # Within a half of 128: quarters 0 and 1 are the low nibbles of 64 bytes, 2 and 3 the high ones.
    low = (q & 15).reshape(-1, 2, 2, 64)
    ql = (low[:, :, 0] | low[:, :, 1] << 4).reshape(-1, 128)
    high = q >> 4
    qh = (high[:, :, 0] | high[:, :, 1] << 2 | high[:, :, 2] << 4 | high[:, :, 3] << 6).reshape(-1, 64)
    return np.concatenate([ql, qh, sc.view(np.uint8), d.view(np.uint8)], axis=1)


def encode(values, qtype):
    """float32 [..., n] -> what GGUFWriter.add_tensor takes: a float array, or bytes [..., size of a row]."""
    if qtype == T.F32:
        return values
    if qtype == T.F16:
        return values.astype(np.float16)
    own = {T.Q4_K: encode_q4_k, T.Q6_K: encode_q6_k}.get(qtype)
    if own is None:
        return quants.quantize(values, qtype)
    blocks = own(np.ascontiguousarray(values).reshape(-1, BLOCK))
    return blocks.reshape(*values.shape[:-1], -1)


def decode(encoded, qtype):
    if qtype in (T.F32, T.F16):
        return encoded.astype(np.float32)
    return quants.dequantize(encoded, qtype)


def stored(weights, storage):
    """What the weights are after a round through their storage."""
    if storage == "bf16":  # the safetensors form keeps everything in BF16, norms and routers too
        return {k: decode(encode(v, T.BF16), T.BF16).reshape(v.shape) for k, v in weights.items()}
    out = {}
    for name, values in weights.items():
        qtype = type_of(name, storage)
        out[name] = decode(encode(values, qtype), qtype).reshape(values.shape)
        spread = np.abs(values).max()
        assert np.abs(out[name] - values).max() <= spread / 4, f"{name}: encoder is wrong"
    return out
