#!/usr/bin/env python3
"""Prints what routers of transformers choose, for src/routing's tests.

    router_cases.py > src/routing/testdata/router_cases.txt

Needs torch and transformers. The routers are the modules of the library; their
weight is the identity, so that the hidden states are the logits. One case:

    family num_experts top_k softmax|sigmoid normalize scale biased num_tokens
    the bias, one line, if biased
    for each token: a line of logits, one of ids, one of weights
"""

import torch
from transformers import DeepseekV3Config, MixtralConfig, OlmoeConfig
from transformers import Qwen2MoeConfig, Qwen3MoeConfig
from transformers.models.deepseek_v3 import modeling_deepseek_v3
from transformers.models.mixtral import modeling_mixtral
from transformers.models.olmoe import modeling_olmoe
from transformers.models.qwen2_moe import modeling_qwen2_moe
from transformers.models.qwen3_moe import modeling_qwen3_moe

TOKENS = 3


def row(values, form="{:.9g}"):
    return " ".join(form.format(v) for v in values.tolist())


def show(family, router, num_experts, top_k, gating, normalize, scale, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(TOKENS, num_experts, generator=generator)
    bias = getattr(router, "e_score_correction_bias", None)
    with torch.no_grad():
        router.weight.copy_(torch.eye(num_experts))
        if bias is not None:
            bias.copy_(0.3 * torch.randn(num_experts, generator=generator))
        _, weights, ids = router(logits)
        if bias is not None:  # these come unsorted: ours fall by score + bias
            keys = (logits.sigmoid() + bias).gather(1, ids)
            order = keys.argsort(dim=-1, descending=True)
            ids, weights = ids.gather(1, order), weights.gather(1, order)
    print(family, num_experts, top_k, gating, int(normalize), scale,
          int(bias is not None), TOKENS)
    if bias is not None:
        print(row(bias))
    for token in range(TOKENS):
        print(row(logits[token]))
        print(row(ids[token], "{}"))
        print(row(weights[token]))


def softmax_case(family, config, router, normalize, seed):
    experts = getattr(config, "num_experts", None) or config.num_local_experts
    show(family, router(config), experts, config.num_experts_per_tok, "softmax",
         normalize, 1, seed)


def main():
    for normalize in (False, True):
        config = OlmoeConfig(num_experts=64, num_experts_per_tok=8,
                             hidden_size=64, norm_topk_prob=normalize)
        softmax_case("olmoe", config, modeling_olmoe.OlmoeTopKRouter, normalize,
                     1)
    config = Qwen2MoeConfig(num_experts=60, num_experts_per_tok=4,
                            hidden_size=60, norm_topk_prob=False)
    softmax_case("qwen2_moe", config, modeling_qwen2_moe.Qwen2MoeTopKRouter,
                 False, 2)
    config = Qwen3MoeConfig(num_experts=128, num_experts_per_tok=8,
                            hidden_size=128, norm_topk_prob=True)
    softmax_case("qwen3_moe", config, modeling_qwen3_moe.Qwen3MoeTopKRouter,
                 True, 3)
    config = MixtralConfig(num_local_experts=8, num_experts_per_tok=2,
                           hidden_size=8)
    softmax_case("mixtral", config, modeling_mixtral.MixtralTopKRouter, True, 4)
    config = DeepseekV3Config(n_routed_experts=32, num_experts_per_tok=6,
                              hidden_size=32, n_group=1, topk_group=1,
                              norm_topk_prob=True, routed_scaling_factor=2.5)
    show("deepseek_v3", modeling_deepseek_v3.DeepseekV3TopkRouter(config), 32, 6,
         "sigmoid", True, 2.5, 5)


if __name__ == "__main__":
    main()
