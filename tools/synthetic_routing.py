#!/usr/bin/env python3
"""Write a synthetic routing trace with about the locality of a real MoE model, for `muster simulate`. Needs numpy.

usage: synthetic_routing.py --like qwen3-30b --layers 48 --tokens 2000 > trace.jsonl

The logit of expert e at token t is s b_e + l x_e(t) + noise, with b and the noise standard normal, b fixed for a topic, and x
a first-order autoregression with coefficient r; the first three layers are less skewed. docs/simulate.md says how near that is.
"""
import argparse
import json

import numpy as np

LIKE = {  # experts, k, s, l, r
    "qwen3.5-35b": (256, 8, 1.31, 1.32, .70), "qwen3-30b": (128, 8, 1.49, 1.44, .70),
    "olmoe": (64, 8, .60, 1.20, .80), "mixtral": (8, 2, .36, .31, .99), "deepseek-v2-lite": (64, 6, .47, .86, .70),
}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--like", choices=LIKE, default="qwen3-30b")
    ap.add_argument("--layers", type=int, default=48)
    ap.add_argument("--tokens", type=int, default=1000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--topic-every", type=int, default=0, help="draw a new topic after this many tokens (0: one topic)")
    a = ap.parse_args()
    n, k, s, l, r = LIKE[a.like]
    rng = np.random.default_rng(a.seed)
    scale = np.where(np.arange(a.layers) < 3, .6, 1.)[:, None]
    topic = rng.standard_normal((a.layers, n))
    state = rng.standard_normal((a.layers, n))
    for t in range(a.tokens):
        if a.topic_every and t and t % a.topic_every == 0:
            topic = rng.standard_normal((a.layers, n))
        state = r * state + np.sqrt(1 - r * r) * rng.standard_normal((a.layers, n))
        logits = scale * (s * topic + l * state) + rng.standard_normal((a.layers, n))
        picks = np.sort(np.argpartition(-logits, k, axis=1)[:, :k], axis=1)
        print(json.dumps({"token": t, "experts": picks.tolist()}, separators=(",", ":")))


if __name__ == "__main__":
    main()
