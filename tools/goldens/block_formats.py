"""Blocks of every quantised type with what they decode to, without a model around them."""
import json
import shutil

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as T
from gguf import quants

import hf_form

# Where the float16 scales of a block stand, in bytes.
SCALES = {
    T.Q8_0: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
    T.IQ4_NL: [0], T.IQ4_XS: [0],
}  # fmt: skip

EDGE_SCALES = np.array(
    [0x0000, 0x8000, 0x3C00, 0xBC00, 0x0001, 0x8001, 0x03FF, 0x0400, 0x2E66, 0xAE66, 0x1234, 0x5BFF],
    np.uint16,
)  # 0, -0, 1, -1, smallest subnormal of both signs, largest subnormal, smallest normal, 0.1, -0.1, 7.6e-4, 255.9


def finite_scales(rng, n):
    """float16 bits of both signs, subnormal to about 500: products with the quants stay finite in float32."""
    bits = rng.integers(0, 0x6000, n, dtype=np.uint16)
    return bits | (rng.integers(0, 2, n, dtype=np.uint16) << 15)


def patterns(block_bytes):
    """Blocks whose quant bits are all 0, all 1, counting up, alternating."""
    count = np.arange(block_bytes) % 256
    rows = [np.zeros(block_bytes), np.full(block_bytes, 255), count, count[::-1], np.full(block_bytes, 0xAA), np.full(block_bytes, 0x55)]
    return np.array(rows, np.uint8)


def blocks_of(qtype, rng, num_random=24):
    """[n, bytes of a block]: edge scales over random quants, patterns under scale 1, then random ones."""
    size = gguf.GGML_QUANT_SIZES[qtype][1]
    edge = np.frombuffer(rng.bytes(len(EDGE_SCALES) * size), np.uint8).reshape(-1, size).copy()
    pattern = patterns(size)
    random = np.frombuffer(rng.bytes(num_random * size), np.uint8).reshape(-1, size).copy()
    for i, at in enumerate(SCALES[qtype]):
        edge[:, at : at + 2] = np.roll(EDGE_SCALES, 5 * i).view(np.uint8).reshape(-1, 2)
        pattern[:, at : at + 2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
        random[:, at : at + 2] = finite_scales(rng, num_random).view(np.uint8).reshape(-1, 2)
    return np.concatenate([edge, pattern, random])


def mxfp4_blocks(rng):
    """A block for each exponent byte that stays finite, 0xff included: it is 2^127 here, not NaN."""
    exponents = np.arange(256, dtype=np.uint8)
    quants_16 = np.frombuffer(rng.bytes(256 * 16), np.uint8).reshape(256, 16).copy()
    quants_16[:8] = np.arange(16, dtype=np.uint8) | (15 - np.arange(16, dtype=np.uint8)) << 4
    blocks = np.concatenate([exponents[:, None], quants_16], axis=1)
    with np.errstate(over="ignore"):
        return blocks[np.isfinite(quants.dequantize(blocks, T.MXFP4)).all(-1)]


def half_blocks(qtype, rng):
    """One element a block: all classes of values but NaN and infinity, then random bits."""
    bits = np.concatenate([EDGE_SCALES, np.array([0x7BFF, 0xFBFF, 0x7F7F, 0xFF7F, 0x0080, 0x007F], np.uint16)])
    bits = np.concatenate([bits, rng.integers(0, 0x10000, 1006, dtype=np.uint16)])
    exponent = 0x7C00 if qtype == T.F16 else 0x7F80
    bits = np.where(bits & exponent == exponent, bits & 0xBFFF, bits).astype(np.uint16)
    return bits.view(np.uint8).reshape(-1, 2)


def decode(blocks, qtype):
    if qtype == T.F16:
        return blocks.view(np.float16).astype(np.float32)
    return quants.dequantize(blocks, qtype)


def write_dequant(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    index = []
    for qtype in (T.F16, T.BF16, *SCALES, T.MXFP4):
        rng = np.random.default_rng([11, int(qtype)])
        if qtype in (T.F16, T.BF16):
            blocks = half_blocks(qtype, rng)
        else:
            blocks = mxfp4_blocks(rng) if qtype == T.MXFP4 else blocks_of(qtype, rng)
        values = decode(blocks, qtype).astype("<f4")
        assert np.isfinite(values).all(), qtype
        name = qtype.name.lower()
        (folder / f"{name}.blocks.bin").write_bytes(blocks.tobytes())
        (folder / f"{name}.f32.bin").write_bytes(values.tobytes())
        index.append(
            {
                "type": name,
                "ggml_type": int(qtype),
                "block_bytes": blocks.shape[1],
                "block_elements": values.size // len(blocks),
                "num_blocks": len(blocks),
            }
        )
    lines = ",\n  ".join(json.dumps(entry) for entry in index)
    (folder / "index.json").write_text(f'{{"types": [\n  {lines}\n]}}\n')


def write_fp8(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    table = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float().numpy()
    (folder / "e4m3.f32.bin").write_bytes(table.astype("<f4").tobytes())
    rng = np.random.default_rng(12)
    spread = np.exp(rng.uniform(-6, 3, (40, 72)))  # so that tiles have scales of their own
    codes, scales = hf_form.encode_fp8((rng.standard_normal((40, 72)) * spread).astype(np.float32))
    (folder / "matrix.codes.bin").write_bytes(codes.tobytes())
    (folder / "matrix.scales.bin").write_bytes(scales.astype("<f4").tobytes())
    (folder / "matrix.f32.bin").write_bytes(hf_form.decode_fp8(codes, scales).astype("<f4").tobytes())
