"""The tiny models: which configuration each has and how its weights are drawn.

Weights come from NumPy's PCG64, seeded by (seed, parameter name): they do not
depend on torch's generator nor on the order of the parameters.
"""
import dataclasses
import zlib

import numpy as np
import torch
import transformers as hf

VOCAB = 128
CONTEXT = 128


@dataclasses.dataclass(frozen=True)
class Fixture:
    name: str  # the folder under tests/goldens
    config: str  # configuration class of transformers
    model: str  # model class of transformers
    options: dict  # beyond SIZES
    storage: str = "f32"  # how the matrices are stored, see storage.py
    hf: bool = True  # write the safetensors form
    gguf: bool = True  # write the GGUF form
    fused: bool = False  # also a safetensors form with experts fused
    old_config: bool = False  # also a safetensors form with the older config.json
    legacy: bool = False  # also a GGUF with one tensor per expert
    split: int = 0  # also a GGUF in shards of this many tensors


SIZES = dict(
    vocab_size=VOCAB,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=CONTEXT,
    rms_norm_eps=1e-6,
    bos_token_id=None,
    eos_token_id=None,
    pad_token_id=None,
    tie_word_embeddings=False,
)


def rope(base, **scaling):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": base, **scaling}}


MIXTRAL = dict(rope(1e6), rms_norm_eps=1e-5, intermediate_size=24, num_local_experts=8, num_experts_per_tok=2)
QWEN2_MOE = dict(
    rope(1e6),
    num_key_value_heads=4,
    num_experts=6,
    num_experts_per_tok=3,
    moe_intermediate_size=16,
    shared_expert_intermediate_size=40,
    norm_topk_prob=False,
    qkv_bias=True,
)
QWEN3_MOE = dict(
    rope(1e6),
    head_dim=16,
    num_experts=8,
    num_experts_per_tok=2,
    moe_intermediate_size=24,
    norm_topk_prob=True,
)
OLMOE = dict(
    rope(1e4),
    rms_norm_eps=1e-5,
    num_key_value_heads=4,
    intermediate_size=16,
    num_experts=8,
    num_experts_per_tok=3,
    norm_topk_prob=False,
)
# Whole blocks of 32 in every row, and of 256 for the K types.
BLOCKS_32 = dict(QWEN3_MOE, moe_intermediate_size=32)
BLOCKS_256 = dict(
    QWEN3_MOE,
    hidden_size=256,
    num_key_value_heads=1,
    head_dim=64,
    num_experts=3,
    moe_intermediate_size=256,
    intermediate_size=256,
)
LLAMA3_ROPE = rope(
    300.0,
    rope_type="llama3",
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
YARN_ROPE = rope(1000.0, rope_type="yarn", factor=4.0, original_max_position_embeddings=64)
DENSE_16 = dict(head_dim=16, num_attention_heads=2, num_key_value_heads=1)


def qwen3_moe(suffix, options, **more):
    return Fixture("qwen3_moe" + suffix, "Qwen3MoeConfig", "Qwen3MoeForCausalLM", options, **more)


FIXTURES = [
    qwen3_moe("", QWEN3_MOE, fused=True, old_config=True, split=9),
    qwen3_moe("-dense_layers", dict(QWEN3_MOE, num_hidden_layers=3, mlp_only_layers=[1])),
    Fixture("mixtral", "MixtralConfig", "MixtralForCausalLM", MIXTRAL, legacy=True),
    Fixture("qwen2_moe", "Qwen2MoeConfig", "Qwen2MoeForCausalLM", QWEN2_MOE),
    Fixture(
        "qwen2_moe-dense_layers",
        "Qwen2MoeConfig",
        "Qwen2MoeForCausalLM",
        dict(QWEN2_MOE, num_hidden_layers=3, decoder_sparse_step=2),
    ),
    Fixture("olmoe", "OlmoeConfig", "OlmoeForCausalLM", OLMOE),
    Fixture("llama-llama3_rope", "LlamaConfig", "LlamaForCausalLM", dict(LLAMA3_ROPE, hidden_size=64), old_config=True),
    Fixture(
        "llama-linear_rope",
        "LlamaConfig",
        "LlamaForCausalLM",
        dict(rope(1e4, rope_type="linear", factor=4.0), **DENSE_16),
    ),
    Fixture("qwen2", "Qwen2Config", "Qwen2ForCausalLM", rope(1e6)),
    Fixture(
        "qwen2-yarn",
        "Qwen2Config",
        "Qwen2ForCausalLM",
        dict(YARN_ROPE, num_attention_heads=2, num_key_value_heads=1),
        old_config=True,
    ),
    Fixture(
        "qwen3",
        "Qwen3Config",
        "Qwen3ForCausalLM",
        dict(rope(1e6), head_dim=16, tie_word_embeddings=True),
    ),
    qwen3_moe("-f16", BLOCKS_32, storage="f16", hf=False),
    qwen3_moe("-bf16", BLOCKS_32, storage="bf16"),
    qwen3_moe("-q8_0", BLOCKS_32, storage="q8_0", hf=False),
    qwen3_moe("-q4_0", BLOCKS_32, storage="q4_0", hf=False),
    qwen3_moe("-q4_k", BLOCKS_256, storage="q4_k", hf=False),
    qwen3_moe("-q6_k", BLOCKS_256, storage="q6_k", hf=False),
    qwen3_moe("-fp8", dict(QWEN3_MOE, hidden_size=40), storage="fp8", gguf=False),
]


def configuration(fixture):
    config = getattr(hf, fixture.config)(**{**SIZES, **fixture.options})
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    return config


def draw(name, shape, seed):
    """Values of one parameter, float32, scaled so that logits, routing and attention are far from uniform."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    noise = rng.standard_normal(shape).astype(np.float32)
    if name.endswith("norm.weight"):
        return np.float32(1) + np.float32(0.2) * noise
    if name.endswith(".bias"):
        return np.float32(0.5) * noise
    if name == "model.embed_tokens.weight":
        return np.float32(0.5) * noise
    gain = 2.0 if name.endswith((".gate.weight", "q_proj.weight", "k_proj.weight", "lm_head.weight")) else 1.4
    return np.float32(gain / np.sqrt(shape[-1])) * noise


def random_weights(model, seed):
    """{name in model.named_parameters(): float32 array}; tied parameters occur once."""
    return {name: draw(name, tuple(p.shape), seed) for name, p in model.named_parameters()}


def build(fixture):
    model = getattr(hf, fixture.model)(configuration(fixture))
    return model.float().eval()


def load(model, weights):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]))
