#!/usr/bin/env python3
"""Writes answers.txt: three parameters after 20 updates by each optimizer, and schedules.txt: factors of learning rates.

PyTorch answers where it has the optimizer or schedule; LAMB, Lion and Muon are computed here in double from their papers.
The weights and gradients are the numbers that update.c makes as well. Run by hand with torch and numpy; the files are kept.
"""
import numpy as np
import torch

SHAPES = {"a.weight": (6, 4), "a.bias": (6,), "b.weight": (3, 6)}
STEPS = 20


def numbers(index, step, shape):
    """The same numbers as update.c: multiples of 2^-24 in -0.5 ... 0.5."""
    k = np.arange(int(np.prod(shape)), dtype=np.uint32)
    with np.errstate(over="ignore"):
        h = (k + np.uint32(1)) * np.uint32(2654435761) + np.uint32(index * 1000 + step) * np.uint32(2246822519)
        h ^= h >> np.uint32(15)
        h *= np.uint32(2246822519)
        h ^= h >> np.uint32(13)
    return ((h >> np.uint32(8)).astype(np.float64) / 2**24 - 0.5).reshape(shape)


def by_torch(make, average=None):
    params = {n: torch.nn.Parameter(torch.tensor(numbers(i, 0, s), dtype=torch.float32)) for i, (n, s) in enumerate(SHAPES.items())}
    optimizer = make(params)
    means = {}
    for t in range(1, STEPS + 1):
        for i, (name, shape) in enumerate(SHAPES.items()):
            params[name].grad = torch.tensor(numbers(i, t, shape), dtype=torch.float32)
        optimizer.step()
        for name in SHAPES:
            p = params[name].detach()
            if average is not None:
                means["average." + name] = p.clone() if t == 1 else means["average." + name].lerp(p, 1 - average)
    return {n: p.detach().numpy().astype(np.float64) for n, p in params.items()} | {n: p.numpy().astype(np.float64) for n, p in means.items()}


class Lamb:
    """You et al. 2020, algorithm 2, with the bias correction of Adam."""

    def __init__(self, lr, beta1, beta2, eps, weight_decay):
        self.lr, self.b1, self.b2, self.eps, self.decay = lr, beta1, beta2, eps, weight_decay

    def step(self, s, p, g, t):
        s["m"] = self.b1 * s.get("m", 0) + (1 - self.b1) * g
        s["v"] = self.b2 * s.get("v", 0) + (1 - self.b2) * g * g
        u = s["m"] / (1 - self.b1**t) / (np.sqrt(s["v"] / (1 - self.b2**t)) + self.eps) + self.decay * p
        norms = np.linalg.norm(p), np.linalg.norm(u)
        return p - self.lr * (norms[0] / norms[1] if min(norms) > 0 else 1) * u


class Lion:
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, lr, beta1, beta2, weight_decay):
        self.lr, self.b1, self.b2, self.decay = lr, beta1, beta2, weight_decay

    def step(self, s, p, g, t):
        m = s.get("m", 0)
        p = p - self.lr * (np.sign(self.b1 * m + (1 - self.b1) * g) + self.decay * p)
        s["m"] = self.b2 * m + (1 - self.b2) * g
        return p


class Muon:
    """Jordan et al. 2024, with PyTorch's defaults; PyTorch's own iterates in bfloat16."""

    def __init__(self, lr, weight_decay=0.1, momentum=0.95, nesterov=True, coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, steps=5,
                 match_rms=False):
        self.__dict__.update(locals())

    def step(self, s, p, g, t):
        s["m"] = s.get("m", 0) + (1 - self.momentum) * (g - s.get("m", 0))
        g = g + self.momentum * (s["m"] - g) if self.nesterov else s["m"]
        a, b, c = self.coefficients
        x = g / max(np.linalg.norm(g), self.eps)
        x = x.T if x.shape[0] > x.shape[1] else x
        for _ in range(self.steps):
            gram = x @ x.T
            x = a * x + (b * gram + c * gram @ gram) @ x
        x = x.T if g.shape[0] > g.shape[1] else x
        rows, columns = g.shape
        scale = 0.2 * np.sqrt(max(rows, columns)) if self.match_rms else np.sqrt(max(1, rows / columns))
        return p * (1 - self.lr * self.weight_decay) - self.lr * scale * x


def by_hand(rules):
    out = {}
    for i, (name, shape) in enumerate(SHAPES.items()):
        state, p = {}, numbers(i, 0, shape)
        for t in range(1, STEPS + 1):
            p = rules[name].step(state, p, numbers(i, t, shape), t)
        out[name] = p
    return out


def mixed():
    adamw = by_torch(lambda p: torch.optim.AdamW(p.values(), lr=2e-3))
    muon = by_hand({"a.weight": Muon(2e-2), "b.weight": Muon(2e-2), "a.bias": Lion(1e-3, 0.9, 0.99, 0)})
    return {"a.weight": muon["a.weight"], "a.bias": adamw["a.bias"], "b.weight": muon["b.weight"]}


def muon_of_matrices(rule):
    got = by_hand({"a.weight": rule, "b.weight": rule, "a.bias": Lion(1e-3, 0.9, 0.99, 0)})
    sgd = by_torch(lambda p: torch.optim.SGD(p.values(), lr=1e-2))
    return got | {"a.bias": sgd["a.bias"]}


def groups(p):
    return torch.optim.AdamW([{"params": [p["a.weight"]]}, {"params": [p["a.bias"]], "weight_decay": 0},
                              {"params": [p["b.weight"]], "lr": 2e-4}], lr=2e-3, weight_decay=0.1)


def same(rule):
    return by_hand({name: rule for name in SHAPES})


o = torch.optim
CASES = {
    "sgd": lambda: by_torch(lambda p: o.SGD(p.values(), lr=1e-2, momentum=0.9, weight_decay=0.01, nesterov=True)),
    "adam": lambda: by_torch(lambda p: o.Adam(p.values(), lr=2e-3, weight_decay=0.01)),
    "adamw": lambda: by_torch(lambda p: o.AdamW(p.values(), lr=2e-3, betas=(0.8, 0.95), weight_decay=0.1)),
    "rmsprop": lambda: by_torch(lambda p: o.RMSprop(p.values())),
    "rmsprop_centered": lambda: by_torch(lambda p: o.RMSprop(p.values(), lr=1e-3, alpha=0.9, eps=1e-6, weight_decay=0.1, momentum=0.8, centered=True)),
    "adagrad": lambda: by_torch(lambda p: o.Adagrad(p.values())),
    "adagrad_all": lambda: by_torch(lambda p: o.Adagrad(p.values(), lr=2e-2, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.1, eps=1e-8)),
    "lamb": lambda: same(Lamb(2e-2, 0.9, 0.999, 1e-6, 0.01)),
    "lion": lambda: same(Lion(3e-3, 0.9, 0.99, 0.1)),
    "muon": lambda: muon_of_matrices(Muon(1e-2)),
    "muon_rms": lambda: muon_of_matrices(Muon(2e-3, 0.2, 0.9, False, (2.0, -1.5, 0.5), 1e-6, 8, True)),
    "mixed": mixed,
    "groups": lambda: by_torch(groups),
    "ema": lambda: by_torch(lambda p: o.SGD(p.values(), lr=1e-1, momentum=0.9), average=0.9),
}


def schedule(make, steps):
    """Learning rates as factors of the first one given, step by step."""
    p = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([p], lr=0.1)
    s = make(optimizer)
    out = []
    for _ in range(steps):
        out.append(optimizer.param_groups[0]["lr"] / 0.1)
        optimizer.step()
        s.step()
    return out


def plateau(losses):
    p = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([p], lr=0.1)
    s = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2, threshold=1e-2, min_lr=2e-2)
    out = []
    for loss in losses:
        s.step(loss)
        out.append(optimizer.param_groups[0]["lr"] / 0.1)
    return out


L = torch.optim.lr_scheduler
LOSSES = [1, 0.9, 0.8, 0.799, 0.798, 0.797, 0.796, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.4, 0.41, 0.42, 0.43, 0.44, 0.45, 0.46, 0.47, 0.48, 0.1, 0.1, 0.1]
SCHEDULES = {
    "multistep": lambda: schedule(lambda x: L.MultiStepLR(x, [5, 12, 13], 0.3), 20),
    "exponential": lambda: schedule(lambda x: L.ExponentialLR(x, 0.9), 20),
    "polynomial": lambda: schedule(lambda x: L.PolynomialLR(x, 20, 2.0), 20),
    "one_cycle": lambda: schedule(lambda x: L.OneCycleLR(x, 2.5, total_steps=20), 20),
    "plateau": lambda: plateau(LOSSES),
}

if __name__ == "__main__":
    with open("answers.txt", "w") as out:
        for case, run in CASES.items():
            for name, p in run().items():
                print(case, name, *(f"{x:.9g}" for x in p.reshape(-1)), file=out)
    with open("schedules.txt", "w") as out:
        print("losses", *LOSSES, file=out)
        for name, run in SCHEDULES.items():
            print(name, *(f"{x:.12g}" for x in run()), file=out)
