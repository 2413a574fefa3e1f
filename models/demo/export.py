"""Writes a trained checkpoint as a Hugging Face folder and as a GGUF file.

  python export.py --checkpoint RUN/checkpoint.pt --tokenizer DATA/tokenizer.json
                   [--out .]

Writes OUT/hf/ (Qwen3MoeForCausalLM, bfloat16 safetensors, tokenizer) and
OUT/demo-moe-q8_0.gguf (architecture qwen3moe: matrices Q8_0, router and norms
F32). Both hold the same weights; the output matrix is the embedding.
"""
import argparse
import json
import pathlib

import gguf
import torch
from safetensors.torch import save_file

from model import Config, Model

END = "<|endoftext|>"
SPECIALS = [END, "<|im_start|>", "<|im_end|>"]
# The model continues text and was never trained on turns: messages are joined.
CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
NAME = "Muster demo MoE"


def load(checkpoint):
    """The model with its weights rounded to bfloat16, as both files carry them."""
    model = Model()
    model.load_state_dict(torch.load(checkpoint, weights_only=False)["model"])
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.bfloat16().float())
    return model


def hf_tensors(model):
    """Name -> tensor as Qwen3MoeForCausalLM names them; a tied head is left out."""
    tensors = {"model.embed_tokens.weight": model.embed, "model.norm.weight": model.norm}
    for i, block in enumerate(model.blocks):
        layer = f"model.layers.{i}."
        tensors[layer + "input_layernorm.weight"] = block.attn_norm
        tensors[layer + "post_attention_layernorm.weight"] = block.ffn_norm
        for part in "qkvo":
            tensors[layer + f"self_attn.{part}_proj.weight"] = getattr(block.attn, part)
        tensors[layer + "self_attn.q_norm.weight"] = block.attn.q_norm
        tensors[layer + "self_attn.k_norm.weight"] = block.attn.k_norm
        tensors[layer + "mlp.gate.weight"] = block.moe.router
        for part in ("gate", "up", "down"):
            for e, matrix in enumerate(getattr(block.moe, part)):
                tensors[layer + f"mlp.experts.{e}.{part}_proj.weight"] = matrix
    return {name: t.detach().bfloat16().contiguous() for name, t in tensors.items()}


def hf_config(c):
    return {
        "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
        "vocab_size": c.vocab, "hidden_size": c.dim, "intermediate_size": c.expert_dim,
        "num_hidden_layers": c.layers, "num_attention_heads": c.heads,
        "num_key_value_heads": c.kv_heads, "head_dim": c.head_dim, "hidden_act": "silu",
        "max_position_embeddings": c.context, "rms_norm_eps": c.eps, "rope_theta": c.rope_base,
        "rope_scaling": None, "attention_bias": False, "attention_dropout": 0.0,
        "use_sliding_window": False, "sliding_window": None, "decoder_sparse_step": 1,
        "mlp_only_layers": [], "num_experts": c.experts, "num_experts_per_tok": c.top_k,
        "moe_intermediate_size": c.expert_dim, "norm_topk_prob": True,
        "output_router_logits": False, "router_aux_loss_coef": 0.0, "tie_word_embeddings": True,
        "initializer_range": 0.02, "use_cache": True, "torch_dtype": "bfloat16",
        "bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0,
    }


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_hf(model, tokenizer, folder):
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / "model.safetensors"
    save_file(hf_tensors(model), weights, {"format": "pt"})
    weights.chmod(0o644)
    write_json(folder / "config.json", hf_config(model.c))
    write_json(folder / "generation_config.json", {"eos_token_id": 0, "pad_token_id": 0, "do_sample": True,
                                                   "temperature": 0.8, "top_p": 0.95})
    # The GGUF says "qwen2", which normalizes text first; the training text is in that form already.
    described = json.loads(tokenizer.read_text()) | {"normalizer": {"type": "NFC"}}
    write_json(folder / "tokenizer.json", described)
    added = {str(i): {"content": s, "lstrip": False, "normalized": False, "rstrip": False,
                      "single_word": False, "special": True} for i, s in enumerate(SPECIALS)}
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": False, "add_bos_token": False,
        "added_tokens_decoder": added, "additional_special_tokens": SPECIALS[1:], "bos_token": None,
        "eos_token": END, "pad_token": END, "unk_token": None, "clean_up_tokenization_spaces": False,
        "model_max_length": model.c.context, "chat_template": CHAT_TEMPLATE})


def add_metadata(writer, c):
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name(NAME)
    writer.add_license("apache-2.0")
    writer.add_size_label("29M")
    writer.add_languages(["en", "zh"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_vocab_size(c.vocab)
    writer.add_context_length(c.context)
    writer.add_embedding_length(c.dim)
    writer.add_block_count(c.layers)
    writer.add_feed_forward_length(c.expert_dim)
    writer.add_expert_feed_forward_length(c.expert_dim)
    writer.add_expert_count(c.experts)
    writer.add_expert_used_count(c.top_k)
    writer.add_expert_weights_norm(True)
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SOFTMAX)
    writer.add_head_count(c.heads)
    writer.add_head_count_kv(c.kv_heads)
    writer.add_key_length(c.head_dim)
    writer.add_value_length(c.head_dim)
    writer.add_rope_freq_base(c.rope_base)
    writer.add_layer_norm_rms_eps(c.eps)


def add_tokenizer(writer, tokenizer):
    """The byte-level BPE vocabulary and merges, as `gpt2` with qwen2's split."""
    described = json.loads(tokenizer.read_text())
    ids = described["model"]["vocab"] | {t["content"]: t["id"] for t in described["added_tokens"]}
    tokens = sorted(ids, key=ids.get)
    assert [ids[t] for t in tokens] == list(range(len(tokens))), "ids have holes"
    merges = [m if isinstance(m, str) else " ".join(m) for m in described["model"]["merges"]]
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([control if t in SPECIALS else normal for t in tokens])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(ids[END])
    writer.add_pad_token_id(ids[END])
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def gguf_tensors(model):
    """(name, array, is a matrix to quantize), experts of a layer stacked [experts, out, in]."""
    yield "token_embd.weight", model.embed, True
    yield "output_norm.weight", model.norm, False
    for i, block in enumerate(model.blocks):
        layer = f"blk.{i}."
        yield layer + "attn_norm.weight", block.attn_norm, False
        yield layer + "ffn_norm.weight", block.ffn_norm, False
        yield layer + "attn_q_norm.weight", block.attn.q_norm, False
        yield layer + "attn_k_norm.weight", block.attn.k_norm, False
        for part, name in zip("qkvo", ("attn_q", "attn_k", "attn_v", "attn_output")):
            yield f"{layer}{name}.weight", getattr(block.attn, part), True
        yield layer + "ffn_gate_inp.weight", block.moe.router, False
        for part in ("gate", "up", "down"):
            yield f"{layer}ffn_{part}_exps.weight", getattr(block.moe, part), True


def write_gguf(model, tokenizer, path):
    writer = gguf.GGUFWriter(path, "qwen3moe")
    add_metadata(writer, model.c)
    add_tokenizer(writer, tokenizer)
    q8_0, f32 = gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.F32
    for name, tensor, quantize in gguf_tensors(model):
        values = tensor.detach().float().numpy()
        kind = q8_0 if quantize else f32
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    args = parser.parse_args()
    model = load(args.checkpoint)
    write_hf(model, args.tokenizer, args.out / "hf")
    write_gguf(model, args.tokenizer, args.out / "demo-moe-q8_0.gguf")


if __name__ == "__main__":
    main()
