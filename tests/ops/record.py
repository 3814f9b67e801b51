#!/usr/bin/env python3
"""Records what PyTorch says to the cases of the rows: tests/ops/answers.txt, which ops_test compares with the interpreter.

    build/test_ops --cases > cases.txt && python3 tests/ops/record.py cases.txt tests/ops/answers.txt

Needs torch and torchvision. Inputs come from the generator of case.h; everything is computed in double. A row without a
function here is listed with the reason; ops_test refuses a row that is in neither list.
"""
import sys

import torch
import torch.nn.functional as F
import torchvision

torch.set_default_dtype(torch.float64)
N = 3
TYPES = {"f16": torch.float64, "bf16": torch.float64, "f32": torch.float64, "f64": torch.float64, "i8": torch.int8, "u8": torch.uint8,
         "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}


# --- cases, as case.h reads them ----------------------------------------------------------------------------------------------


class Generator:
    def __init__(self, number):
        self.state = 1000 + number

    def draw(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 11) / 9007199254740992.0


def read_input(text):
    kind, rest = text.split("[", 1)
    dims, rest = rest.split("]", 1)
    shape = [N if d.strip() == "N" else int(d) for d in dims.split(",") if d.strip()]
    real = kind.strip() in ("f16", "bf16", "f32", "f64")
    least, most = (-2.0, 2.0) if real else (0.0, 1.0)
    words = rest.split()
    if words[:1] == ["in"]:
        least, most = float(words[1]), float(words[2])
    return kind.strip(), shape, least, most


def draw_tensor(gen, kind, shape, least, most):
    count = 1
    for d in shape:
        count *= d
    real, values = kind in ("f16", "bf16", "f32", "f64"), []
    for _ in range(count):
        u = gen.draw()
        values.append(least + u * (most - least) if real else float(int(least + (u * (most - least + 1)) // 1)))
    t = torch.tensor(values, dtype=torch.float64).reshape(shape)
    return t.to(torch.float32).to(torch.float64) if real else t.to(TYPES[kind])


def read_attr(text):
    text = text.strip()
    if text == "":
        return None
    if text in ("true", "false"):
        return text == "true"
    if text[0] == "[":
        return [int(w) for w in text[1:-1].split(",") if w.strip()]
    if text[0] in "-0123456789.":
        return float(text) if any(c in text for c in ".e") else int(text)
    return text


class Attrs(dict):
    __getattr__ = dict.get


def read_case(line):
    op, training, number, names, defaults, text = line.rstrip("\n").split("\t")
    given, attrs = {}, Attrs()
    for pair in defaults.split(";"):
        if "=" in pair:
            name, value = pair.split("=", 1)
            attrs[name.strip()] = read_attr(value)
    for item in text.split(";"):
        colon, equal = item.find(":"), item.find("=")
        if colon >= 0 and (equal < 0 or colon < equal):
            given[item[:colon].strip()] = item[colon + 1:]
        elif equal >= 0:
            attrs[item[:equal].strip()] = read_attr(item[equal + 1:])
    order = sorted(given) if names.startswith("*") else [n for n in names.split(",") if n in given]
    gen = Generator(int(number))
    inputs = Attrs((n, draw_tensor(gen, *read_input(given[n]))) for n in order)
    attrs.training = training == "1"
    attrs.types = {n: read_input(given[n])[0] for n in order}
    return op, training, text, inputs, attrs


# --- answers ------------------------------------------------------------------------------------------------------------------

ANSWERS, NONE = {}, {}


def answer(*names):
    def keep(f):
        for name in names:
            ANSWERS[name] = f
        return f
    return keep


def unary(**table):
    for name, f in table.items():
        ANSWERS[name] = lambda i, a, f=f: f(i.x)


def binary(**table):
    for name, f in table.items():
        ANSWERS[name] = lambda i, a, f=f: f(i.x, i.y)


def none(reason, *names):
    for name in names:
        NONE[name] = reason


def dims_of(sizes):
    return [N if s == "N" else s for s in (sizes if isinstance(sizes, list) else [sizes])]


def many(value, count):
    value = value if isinstance(value, list) else [value]
    return value * count if len(value) == 1 else value


binary(add=torch.add, sub=torch.sub, mul=torch.mul, div=torch.div, floordiv=lambda x, y: torch.floor_divide(x, y), mod=torch.remainder,
       pow=torch.pow, minimum=torch.minimum, maximum=torch.maximum, equal=torch.eq, not_equal=torch.ne, less=torch.lt,
       less_equal=torch.le, greater=torch.gt, greater_equal=torch.ge, xor=torch.logical_xor, **{"and": torch.logical_and, "or": torch.logical_or})
unary(neg=torch.neg, abs=torch.abs, sign=torch.sign, square=torch.square, reciprocal=torch.reciprocal, identity=lambda x: x, stop_gradient=lambda x: x,
      exp=torch.exp, expm1=torch.expm1, log=torch.log, log1p=torch.log1p, sqrt=torch.sqrt, rsqrt=torch.rsqrt, sin=torch.sin, cos=torch.cos, tan=torch.tan,
      erf=torch.erf, floor=torch.floor, ceil=torch.ceil, round=torch.round, isnan=torch.isnan, isinf=torch.isinf, **{"not": torch.logical_not})
unary(relu=F.relu, relu6=F.relu6, selu=F.selu, sigmoid=torch.sigmoid, tanh=torch.tanh, hard_swish=F.hardswish, silu=F.silu, softplus=F.softplus,
      log_sigmoid=F.logsigmoid, mish=F.mish, softsign=F.softsign)
ANSWERS.update({
    "clip": lambda i, a: i.x.clamp(a.least, a.most),
    "where": lambda i, a: torch.where(i.condition, i.x, i.y),
    "cast": lambda i, a: (i.x != 0) if a.type == "bool" else i.x if a.type == "f64" else i.x.trunc().to(TYPES[a.type]) if i.x.is_floating_point() else i.x.to(TYPES[a.type]),
    "leaky_relu": lambda i, a: F.leaky_relu(i.x, a.slope),
    "elu": lambda i, a: F.elu(i.x, a.alpha),
    "celu": lambda i, a: F.celu(i.x, a.alpha),
    "hard_sigmoid": lambda i, a: F.hardsigmoid(i.x),
    "gelu": lambda i, a: F.gelu(i.x, approximate=a.approximate),
    "prelu": lambda i, a: F.prelu(i.x, i.weight),
})


# --- movement

def flatten(i, a):
    axis = a.axis + i.x.dim() if a.axis < 0 else a.axis
    return i.x.reshape(list(i.x.shape[:axis]) + [-1])


def expand(i, a):
    axes = many(a.axis, 1)
    rank, x = i.x.dim() + len(axes), i.x
    for axis in sorted(k % rank for k in axes):
        x = x.unsqueeze(axis)
    return x


def slice_(i, a):
    x, n = i.x, i.x.shape[a.axis]
    start = a["from"] + n if a["from"] < 0 else a["from"]
    index = list(range(start, n, a.step)) if a.step > 0 else list(range(start, -1, a.step))
    if a.count is not None:
        index = index[:a.count]
    return x.index_select(a.axis, torch.tensor(index, dtype=torch.int64))


def pad(i, a):
    rank, x = i.x.dim(), i.x
    for axis in range(rank):
        n = x.shape[axis]
        before, after = a.pads[axis], a.pads[rank + axis]
        if a.mode == "constant":
            shape = list(x.shape)
            shape[axis] = before
            head = torch.full(shape, float(a.value), dtype=x.dtype)
            shape[axis] = after
            x = torch.cat([head, x, torch.full(shape, float(a.value), dtype=x.dtype)], axis)
            continue
        index = []
        for k in range(-before, n + after):
            if a.mode == "reflect":
                k = abs(k)
                k = n - 1 - abs(n - 1 - k)
            elif a.mode == "edge":
                k = min(max(k, 0), n - 1)
            else:
                k = k % n
            index.append(k)
        x = x.index_select(axis, torch.tensor(index))
    return x


ANSWERS.update({
    "reshape": lambda i, a: i.x.reshape(dims_of(a.shape)),
    "flatten": flatten,
    "expand": expand,
    "squeeze": lambda i, a: i.x.squeeze() if a.axis is None else i.x.squeeze(tuple(many(a.axis, 1))),
    "transpose": lambda i, a: i.x.transpose(-1, -2) if a.axes is None else i.x.permute(a.axes),
    "broadcast_to": lambda i, a: i.x.broadcast_to(dims_of(a.shape)),
    "tile": lambda i, a: i.x.repeat(many(a.repeats, 1)),
    "slice": slice_,
    "flip": lambda i, a: i.x.flip(list(range(i.x.dim())) if a.axis is None else many(a.axis, 1)),
    "concat": lambda i, a: torch.cat(list(i.values()), a.axis),
    "stack": lambda i, a: torch.stack(list(i.values()), a.axis),
    "split": lambda i, a: list(i.x.split(many(a.parts, 1), a.axis) if isinstance(a.parts, list) and len(a.parts) > 1 else i.x.tensor_split(many(a.parts, 1)[0], a.axis)),
    "pad": pad,
    "triangular": lambda i, a: torch.triu(i.x, a.diagonal) if a.upper else torch.tril(i.x, a.diagonal),
})


# --- indices

def gather(i, a):
    axis, index = a.axis % i.x.dim(), i.index.long()
    index = torch.where(index < 0, index + i.x.shape[axis], index)
    if not a.batch:
        return i.x.index_select(axis, index.flatten()).reshape(list(i.x.shape[:axis]) + list(index.shape) + list(i.x.shape[axis + 1:]))
    parts = [gather(Attrs(x=x, index=k), Attrs(axis=axis - 1, batch=a.batch - 1)) for x, k in zip(i.x, index)]
    return torch.stack(parts)


def scatter(i, a):
    """by gather: where each element of x lies, and the values in their order"""
    y, place = i.x.clone().flatten(), torch.arange(i.x.numel()).reshape(i.x.shape)
    for at, v in zip(gather(Attrs(x=place, index=i.index), a).flatten().tolist(), i["values"].flatten()):
        y[at] = {"none": lambda p, q: q, "sum": torch.add, "max": torch.maximum, "min": torch.minimum}[a.reduce](y[at], v)
    return y.reshape(i.x.shape)


def elements(i, a):
    index = i.index.long()
    return torch.where(index < 0, index + i.x.shape[a.axis], index)


def scatter_elements(i, a):
    if a.reduce == "none":
        return i.x.scatter(a.axis, elements(i, a), i["values"])
    return i.x.scatter_reduce(a.axis, elements(i, a), i["values"], {"sum": "sum", "max": "amax", "min": "amin"}[a.reduce])


def one_hot(i, a):
    count = dims_of(a.count)[0]
    a.axis = -1 if a.axis is None else a.axis
    return (i.x.long().unsqueeze(a.axis) == torch.arange(count).reshape([-1] + [1] * (-1 - a.axis if a.axis < 0 else i.x.dim() - a.axis))).to(TYPES[a.type])


ANSWERS.update({
    "embedding": lambda i, a: F.embedding(i.x.long(), i.weight),
    "pick": lambda i, a: i.x.gather(a.axis, i.index.long().unsqueeze(a.axis)).squeeze(a.axis),
    "gather": lambda i, a: gather(i, a),
    "scatter": scatter,
    "gather_elements": lambda i, a: i.x.gather(a.axis, elements(i, a)),
    "scatter_elements": scatter_elements,
    "one_hot": one_hot,
    "range": lambda i, a: torch.arange(dims_of(a.count)[0]).to(TYPES[a.type]),
})


# --- reductions

def axes_of(i, a):
    return tuple(range(i.x.dim())) if a.axis is None else tuple(many(a.axis, 1))


def reduction(f):
    return lambda i, a: f(i.x, axes_of(i, a), a.keep) if i.x.dim() > 0 else f(i.x.reshape(1), (0,), False)


def one_by_one(f):
    def all_axes(x, axes, keep):
        for axis in sorted((k % x.dim() for k in axes), reverse=True):
            x = f(x, axis, keep)
        return x
    return reduction(all_axes)


def mean(i, a):
    if i.where is None:
        return reduction(torch.mean)(i, a)
    return torch.where(i.where, i.x, 0).sum(axes_of(i, a), a.keep) / i.where.to(torch.float64).sum(axes_of(i, a), a.keep)


ANSWERS.update({
    "sum": reduction(lambda x, axes, keep: x.sum(axes, keep)),
    "mean": mean,
    "var": lambda i, a: i.x.var(axes_of(i, a), correction=a.correction, keepdim=a.keep),
    "norm": reduction(lambda x, axes, keep: x.square().sum(axes, keep).sqrt()),
    "max": reduction(lambda x, axes, keep: x.amax(axes, keep)),
    "min": reduction(lambda x, axes, keep: x.amin(axes, keep)),
    "product": one_by_one(lambda x, axis, keep: x.prod(axis, keep)),
    "all": one_by_one(lambda x, axis, keep: x.all(axis, keep)),
    "any": one_by_one(lambda x, axis, keep: x.any(axis, keep)),
    "logsumexp": reduction(lambda x, axes, keep: x.logsumexp(axes, keep)),
    "argmax": lambda i, a: i.x.argmax(a.axis, a.keep),
    "argmin": lambda i, a: i.x.argmin(a.axis, a.keep),
    "softmax": lambda i, a: i.x.softmax(a.axis),
    "log_softmax": lambda i, a: i.x.log_softmax(a.axis),
})


# --- products, windows

def matmul(i, a):
    x = i.a.transpose(-1, -2) if a.transpose_a and i.a.dim() > 1 else i.a
    y = i.b.transpose(-1, -2) if a.transpose_b and i.b.dim() > 1 else i.b
    return x @ y


def pads_of(a, x, kernel, stride, dilation):
    """before and after each axis"""
    axes, pad = x.dim() - 2, a.pad
    if pad != "same":
        pad = many(pad, axes)
        return [(p, p) for p in pad] if len(pad) == axes else list(zip(pad[:axes], pad[axes:]))
    out = []
    for k in range(axes):
        n = x.shape[2 + k]
        total = max((-(-n // stride[k]) - 1) * stride[k] + (kernel[k] - 1) * dilation[k] + 1 - n, 0)
        out.append((total // 2, total - total // 2))
    return out


def padded(x, pads, value=0.0):
    return F.pad(x, [p for pair in reversed(pads) for p in pair], value=value)


def conv(i, a):
    axes = i.x.dim() - 2
    kernel, stride, dilation = list(i.weight.shape[2:]), many(a.stride, axes), many(a.dilation, axes)
    f = (F.conv1d, F.conv2d, F.conv3d)[axes - 1]
    return f(padded(i.x, pads_of(a, i.x, kernel, stride, dilation)), i.weight, i.bias, stride, 0, dilation, a.groups)


def pool_args(i, a):
    axes = i.x.dim() - 2
    kernel = many(a.kernel, axes)
    return axes, kernel, kernel if a.stride is None else many(a.stride, axes), many(a.dilation or 1, axes)


def maxpool(i, a):
    axes, kernel, stride, dilation = pool_args(i, a)
    f = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[axes - 1]
    return f(padded(i.x, pads_of(a, i.x, kernel, stride, dilation), -float("inf")), kernel, stride, 0, dilation, a.ceil)


def avgpool(i, a):
    """by its definition, for PyTorch has no pads that differ: sums and counts of windows as convolutions with ones"""
    axes, kernel, stride, _ = pool_args(i, a)
    pads = pads_of(a, i.x, kernel, stride, [1] * axes)
    counted = torch.ones_like(i.x)
    total, count = padded(i.x, pads), padded(counted, pads, 1.0 if a.count_pad else 0.0)
    if a.ceil:
        extra = []
        for k in range(axes):
            n = total.shape[2 + k]
            out = -(-(n - kernel[k]) // stride[k]) + 1
            if (out - 1) * stride[k] >= i.x.shape[2 + k] + pads[k][0]:
                out -= 1
            extra.append((0, max((out - 1) * stride[k] + kernel[k] - n, 0)))
        total, count = padded(total, extra), padded(count, extra)
    f, c = (F.conv1d, F.conv2d, F.conv3d)[axes - 1], i.x.shape[1]
    ones = torch.ones([c, 1] + kernel)
    return f(total, ones, None, stride, groups=c) / f(count, ones, None, stride, groups=c)


ANSWERS.update({
    "matmul": matmul,
    "dense": lambda i, a: F.linear(i.x, i.weight.t() if a.layout == "in_out" else i.weight, i.bias),
    "conv": conv,
    "maxpool": maxpool,
    "avgpool": avgpool,
})


def conv_transpose(i, a):
    axes = i.x.dim() - 2
    kernel, stride, dilation, more = list(i.weight.shape[2:]), many(a.stride, axes), many(a.dilation, axes), many(a.output_pad, axes)
    f = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[axes - 1]
    full = f(i.x, i.weight, i.bias, stride, 0, 0, a.groups, dilation)
    for k in range(axes):
        n = i.x.shape[2 + k]
        reach = (kernel[k] - 1) * dilation[k] + 1
        if a.pad == "same":
            total = reach - stride[k]
            before, out = total // 2, n * stride[k]
        else:
            pad = many(a.pad, axes)
            before, after = (pad[k], pad[k]) if len(pad) == axes else (pad[k], pad[axes + k])
            out = (n - 1) * stride[k] + reach - before - after + more[k]
        room = before + out - full.shape[2 + k]
        if room > 0:                                # rows that no window reaches have the bias alone
            shape = list(full.shape)
            shape[2 + k] = room
            rest = torch.zeros(shape) if i.bias is None else i.bias.reshape([1, -1] + [1] * axes).expand(shape)
            full = torch.cat([full, rest], 2 + k)
        full = full.narrow(2 + k, before, out)
    return full


def lppool(i, a):
    axes, kernel, stride, _ = pool_args(i, a)
    x = padded(i.x.abs() ** a.p, pads_of(a, i.x, kernel, stride, [1] * axes))
    f, c = (F.conv1d, F.conv2d, F.conv3d)[axes - 1], i.x.shape[1]
    return f(x, torch.ones([c, 1] + kernel), None, stride, groups=c) ** (1 / a.p)


def adaptive(f):
    return lambda i, a: f[i.x.dim() - 3](i.x, many(a.size, i.x.dim() - 2))


ANSWERS.update({
    "conv_transpose": conv_transpose,
    "lppool": lppool,
    "global_avgpool": lambda i, a: i.x.mean(tuple(range(2, i.x.dim())), True),
    "global_maxpool": lambda i, a: i.x.amax(tuple(range(2, i.x.dim())), True),
    "adaptive_avgpool": adaptive((F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)),
    "adaptive_maxpool": adaptive((F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)),
})


# --- norms

ANSWERS["local_response"] = lambda i, a: F.local_response_norm(i.x, a.size, float(a.alpha), float(a.beta), float(a.k))

ANSWERS.update({
    "batchnorm": lambda i, a: F.batch_norm(i.x, i.running_mean.clone(), i.running_var.clone(), i.weight, i.bias, a.training, a.momentum, a.eps),
    "layernorm": lambda i, a: F.layer_norm(i.x, i.weight.shape, i.weight, i.bias, a.eps),
    "rmsnorm": lambda i, a: F.rms_norm(i.x, i.weight.shape, i.weight, a.eps),
    "groupnorm": lambda i, a: F.group_norm(i.x, a.groups, i.weight, i.bias, a.eps),
    "instancenorm": lambda i, a: F.instance_norm(i.x, weight=i.weight, bias=i.bias, eps=a.eps),
})


# --- losses, metrics

def class_last(i, a):
    """PyTorch has the classes on axis 1, or 0 for one row"""
    x = i.logits if i.logits is not None else i.logp
    return x.movedim(a.axis, 1) if x.dim() > 1 else x


def ignored(a):
    return -100 if a.ignore is None else a.ignore


ANSWERS.update({
    "mse": lambda i, a: F.mse_loss(i.y, i.t, reduction=a.reduce),
    "l1": lambda i, a: F.l1_loss(i.y, i.t, reduction=a.reduce),
    "mae": lambda i, a: F.l1_loss(i.y, i.t),
    "bce_with_logits": lambda i, a: F.binary_cross_entropy_with_logits(i.y, i.t, reduction=a.reduce),
    "huber": lambda i, a: F.huber_loss(i.y, i.t, delta=float(a.delta), reduction=a.reduce),
    "cross_entropy": lambda i, a: F.cross_entropy(class_last(i, a), i.label.long(), weight=i.weight, ignore_index=ignored(a), label_smoothing=float(a.smoothing), reduction=a.reduce),
    "nll": lambda i, a: F.nll_loss(class_last(i, a), i.label.long(), weight=i.weight, ignore_index=ignored(a), reduction=a.reduce),
})


def reduced(each, a):
    return each.mean() if a.reduce == "mean" else each.sum() if a.reduce == "sum" else each


def last(t, a):
    return t.movedim(a.axis, -1)


ANSWERS.update({
    "bce": lambda i, a: F.binary_cross_entropy(i.y, i.t, reduction=a.reduce),
    "focal": lambda i, a: torchvision.ops.sigmoid_focal_loss(i.y, i.t, alpha=float(a.alpha), gamma=float(a.gamma), reduction=a.reduce),
    "kl_divergence": lambda i, a: reduced(F.kl_div(i.logp, i.t, reduction="none").sum(a.axis), a),
    "cosine_similarity": lambda i, a: F.cosine_similarity(i.x, i.y, a.axis, float(a.eps)),
    "cosine_embedding": lambda i, a: reduced(F.cosine_embedding_loss(last(i.x, a).reshape(-1, i.x.shape[a.axis]), last(i.y, a).reshape(-1, i.x.shape[a.axis]), torch.where(i.t > 0, 1.0, -1.0).flatten(), float(a.margin), reduction="none").reshape(i.t.shape), a),
    "triplet": lambda i, a: reduced(F.triplet_margin_loss(last(i.x, a), last(i.positive, a), last(i.negative, a), float(a.margin), reduction="none"), a),
})


def texts(t):
    return [[int(c) for c in row[:(row.tolist() + [-1]).index(-1)]] for row in t]


def ctc(i, a):
    rows = texts(i.truth)
    n, t = i.logits.shape[:2]
    lengths = i.lengths.long() if i.lengths is not None else torch.full((n,), t)
    flat, sizes = torch.tensor([c for r in rows for c in r], dtype=torch.int64), torch.tensor([len(r) for r in rows])
    each = torch.stack([F.ctc_loss(i.logits[k:k + 1].log_softmax(-1).transpose(0, 1), torch.tensor([rows[k]], dtype=torch.int64), lengths[k:k + 1], sizes[k:k + 1], blank=a.blank, reduction="none")[0] for k in range(n)])
    if a.reduce == "mean":
        return (each / sizes.clamp(min=1)).mean()
    return each.sum() if a.reduce == "sum" else each


def ctc_decode(i, a):
    n, t = i.x.shape[:2]
    out = torch.full((n, t), -1)
    for k in range(n):
        best = i.x[k, :(int(i.lengths[k]) if i.lengths is not None else t)].argmax(-1).tolist()
        text = [c for j, c in enumerate(best) if c != a.blank and (j == 0 or c != best[j - 1])]
        out[k, :len(text)] = torch.tensor(text, dtype=torch.int64)
    return out


def edits(x, y):
    row = list(range(len(y) + 1))
    for p, a in enumerate(x):
        new = [p + 1]
        for q, b in enumerate(y):
            new.append(min(row[q] + (a != b), row[q + 1] + 1, new[q] + 1))
        row = new
    return row[-1]


ANSWERS.update({
    "ctc": ctc,
    "ctc_decode": ctc_decode,
    "character_error": lambda i, a: torch.tensor([edits(x, y) / max(len(y), 1) for x, y in zip(texts(i.x), texts(i.truth))]).mean(),
})


def top_classes(i, a):
    return i.logits.movedim(a.axis, -1)


def confusion(i, a):
    x, label = top_classes(i, a), i.label.long()
    c = x.shape[-1]
    return torch.bincount((label * c + x.argmax(-1)).flatten(), minlength=c * c).reshape(c, c).to(torch.float64)


ANSWERS.update({
    "accuracy": lambda i, a: (lambda right, keep: right[keep].sum() / max(int(keep.sum()), 1))(
        (top_classes(i, a).topk(a.top, -1).indices == i.label.long().unsqueeze(-1)).any(-1).to(torch.float64), torch.ones_like(i.label, dtype=torch.bool) if a.ignore is None else i.label != a.ignore),
    "confusion": confusion,
    "f1": confusion,
})

# --- in order, fills

def topk(i, a):
    y, at = i.x.sort(dim=a.axis, descending=bool(a.largest), stable=True)
    k = dims_of(a.k)[0]
    return [y.narrow(a.axis, 0, k), at.narrow(a.axis, 0, k)]


def run_along(f, start):
    def run(i, a):
        x, axis = i.x, a.axis or 0
        x = x.flip(axis) if a.reverse else x
        y = f(x, axis)
        if a.exclusive:
            y = torch.cat([torch.full_like(x.narrow(axis, 0, 1), start), y.narrow(axis, 0, x.shape[axis] - 1)], axis)
        return y.flip(axis) if a.reverse else y
    return run


def filled(number):
    def fill(i, a):
        shape = list(i.like.shape) if i.like is not None else dims_of(a.shape)
        kind = TYPES[a.type] if a.type else i.like.dtype if i.like is not None else torch.float64
        return torch.full(shape, a.value if number is None else number).to(kind)
    return fill


ANSWERS.update({
    "topk": topk,
    "sort": lambda i, a: list(i.x.sort(dim=a.axis, descending=bool(a.descending), stable=True)),
    "cumsum": run_along(torch.cumsum, 0),
    "cumprod": run_along(torch.cumprod, 1),
    "roll": lambda i, a: i.x.roll(many(a.shift, len(many(a.axis, 1))), many(a.axis, 1)),
    "meshgrid": lambda i, a: list(torch.meshgrid(*[t for t in i.values()], indexing=a.order)) if len({t.dtype for t in i.values()}) == 1 else
    [t.to(d) for t, d in zip(torch.meshgrid(*[t.to(torch.float64) for t in i.values()], indexing=a.order), [t.dtype for t in i.values()])],
    "zeros": filled(0),
    "ones": filled(1),
    "full": filled(None),
})


# --- recurrent nets

def recurrent(make, states):
    def run(i, a):
        x, n = i.x, i.x.shape[0]
        net = make(x.shape[2], a.hidden, a.layers, bias=bool(a.bias), batch_first=True, bidirectional=bool(a.bidirectional), **({"nonlinearity": a.activation} if a.activation else {}))
        with torch.no_grad():
            for name, p in net.named_parameters():
                p.copy_(i[name])
        shape = (a.layers * (2 if a.bidirectional else 1), n, a.hidden)
        first = [t if t is not None else torch.zeros(shape) for t in (i.start, i.cell)][:states]
        first = tuple(first) if states > 1 else first[0]
        if i.lengths is None:
            y, last = net(x, first)
        else:
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, i.lengths.long(), batch_first=True, enforce_sorted=False)
            y, last = net(packed, first)
            y = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0]
        return [y] + (list(last) if states > 1 else [last])
    return run


ANSWERS.update({"lstm": recurrent(torch.nn.LSTM, 2), "gru": recurrent(torch.nn.GRU, 1), "rnn": recurrent(torch.nn.RNN, 1)})

# --- pictures and boxes

def resize(i, a):
    if i.x.dim() != a.axes + 2:
        front = i.x.shape[:i.x.dim() - a.axes]
        y = resize(Attrs(x=i.x.reshape(1, -1, *i.x.shape[len(front):]).to(torch.float64)), a)
        return y.reshape(*front, *y.shape[2:]).to(i.x.dtype)
    size = many(a.size, i.x.dim() - 2) if a.size else [int(n * a.scale) for n in i.x.shape[2:]]
    mode = {"nearest": "nearest", "linear": ("linear", "bilinear", "trilinear")[i.x.dim() - 3], "cubic": "bicubic"}[a.method]
    return F.interpolate(i.x, size=None if a.scale else size, scale_factor=a.scale and float(a.scale), mode=mode, **({} if a.method == "nearest" else {"align_corners": a.align == "corners"}))


def shuffled(i, a, back):
    f = a.factor
    if a.order == "crd":
        return F.pixel_unshuffle(i.x, f) if back else F.pixel_shuffle(i.x, f)
    n, c, h, w = i.x.shape
    if back:
        return i.x.reshape(n, c, h // f, f, w // f, f).permute(0, 3, 5, 1, 2, 4).reshape(n, c * f * f, h // f, w // f)
    return i.x.reshape(n, f, f, c // (f * f), h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // (f * f), h * f, w * f)


def iou(x, y):
    """of boxes as they are drawn, also where x1 < x0"""
    area = lambda t: (t[..., 2] - t[..., 0]) * (t[..., 3] - t[..., 1])
    common = (torch.minimum(x[..., 2:], y[..., 2:]) - torch.maximum(x[..., :2], y[..., :2])).clamp(min=0).prod(-1)
    return common, area(x) + area(y) - common


def box_iou(i, a):
    common, both = iou(i.x.unsqueeze(-2), i.y.unsqueeze(-3))
    return torch.where(both > 0, common / both, 0)


def nms(i, a):
    """one box after the other, with torchvision's overlap of boxes"""
    n, m, classes = i.score.shape
    found, confidence = torch.zeros(n, a.limit, 4), torch.zeros(n, a.limit)
    kind, count = torch.full((n, a.limit), -1), torch.zeros(n, dtype=torch.int64)
    for k in range(n):
        left = sorted(((-float(i.score[k, b, c]), b, c) for b in range(m) for c in range(classes) if i.score[k, b, c] > (a.score or 0)))
        while left and count[k] < a.limit:
            s, b, c = left[0]
            at = int(count[k])
            found[k, at], confidence[k, at], kind[k, at] = i.boxes[k, b], -s, c
            count[k] += 1
            keep = []
            for t in left[1:]:
                common, both = iou(i.boxes[k, b], i.boxes[k, t[1]])
                if t[2] != c or (t[1] != b and not common > a.iou * both):
                    keep.append(t)
            left = keep
    return [found, confidence, kind, count]


def roi_align(i, a):
    k = torch.arange(i.boxes.shape[0]).repeat_interleave(i.boxes.shape[1]).unsqueeze(1).to(torch.float64)
    size = many(a.size, 2)
    y = torchvision.ops.roi_align(i.x, torch.cat([k, i.boxes.reshape(-1, 4)], 1), size, float(a.scale), a.samples, bool(a.aligned))
    return y.reshape(i.boxes.shape[0], i.boxes.shape[1], *y.shape[1:])


def giou(i, a):
    common, both = iou(i.y, i.t)
    hull = (torch.maximum(i.y[..., 2:], i.t[..., 2:]) - torch.minimum(i.y[..., :2], i.t[..., :2])).prod(-1)
    return reduced(1 - common / (both + 1e-7) + (hull - both) / (hull + 1e-7), a)


ANSWERS.update({
    "resize": resize,
    "pixel_shuffle": lambda i, a: shuffled(i, a, False),
    "pixel_unshuffle": lambda i, a: shuffled(i, a, True),
    "box_iou": box_iou,
    "giou_loss": giou,
    "nms": nms,
    "grid_sample": lambda i, a: F.grid_sample(i.x, i.grid, "nearest" if a.method == "nearest" else "bilinear", a.outside, bool(a.corners)),
    "roi_align": roi_align,
    "einsum": lambda i, a: torch.einsum(a.equation, *i.values()),
    "hard_tanh": lambda i, a: F.hardtanh(i.x, a.least, a.most),
    "hard_shrink": lambda i, a: F.hardshrink(i.x, a.bound),
    "soft_shrink": lambda i, a: F.softshrink(i.x, a.bound),
    "threshold": lambda i, a: F.threshold(i.x, a.bound, a.value),
    "glu": lambda i, a: F.glu(i.x, a.axis) if a.gate == "sigmoid" else F.silu(i.x.chunk(2, a.axis)[0]) * i.x.chunk(2, a.axis)[1],
    "std": lambda i, a: i.x.std(axes_of(i, a), correction=a.correction, keepdim=a.keep),
    "normalize": lambda i, a: ((i.x.movedim(a.axis, -1) - i.mean) / i.std).movedim(-1, a.axis),
})
unary(tanh_shrink=F.tanhshrink, trunc=torch.trunc, log2=torch.log2, log10=torch.log10, exp2=torch.exp2, sinh=torch.sinh, cosh=torch.cosh, asinh=torch.asinh, acosh=torch.acosh, atanh=torch.atanh)


# --- attention

def attention(i, a):
    n, tq, tk = i.q.shape[0], i.q.shape[1], i.k.shape[1]
    kept = a.kv_heads or a.heads
    q = i.q.reshape(n, tq, a.heads, -1).transpose(1, 2)
    k = i.k.reshape(n, tk, kept, -1).transpose(1, 2).repeat_interleave(a.heads // kept, 1)
    v = i.v.reshape(n, tk, kept, -1).transpose(1, 2).repeat_interleave(a.heads // kept, 1)
    mask = i.mask
    if mask is not None and mask.dim() == 2 and tuple(mask.shape) == (n, tk):
        mask = mask[:, None, None]
    elif mask is not None and mask.dim() == 3:
        mask = mask[:, None]
    if a.causal:
        causal = torch.ones(tq, tk, dtype=torch.bool).tril()
        mask = causal if mask is None else mask & causal
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=a.scale)
    y = torch.nan_to_num(y, 0.0)
    return y.transpose(1, 2).reshape(n, tq, -1)


def rotary(i, a):
    *front, t, width = i.x.shape
    d = width // a.heads
    x = i.x.reshape(*front, t, a.heads, d)
    position = torch.arange(t) if i.position is None else i.position
    angle = position.to(torch.float64).unsqueeze(-1) * float(a.base) ** (-2 * torch.arange(d // 2) / d)
    c, s = angle.cos().unsqueeze(-2), angle.sin().unsqueeze(-2) * (-1 if a.inverse else 1)
    if a.style == "halves":
        p, q = x[..., :d // 2], x[..., d // 2:]
        y = torch.cat([p * c - q * s, q * c + p * s], -1)
    else:
        p, q = x[..., 0::2], x[..., 1::2]
        y = torch.stack([p * c - q * s, q * c + p * s], -1).flatten(-2)
    return y.reshape(i.x.shape)


ANSWERS.update({"attention": attention, "rotary": rotary})

def counts(truth, said, classes):
    return torch.bincount(truth * classes + said, minlength=classes * classes).reshape(classes, classes).to(torch.float64)


def mean_iou(i, a):
    x, t = i.x.long().flatten(), i.truth.long().flatten()
    keep = torch.ones_like(t, dtype=torch.bool) if a.ignore is None else t != a.ignore
    return counts(t[keep], x[keep], a.classes)


def detections(i, a):
    table = torch.zeros(a.classes, 257, 2)
    for k in range(i.found.shape[0]):
        taken = set()
        for t in i.label[k].tolist():
            if t >= 0:
                table[t, 0, 0] += 1
        for d in range(int(i.count[k])):
            kind, best, place = int(i["class"][k, d]), 0.0, -1
            for j, t in enumerate(i.label[k].tolist()):
                common, both = iou(i.found[k, d], i.truth[k, j])
                if t == kind and float(common / both) > best:
                    best, place = float(common / both), j
            hit = place >= 0 and best >= a.iou and place not in taken
            taken |= {place} if hit else set()
            table[kind, 1 + min(max(int(i.confidence[k, d] * 256), 0), 255), 0 if hit else 1] += 1
    return table


def auc(i, a):
    bins = (i.logits.softmax(a.axis).select(a.axis, 1) * 1024).floor().clamp(0, 1023).long().flatten()
    out = torch.zeros(2, 1024)
    for t, k in zip(i.label.long().flatten(), bins):
        out[t, k] += 1
    return out


ANSWERS.update({
    "perplexity": lambda i, a: F.cross_entropy(class_last(i, a), i.label.long(), ignore_index=ignored(a)),
    "rmse": lambda i, a: F.mse_loss(i.y, i.t),
    "mean_iou": mean_iou,
    "auc": auc,
    "mean_average_precision": detections,
})

none("random numbers have no outside answer", "random_uniform", "random_normal", "random_int", "dropout")


# --- main ---------------------------------------------------------------------------------------------------------------------

def shown(t):
    flat = t.detach().reshape(-1)
    if t.is_floating_point():
        return " ".join("%.9g" % v for v in flat.tolist())
    return " ".join(str(int(v)) for v in flat.tolist())


def main():
    cases, out, missing = sys.argv[1], sys.argv[2], set()
    with open(cases) as lines, open(out, "w") as file:
        file.write("# What PyTorch %s says to the cases of the rows. Written by tests/ops/record.py.\n" % torch.__version__.split("+")[0])
        for line in lines:
            op, training, text, inputs, attrs = read_case(line)
            if op in NONE:
                continue
            if op not in ANSWERS:
                missing.add(op)
                continue
            try:
                result = ANSWERS[op](inputs, attrs)
            except Exception as e:
                raise SystemExit("%s: %s: %s" % (op, text, e))
            if result is None:
                continue
            for k, t in enumerate(result if isinstance(result, (list, tuple)) else [result]):
                if t is not None:
                    file.write("%s\t%s\t%d\t%s\n%s\n" % (op, training, k, text, shown(t)))
        for op in sorted(NONE):
            file.write("none\t%s\t%s\n" % (op, NONE[op]))
    if missing:
        raise SystemExit("no function for: " + " ".join(sorted(missing)))


if __name__ == "__main__":
    main()
