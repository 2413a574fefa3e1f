"""Trains the demo model on two CPU cores within a wall-clock budget.

  python train.py --data DATA --out RUN --minutes 110 [--resume]

The learning rate follows the clock, not the step count: it warms up, stays, and
falls linearly over the last part, so that the run ends on time on any machine.
RUN/checkpoint.pt is replaced atomically every five minutes; RUN/log.txt grows.
"""
import argparse
import os
import pathlib
import time

import numpy as np
import torch

from model import Model

MIXTURE = {"novels": 0.27, "poetry": 0.12, "dictionary": 0.17, "code": 0.36, "arithmetic": 0.08}
KINDS = list(MIXTURE)


def orthogonalize(g):
    """Newton-Schulz iteration (Muon, Jordan et al. 2024) on stacked matrices [n, rows, cols]."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        s = x @ x.mT
        x = a * x + (b * s + c * (s @ s)) @ x
    return (x.mT if tall else x).float()


class Muon:
    def __init__(self, params, momentum=0.95, decay=0.01):
        self.params, self.momentum, self.decay = list(params), momentum, decay
        self.buffers = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, lr):
        groups = {}  # same shapes together: one batched multiplication
        for p, buffer in zip(self.params, self.buffers):
            buffer.lerp_(p.grad, 1 - self.momentum)
            update = p.grad.lerp(buffer, self.momentum)
            groups.setdefault(p.shape[-2:], []).append((p, update.reshape(-1, *p.shape[-2:])))
        for shape, members in groups.items():
            scale = max(1.0, shape[0] / shape[1]) ** 0.5
            updates = orthogonalize(torch.cat([u for _, u in members])).split([u.shape[0] for _, u in members])
            for (p, _), update in zip(members, updates):
                p.mul_(1 - lr * self.decay).add_(update.view_as(p), alpha=-lr * scale)


class Data:
    def __init__(self, folder, seed):
        self.tokens = {k: np.fromfile(folder / f"{k}.train.bin", np.uint16) for k in KINDS}
        self.rng = np.random.default_rng(seed)

    def batch(self, rows, length):
        kinds = self.rng.choice(len(KINDS), rows, p=list(MIXTURE.values()))
        windows = []
        for kind in kinds:
            tokens = self.tokens[KINDS[kind]]
            start = self.rng.integers(len(tokens) - length - 1)
            windows.append(tokens[start:start + length + 1])
        ids = torch.from_numpy(np.stack(windows).astype(np.int64))
        return ids[:, :-1], ids[:, 1:], kinds


def schedule(progress):
    """Warm up over 2 %, hold, fall to 2 % over the last 55 %."""
    if progress < 0.02:
        return progress / 0.02
    return 1.0 if progress < 0.45 else max(0.02, (1 - progress) / 0.55)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=110)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=8, help="sequences a micro-batch")
    parser.add_argument("--micro", type=int, default=5, help="micro-batches a step")
    parser.add_argument("--length", type=int, default=512, help="tokens a sequence")
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--adam-lr", type=float, default=0.004)
    parser.add_argument("--router-lr", type=float, default=0.001)
    parser.add_argument("--balance", type=float, default=0.04, help="coefficient of the load-balance loss")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    model = Model()
    matrices = [p for n, p in model.named_parameters() if p.dim() >= 2 and "embed" not in n and "router" not in n]
    routers = [p for n, p in model.named_parameters() if "router" in n]
    rest = [p for n, p in model.named_parameters() if p.dim() < 2 or "embed" in n]
    muon = Muon(matrices)
    # Routers move slowly, so that the balance can follow.
    adam = torch.optim.AdamW([{"params": rest, "peak": args.adam_lr}, {"params": routers, "peak": args.router_lr}],
                             betas=(0.9, 0.95), weight_decay=0.0)
    step, tokens, spent = 0, 0, 0.0
    checkpoint = args.out / "checkpoint.pt"
    if args.resume and checkpoint.exists():
        state = torch.load(checkpoint, weights_only=False)
        model.load_state_dict(state["model"])
        adam.load_state_dict(state["adam"])
        muon.buffers = state["muon"]
        step, tokens, spent = state["step"], state["tokens"], state["spent"]
    data = Data(args.data, seed=1000 + step)
    log = open(args.out / "log.txt", "a", buffering=1)

    def save():
        state = {"model": model.state_dict(), "adam": adam.state_dict(), "muon": muon.buffers,
                 "step": step, "tokens": tokens, "spent": spent}
        torch.save(state, checkpoint.with_suffix(".tmp"))
        os.replace(checkpoint.with_suffix(".tmp"), checkpoint)

    last_save = time.time()
    start = time.time() - spent
    losses = {k: [] for k in KINDS}
    while (progress := (time.time() - start) / (args.minutes * 60)) < 1:
        began = time.time()
        rate = schedule(progress)
        loads = 0
        for p in model.parameters():
            p.grad = None
        for _ in range(args.micro):
            ids, targets, kinds = data.batch(args.rows, args.length)
            each, balance, z, counts = model.loss(ids, targets)
            ((each.mean() + args.balance * balance + 1e-4 * z) / args.micro).backward()
            for kind, loss in zip(kinds, each.detach().view(len(kinds), -1).mean(1).tolist()):
                losses[KINDS[kind]].append(loss)
            loads = loads + counts
        torch.nn.utils.clip_grad_norm_(rest, 1.0)
        muon.step(args.muon_lr * rate)
        for group in adam.param_groups:
            group["lr"] = group["peak"] * rate
        adam.step()
        step += 1
        tokens += args.micro * args.rows * args.length
        spent = time.time() - start
        if step % 10 == 0 or step < 5:
            share = loads.float() / loads.sum(1, keepdim=True)
            kinds = " ".join(f"{k} {np.mean(v):.3f}" for k, v in losses.items() if v)
            log.write(f"step {step} tokens {tokens} {spent / 60:.1f} min rate {rate:.3f} {kinds} "
                      f"balance {balance.item():.3f} load {share.min():.4f}-{share.max():.3f} "
                      f"{args.micro * args.rows * args.length / (time.time() - began):.0f} tok/s\n")
            losses = {k: [] for k in KINDS}
        if time.time() - last_save > 300:
            save()
            last_save = time.time()
    save()
    log.write(f"done: {step} steps, {tokens} tokens, {spent / 60:.1f} min\n")


if __name__ == "__main__":
    main()
