"""Runs a model of transformers and records what golden.json holds."""
import numpy as np
import torch

PROMPT_LENGTHS = (1, 9, 40)
NUM_GREEDY = 16


class RouterTap:
    """Keeps what each layer's router returned in the last forward pass."""

    def __init__(self, model):
        self.seen = {}
        for i, layer in enumerate(model.model.layers):
            router = getattr(layer.mlp, "gate", None)
            if router is not None:
                router.register_forward_hook(self._hook(i))
        self.top_k = getattr(model.config, "num_experts_per_tok", 0) or 0

    def _hook(self, layer):
        def keep(_module, _inputs, outputs):
            logits, weights, ids = outputs
            self.seen[layer] = (
                torch.softmax(logits.float(), dim=-1).numpy(),  # [tokens, experts]
                weights.float().numpy(),  # [tokens, top_k]
                ids.numpy(),
            )

        return keep

    def margin(self):
        """Smallest gap between probabilities of neighbouring ranks, the last chosen and the first left out included."""
        gaps = []
        for probabilities, _, _ in self.seen.values():
            ranked = -np.sort(-probabilities, axis=-1)
            gaps.append((ranked[:, : self.top_k] - ranked[:, 1 : self.top_k + 1]).min())
        return float(min(gaps)) if gaps else None

    def check_order(self):
        """The reference's order is by descending probability, lowest id first on ties."""
        for probabilities, _, ids in self.seen.values():
            expected = np.argsort(-probabilities, axis=-1, kind="stable")[:, : self.top_k]
            assert np.array_equal(expected, ids)


def forward(model, tokens):
    with torch.no_grad():
        return model(torch.tensor([tokens]), use_cache=False).logits[0].numpy()


def forward_by_token(model, tokens):
    rows, cache = [], None
    with torch.no_grad():
        for token in tokens:
            out = model(torch.tensor([[token]]), cache=cache, use_cache=True)
            cache = out.cache
            rows.append(out.logits[0, -1].numpy())
    return np.stack(rows)


def greedy(model, tokens):
    tokens, out, margin = list(tokens), [], np.inf
    for _ in range(NUM_GREEDY):
        last = forward(model, tokens)[-1]
        second, best = np.sort(last)[-2:]
        margin = min(margin, float(best - second))
        out.append(int(last.argmax()))
        tokens.append(out[-1])
    return out, margin


def positions(length):
    return sorted({0, length // 4, length // 2, 3 * length // 4, length - 1})


def short(values):
    """float32 values as Python floats whose repr is the shortest decimal of the float32."""
    values = np.asarray(values, np.float32)
    flat = [float(str(v)) for v in values.ravel()]
    assert np.array_equal(np.array(flat, np.float32), values.ravel())
    for n in reversed(values.shape[1:]):
        flat = [flat[i : i + n] for i in range(0, len(flat), n)]
    return flat


def run_prompt(model, tap, tokens):
    logits = forward(model, tokens)
    tap.check_order()
    entry = {
        "tokens": [int(t) for t in tokens],
        "logits": [{"position": p, "values": short(logits[p])} for p in positions(len(tokens))],
        "routing": [
            {"layer": layer, "experts": ids.tolist(), "weights": short(weights)}
            for layer, (_, weights, ids) in sorted(tap.seen.items())
        ],
        "router_margin": tap.margin(),
    }
    entry["float32_noise"] = float(np.abs(forward_by_token(model, tokens) - logits).max())
    entry["greedy"], entry["greedy_margin"] = greedy(model, tokens)
    return entry, float(np.abs(logits).max())


def run(model, seed):
    """The golden of `model`, but for the name and the list of files."""
    tap = RouterTap(model)
    config = model.config
    rng = np.random.default_rng([seed, 1])
    prompts, largest = [], 0.0
    for length in PROMPT_LENGTHS:
        entry, top = run_prompt(model, tap, rng.integers(0, config.vocab_size, length).tolist())
        prompts.append(entry)
        largest = max(largest, top)
    moe_layers = sorted(tap.seen)
    experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", 0)
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_layers": config.num_hidden_layers,
        "num_experts": experts if moe_layers else 0,
        "top_k": tap.top_k if moe_layers else 0,
        "moe_layers": moe_layers,
        "rope": {
            "inv_freq": short(model.model.rotary_emb.inv_freq.numpy()),
            "attention_factor": float(model.model.rotary_emb.attention_scaling),
        },
        "router_margin": min(p["router_margin"] for p in prompts) if moe_layers else None,
        "greedy_margin": min(p["greedy_margin"] for p in prompts),
        "float32_noise": max(p["float32_noise"] for p in prompts),
        "max_abs_logit": largest,
        "prompts": prompts,
    }
