"""The gated delta rule over a whole window, in chunks, in PyTorch. Knows nothing about layers.

Per head, with state S (keys x values), decay exp(g) and write strength beta:
S <- exp(g) S;  S <- S + k (beta (v - S^T k))^T;  o = S^T q.
Chunked form: Yang et al., "Gated Delta Networks", 2024, and "Parallelizing Linear Transformers with the Delta Rule".
"""

from __future__ import annotations

import torch


def delta_rule(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, beta: torch.Tensor,
               chunk: int = 64) -> torch.Tensor:  # fmt: skip
    """Outputs (batch, heads, time, values), the state being zero before the window.

    q, k: (batch, heads, time, keys), k of unit length, q scaled; v: (batch, heads, time, values);
    g, beta: (batch, heads, time), g <= 0. `time` must be a multiple of `chunk`.
    """
    b, h, time, _ = q.shape
    n = time // chunk
    q, k, v = (x.reshape(b, h, n, chunk, x.shape[-1]) for x in (q, k, v))
    g = g.reshape(b, h, n, chunk).cumsum(-1)
    beta = beta.reshape(b, h, n, chunk, 1)
    # The decay from j to i is at most 1 for j <= i; above the diagonal it would overflow before the mask.
    ones = torch.ones(chunk, chunk, device=q.device, dtype=q.dtype)
    decay = (g.unsqueeze(-1) - g.unsqueeze(-2)).masked_fill(ones.triu(1).bool(), -torch.inf).exp()
    start = g.exp().unsqueeze(-1)
    end = (g[..., -1:] - g).exp().unsqueeze(-1)
    overlap = (k * beta) @ k.transpose(-1, -2) * decay * ones.tril(-1)
    right = torch.cat([v * beta, k * beta * start], dim=-1)
    # unitriangular: the diagonal of ones that the system has is implied
    solved = torch.linalg.solve_triangular(overlap, right, upper=False, unitriangular=True)
    written, seen = solved.split([v.shape[-1], k.shape[-1]], dim=-1)
    within = q @ k.transpose(-1, -2) * decay
    state = q.new_zeros(b, h, k.shape[-1], v.shape[-1])
    out = []
    for i in range(n):
        new = written[:, :, i] - seen[:, :, i] @ state
        out.append((q[:, :, i] * start[:, :, i]) @ state + within[:, :, i] @ new)
        state = state * start[:, :, i, -1:] + (k[:, :, i] * end[:, :, i]).transpose(-1, -2) @ new
    return torch.stack(out, dim=2).reshape(b, h, time, -1)
