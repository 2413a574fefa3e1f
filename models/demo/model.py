"""A Qwen3-MoE language model for training on a CPU: one expert's tokens are computed together."""
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Config:
    vocab: int = 8192
    dim: int = 256
    layers: int = 8
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    experts: int = 16
    top_k: int = 2
    expert_dim: int = 256
    rope_base: float = 10000.0
    eps: float = 1e-6
    context: int = 2048


def rms_norm(x, weight, eps):
    return F.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), eps)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.q = nn.Parameter(torch.empty(c.heads * c.head_dim, c.dim))
        self.k = nn.Parameter(torch.empty(c.kv_heads * c.head_dim, c.dim))
        self.v = nn.Parameter(torch.empty(c.kv_heads * c.head_dim, c.dim))
        self.o = nn.Parameter(torch.empty(c.dim, c.heads * c.head_dim))
        self.q_norm = nn.Parameter(torch.ones(c.head_dim))
        self.k_norm = nn.Parameter(torch.ones(c.head_dim))

    def forward(self, x, cos, sin):
        c, (batch, time, _) = self.c, x.shape
        q = (x @ self.q.to(x.dtype).T).view(batch, time, c.heads, c.head_dim)
        k = (x @ self.k.to(x.dtype).T).view(batch, time, c.kv_heads, c.head_dim)
        v = (x @ self.v.to(x.dtype).T).view(batch, time, c.kv_heads, c.head_dim)
        q = rotate(rms_norm(q, self.q_norm, c.eps), cos, sin).transpose(1, 2)
        k = rotate(rms_norm(k, self.k_norm, c.eps), cos, sin).transpose(1, 2)
        v = v.transpose(1, 2)
        repeat = c.heads // c.kv_heads
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(batch, time, -1) @ self.o.to(x.dtype).T


class Experts(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.router = nn.Parameter(torch.empty(c.experts, c.dim))
        self.gate = nn.Parameter(torch.empty(c.experts, c.expert_dim, c.dim))
        self.up = nn.Parameter(torch.empty(c.experts, c.expert_dim, c.dim))
        self.down = nn.Parameter(torch.empty(c.experts, c.dim, c.expert_dim))

    def forward(self, x):
        """x: [tokens, dim]. Returns the sum over chosen experts, the auxiliary losses, tokens per expert."""
        c = self.c
        logits = x.float() @ self.router.T
        probs = logits.softmax(-1)
        weights, ids = probs.topk(c.top_k, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        flat = ids.flatten()
        order = flat.argsort(stable=True)
        counts = torch.bincount(flat, minlength=c.experts)
        tokens = order // c.top_k
        gate_w, up_w, down_w = (w.to(x.dtype).unbind(0) for w in (self.gate, self.up, self.down))
        outs = []
        for e, part in enumerate(x[tokens].split(counts.tolist())):
            inner = F.silu(part @ gate_w[e].T) * (part @ up_w[e].T)
            outs.append(inner @ down_w[e].T)
        out = torch.cat(outs) * weights.flatten()[order].unsqueeze(-1).to(x.dtype)
        y = torch.zeros_like(x).index_add_(0, tokens, out)
        share = counts.float() / flat.numel()
        balance = c.experts * (share * probs.mean(0)).sum()
        z = logits.logsumexp(-1).square().mean()
        return y, balance, z, counts


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.attn_norm = nn.Parameter(torch.ones(c.dim))
        self.ffn_norm = nn.Parameter(torch.ones(c.dim))
        self.attn = Attention(c)
        self.moe = Experts(c)

    def forward(self, x, cos, sin):
        x = x + self.attn(rms_norm(x, self.attn_norm, self.c.eps), cos, sin)
        h = rms_norm(x, self.ffn_norm, self.c.eps)
        y, balance, z, counts = self.moe(h.view(-1, h.shape[-1]))
        return x + y.view_as(x), balance, z, counts


class HeadLoss(torch.autograd.Function):
    """Cross entropy of tied-embedding logits, a chunk of tokens at a time: the logits of a
    whole batch never exist at once, and each chunk stays in the caches."""

    CHUNK = 512

    @staticmethod
    def forward(ctx, hidden, embed, targets):
        weight = embed.to(hidden.dtype)
        losses = torch.empty(hidden.shape[0])
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(embed)
        for i in range(0, hidden.shape[0], HeadLoss.CHUNK):
            h, t = hidden[i:i + HeadLoss.CHUNK], targets[i:i + HeadLoss.CHUNK, None]
            logp = (h @ weight.T).float().log_softmax(-1)
            losses[i:i + HeadLoss.CHUNK] = -logp.gather(1, t).squeeze(1)
            grad = logp.exp_().scatter_add_(1, t, torch.full(t.shape, -1.0)).to(hidden.dtype)
            grad_hidden[i:i + HeadLoss.CHUNK] = grad @ weight
            grad_weight += grad.T @ h
        ctx.save_for_backward(grad_hidden, grad_weight)
        ctx.tokens = hidden.shape[0]
        return losses

    @staticmethod
    def backward(ctx, grad):
        # The gradient of a mean: the same factor for every token.
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grad[0], grad_weight * grad[0], None


class Model(nn.Module):
    def __init__(self, c=Config(), seed=1):
        super().__init__()
        self.c = c
        self.embed = nn.Parameter(torch.empty(c.vocab, c.dim))
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = nn.Parameter(torch.ones(c.dim))
        generator = torch.Generator().manual_seed(seed)
        for name, p in self.named_parameters():
            if p.dim() < 2:
                continue
            std = 0.02 if "embed" in name or "router" in name else p.shape[-1] ** -0.5
            if name.endswith((".o", ".down")):
                std /= math.sqrt(2 * c.layers)
            with torch.no_grad():
                p.normal_(0, std, generator=generator)

    def forward(self, ids, dtype=torch.bfloat16):
        """ids: [batch, time]. Returns hidden states before the head and what the routers did."""
        c, time = self.c, ids.shape[1]
        inv_freq = c.rope_base ** (-torch.arange(0, c.head_dim, 2).double() / c.head_dim)
        angles = torch.arange(time).double()[:, None] * inv_freq
        cos, sin = (f(angles).to(dtype)[:, None, :] for f in (torch.cos, torch.sin))
        x = F.embedding(ids, self.embed).to(dtype)
        balance, z, counts = 0.0, 0.0, []
        for block in self.blocks:
            x, b, zz, n = block(x, cos, sin)
            balance, z = balance + b, z + zz
            counts.append(n)
        return rms_norm(x, self.norm, c.eps), balance, z, torch.stack(counts)

    def loss(self, ids, targets):
        """Cross entropy of each token in nats, auxiliary losses, tokens per layer and expert."""
        hidden, balance, z, counts = self(ids)
        losses = HeadLoss.apply(hidden.view(-1, self.c.dim), self.embed, targets.flatten())
        return losses, balance / self.c.layers, z / self.c.layers, counts
