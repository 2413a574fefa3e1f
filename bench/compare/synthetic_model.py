#!/usr/bin/env python3
"""Writes a GGUF with the shape of a known model and random weights, to time engines on: speed does not ask what a model knows.

  synthetic_model.py OUT.gguf --shape qwen3-30b-a3b --layers 12 --type q4_k

It has no tokenizer, and says so ("no_vocab"); node-llama-cpp refuses to run such a model. A layer's tensors repeat one
random stretch of weights, which no engine can tell.
Needs the Python packages gguf and numpy.
"""
import argparse
import dataclasses
import os

import gguf
import numpy

Type = gguf.GGMLQuantizationType


@dataclasses.dataclass
class Shape:
    architecture: str
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    experts: int        # 0: dense
    active: int
    inner: int          # of an expert, or of the dense feed-forward part
    shared_inner: int   # of the expert that every token uses; 0: none
    layers: int
    vocabulary: int


SHAPES = {
    "qwen3-30b-a3b": Shape("qwen3moe", 2048, 32, 4, 128, 128, 8, 768, 0, 48, 151936),
    "qwen1.5-moe-a2.7b": Shape("qwen2moe", 2048, 16, 16, 128, 60, 4, 1408, 5632, 24, 151936),
    "mixtral-8x7b": Shape("llama", 4096, 32, 8, 128, 8, 2, 14336, 0, 32, 32000),
    "qwen3-4b": Shape("qwen3", 2560, 32, 8, 128, 0, 0, 9728, 0, 36, 151936),
}
RMS_EPSILON = 1e-6
ROPE_BASE = 1e6
CONTEXT = 32768


def half(x):
    return numpy.frombuffer(numpy.float16(x).tobytes(), numpy.uint8)


class Weights:
    """Random weights of one type with a standard deviation of about 1 / sqrt(columns)."""

    # Of a block: elements and bytes, and where its random bytes begin.
    BLOCKS = {"q4_k": (Type.Q4_K, 256, 144, 4), "q8_0": (Type.Q8_0, 32, 34, 2)}

    def __init__(self, kind, seed):
        self.kind, self.random = kind, numpy.random.default_rng(seed)
        self.stretch = self.random.bytes(1 << 24)

    def make(self, count, rows, columns):
        """The data of `count` matrices as bytes [count * rows, row bytes], and its type."""
        deviation = columns ** -0.5
        if self.kind == "bf16":
            return self.bfloat16(count * rows, columns, deviation)
        # A row is whole blocks; types with long ones leave the others to Q8_0, as quantisers do.
        kind = self.kind if columns % self.BLOCKS[self.kind][1] == 0 else "q8_0"
        block_type, elements, size, first = self.BLOCKS[kind]
        num_blocks = count * rows * columns // elements
        blocks = numpy.empty((num_blocks, size), numpy.uint8)
        blocks[:, first:] = self.bytes(num_blocks * (size - first)).reshape(num_blocks, size - first)
        if kind == "q4_k":  # weight = scale * d * code - min * d_min
            blocks[:, 0:2], blocks[:, 2:4] = half(deviation / 220), half(deviation / 220 * 7.5)
        else:
            blocks[:, 0:2] = half(deviation / 74)
        return blocks.reshape(count * rows, -1), block_type

    def bfloat16(self, rows, columns, deviation):
        some = (self.random.standard_normal(1 << 20, numpy.float32) * deviation).view(numpy.uint32) >> 16
        halves = numpy.resize(some.astype(numpy.uint16), (rows, columns))
        return halves.view(numpy.uint8).reshape(rows, -1), Type.BF16

    def bytes(self, count):
        return numpy.resize(numpy.frombuffer(self.stretch, numpy.uint8), count)


class Model:
    def __init__(self, path, shape, weights):
        self.shape, self.weights = shape, weights
        self.writer = gguf.GGUFWriter(path, shape.architecture)

    def write(self):
        self.add_metadata()
        shape = self.shape
        self.matrix("token_embd.weight", shape.vocabulary, shape.width)
        self.vector("output_norm.weight", shape.width, 1)
        self.matrix("output.weight", shape.vocabulary, shape.width)
        for layer in range(shape.layers):
            self.add_attention(f"blk.{layer}.")
            self.add_feed_forward(f"blk.{layer}.")
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file(progress=True)
        self.writer.close()

    def add_metadata(self):
        writer, shape = self.writer, self.shape
        writer.add_tokenizer_model("no_vocab")
        writer.add_vocab_size(shape.vocabulary)
        writer.add_context_length(CONTEXT)
        writer.add_embedding_length(shape.width)
        writer.add_block_count(shape.layers)
        writer.add_feed_forward_length(shape.inner)
        writer.add_head_count(shape.heads)
        writer.add_head_count_kv(shape.kv_heads)
        writer.add_key_length(shape.head_dim)
        writer.add_value_length(shape.head_dim)
        writer.add_rope_dimension_count(shape.head_dim)
        writer.add_rope_freq_base(ROPE_BASE)
        writer.add_layer_norm_rms_eps(RMS_EPSILON)
        if shape.experts:
            writer.add_expert_count(shape.experts)
            writer.add_expert_used_count(shape.active)
            if shape.architecture != "llama":
                writer.add_expert_feed_forward_length(shape.inner)
        if shape.shared_inner:
            writer.add_expert_shared_feed_forward_length(shape.shared_inner)

    def add_attention(self, layer):
        shape = self.shape
        q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.vector(layer + "attn_norm.weight", shape.width, 1)
        self.vector(layer + "ffn_norm.weight", shape.width, 1)
        for name, rows in (("q", q), ("k", kv), ("v", kv)):
            self.matrix(f"{layer}attn_{name}.weight", rows, shape.width)
            if shape.architecture == "qwen2moe":
                self.vector(f"{layer}attn_{name}.bias", rows, 0.1)
        self.matrix(layer + "attn_output.weight", shape.width, q)
        if shape.architecture.startswith("qwen3"):
            self.vector(layer + "attn_q_norm.weight", shape.head_dim, 1)
            self.vector(layer + "attn_k_norm.weight", shape.head_dim, 1)

    def add_feed_forward(self, layer):
        shape = self.shape
        if not shape.experts:
            self.gated(layer + "ffn_{}.weight", shape.inner)
            return
        router = self.weights.random.standard_normal((shape.experts, shape.width), numpy.float32)
        self.writer.add_tensor(layer + "ffn_gate_inp.weight", router * 2 * shape.width ** -0.5)
        self.gated(layer + "ffn_{}_exps.weight", shape.inner, shape.experts)
        if shape.shared_inner:
            self.vector(layer + "ffn_gate_inp_shexp.weight", shape.width, 0.1)
            self.gated(layer + "ffn_{}_shexp.weight", shape.shared_inner)

    def gated(self, name, inner, count=None):
        self.matrix(name.format("gate"), inner, self.shape.width, count)
        self.matrix(name.format("up"), inner, self.shape.width, count)
        self.matrix(name.format("down"), self.shape.width, inner, count)

    def matrix(self, name, rows, columns, count=None):
        """`count` matrices as one tensor of three dimensions; None: one of two."""
        data, data_type = self.weights.make(count or 1, rows, columns)
        if count:
            data = data.reshape(count, rows, -1)
        self.writer.add_tensor(name, data, raw_dtype=data_type)

    def vector(self, name, count, value):
        self.writer.add_tensor(name, numpy.full(count, value, numpy.float32))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--layers", type=int, help="fewer than the model has")
    parser.add_argument("--type", choices=["q4_k", "q8_0", "bf16"], default="q4_k", help="of all matrices (q4_k)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    shape = SHAPES[options.shape]
    if options.layers is not None:
        if not 1 <= options.layers <= shape.layers:
            parser.error(f"--layers {options.layers}: {options.shape} has 1 to {shape.layers}")
        shape = dataclasses.replace(shape, layers=options.layers)
    # Under another name until it is whole.
    part = options.out + ".part"
    Model(part, shape, Weights(options.type, options.seed)).write()
    os.replace(part, options.out)


if __name__ == "__main__":
    main()
