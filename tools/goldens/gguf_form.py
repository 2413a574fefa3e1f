"""Writes a model of transformers as GGUF."""
import re

import gguf
import numpy as np

import storage as st

ARCHITECTURES = {
    "mixtral": "llama",
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen2_moe": "qwen2moe",
    "qwen3": "qwen3",
    "qwen3_moe": "qwen3moe",
    "olmoe": "olmoe",
}

# Name in transformers -> names in GGUF. Two names: the rows are halved.
NAMES = {
    "model.embed_tokens.weight": ["token_embd.weight"],
    "model.norm.weight": ["output_norm.weight"],
    "lm_head.weight": ["output.weight"],
    "input_layernorm.weight": ["attn_norm.weight"],
    "post_attention_layernorm.weight": ["ffn_norm.weight"],
    "self_attn.q_proj.weight": ["attn_q.weight"],
    "self_attn.k_proj.weight": ["attn_k.weight"],
    "self_attn.v_proj.weight": ["attn_v.weight"],
    "self_attn.q_proj.bias": ["attn_q.bias"],
    "self_attn.k_proj.bias": ["attn_k.bias"],
    "self_attn.v_proj.bias": ["attn_v.bias"],
    "self_attn.o_proj.weight": ["attn_output.weight"],
    "self_attn.q_norm.weight": ["attn_q_norm.weight"],
    "self_attn.k_norm.weight": ["attn_k_norm.weight"],
    "mlp.gate.weight": ["ffn_gate_inp.weight"],
    "mlp.experts.gate_up_proj": ["ffn_gate_exps.weight", "ffn_up_exps.weight"],
    "mlp.experts.down_proj": ["ffn_down_exps.weight"],
    "mlp.gate_proj.weight": ["ffn_gate.weight"],
    "mlp.up_proj.weight": ["ffn_up.weight"],
    "mlp.down_proj.weight": ["ffn_down.weight"],
    "mlp.shared_expert.gate_proj.weight": ["ffn_gate_shexp.weight"],
    "mlp.shared_expert.up_proj.weight": ["ffn_up_shexp.weight"],
    "mlp.shared_expert.down_proj.weight": ["ffn_down_shexp.weight"],
    "mlp.shared_expert_gate.weight": ["ffn_gate_inp_shexp.weight"],
}


def head_dim(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def interleave(values, num_heads):
    """Rows of each head from halves (i, i + head_dim / 2) to pairs (2 i, 2 i + 1): what llama's rope in GGUF expects."""
    halves = values.reshape(num_heads, 2, values.shape[0] // num_heads // 2, *values.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(values.shape)


def tensors(config, weights, storage):
    """[(name in GGUF, float32 values, type)], in the model's order."""
    out = []
    for name, values in weights.items():
        layer = re.match(r"model\.layers\.(\d+)\.(.*)", name)
        prefix = f"blk.{layer[1]}." if layer else ""
        targets = NAMES[layer[2] if layer else name]
        qtype = st.type_of(name, storage)
        if ARCHITECTURES[config.model_type] == "llama" and "attn_q" in targets[0]:
            values = interleave(values, config.num_attention_heads)
        if ARCHITECTURES[config.model_type] == "llama" and "attn_k" in targets[0]:
            values = interleave(values, config.num_key_value_heads)
        if "shared_expert_gate" in name:
            values = values[0]  # [1, hidden] there, a vector here
        parts = np.split(values, len(targets), axis=-2) if len(targets) > 1 else [values]
        for target, part in zip(targets, parts):
            out.append((prefix + target, np.ascontiguousarray(part), qtype))
    factors = llama3_factors(config)
    if factors is not None:
        out.append(("rope_freqs.weight", factors, gguf.GGMLQuantizationType.F32))
    return out


def llama3_factors(config):
    """What each pair's frequency is divided by under rope scaling `llama3`; [head_dim / 2]."""
    rope = config.rope_parameters
    if rope["rope_type"] != "llama3":
        return None
    dim = head_dim(config)
    wave = 2 * np.pi * rope["rope_theta"] ** (np.arange(0, dim, 2) / dim)
    context, low, high, factor = (
        rope["original_max_position_embeddings"],
        rope["low_freq_factor"],
        rope["high_freq_factor"],
        rope["factor"],
    )
    smooth = (context / wave - low) / (high - low)
    between = 1 / ((1 - smooth) / factor + smooth)
    return np.where(wave < context / high, 1.0, np.where(wave > context / low, factor, between)).astype(np.float32)


def one_per_expert(stacked):
    """Files of early 2024: blk.N.ffn_gate.E.weight."""
    for name, values, qtype in stacked:
        if "_exps." not in name:
            yield name, values, qtype
            continue
        for e, part in enumerate(values):
            yield name.replace("_exps.", f".{e}."), np.ascontiguousarray(part), qtype


def add_keys(w, config, name):
    rope = config.rope_parameters
    w.add_name(name)
    w.add_vocab_size(config.vocab_size)
    w.add_context_length(config.max_position_embeddings)
    w.add_embedding_length(config.hidden_size)
    w.add_block_count(config.num_hidden_layers)
    w.add_feed_forward_length(config.intermediate_size)
    w.add_head_count(config.num_attention_heads)
    w.add_head_count_kv(config.num_key_value_heads)
    w.add_key_length(head_dim(config))
    w.add_value_length(head_dim(config))
    w.add_rope_dimension_count(head_dim(config))
    w.add_rope_freq_base(rope["rope_theta"])
    w.add_layer_norm_rms_eps(config.rms_norm_eps)
    if rope["rope_type"] in ("linear", "yarn"):
        w.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        w.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None)
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(config.num_experts_per_tok)
    if getattr(config, "moe_intermediate_size", None):
        w.add_expert_feed_forward_length(config.moe_intermediate_size)
    if getattr(config, "shared_expert_intermediate_size", None):
        w.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    w.add_tokenizer_model("no_vocab")


def write(path, config, weights, storage, name, legacy=False, shard_tensors=0):
    """Returns the names of the files written. shard_tensors 0: one file."""
    w = gguf.GGUFWriter(path, ARCHITECTURES[config.model_type], split_max_tensors=shard_tensors)
    add_keys(w, config, name)
    all_tensors = tensors(config, weights, storage)
    for tensor, values, qtype in one_per_expert(all_tensors) if legacy else all_tensors:
        w.add_tensor(tensor, st.encode(values, qtype), raw_dtype=qtype)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
