"""Records what PyTorch makes of the nets of this folder: losses of 20 steps, parameters after them, outputs of the trained net.

Usage: record.py [NAME ...]; needs torch, torchvision, numpy and safetensors. Writes NAME.expected (text) and NAME.safetensors.

Both sides begin with the same weights: `values` below is a function of a tensor's name, its shape and the index, and `parity
fill` in parity.c is the same function. Samples come in the order of the file; the last batch of an epoch is smaller. Everything
is computed in single precision, as users do; the same in double shows on standard error how far rounding alone carries."""
import math
import pathlib
import re
import sys

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from safetensors.numpy import save_file

here = pathlib.Path(__file__).resolve().parent
STEPS, ANSWERS, MOST = 20, 50, 100_000      # steps, rows of the file that are answered at most, bytes


# --- initial weights ---------------------------------------------------------------------------------------------------

def uniform(name, count):
    """Numbers in -1 … 1: splitmix64 of the index, begun at the FNV-1a hash of the name."""
    seed = 14695981039346656037
    for byte in name.encode():
        seed = (seed ^ byte) * 1099511628211 % 2**64
    with np.errstate(over='ignore'):
        x = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(11)).astype(np.float64) / 2.0**52 - 1.0


def values(name, shape):
    r = uniform(name, math.prod(shape))
    if len(shape) >= 2:
        r = r * math.sqrt(3.0 / math.prod(shape[1:]))
    elif name.endswith('.running_var') or name.endswith('.weight'):
        r = 1.0 + 0.1 * r
    else:
        r = 0.1 * r
    return torch.from_numpy(r.astype(np.float32)).reshape(shape)


# --- the nets, with the names of their .net files ----------------------------------------------------------------------

class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 48), nn.Linear(48, 32), nn.Linear(32, 10)

    def forward(self, x):
        return self.fc3(torch.tanh(self.fc2(F.relu(self.fc1(x)))))


class Convnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8, momentum=0.2, eps=1e-3)
        self.conv3, self.bn3 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x.reshape(-1, 1, 8, 8))))
        x = F.max_pool2d(F.relu(x + self.bn2(self.conv2(x))), 2)
        return self.fc(F.relu(self.bn3(self.conv3(x))).flatten(1))


class Mixer(nn.Module):
    def __init__(self, hidden, width=24, rows=8):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width, eps=1e-6)
        self.rows1, self.rows2 = nn.Linear(rows, hidden), nn.Linear(hidden, rows, bias=False)
        self.columns1, self.columns2 = nn.Linear(width, 3 * hidden), nn.Linear(3 * hidden, width)

    def forward(self, x):
        x = x + self.rows2(F.gelu(self.rows1(self.ln1(x).transpose(1, 2)))).transpose(1, 2)
        return x + self.columns2(F.silu(self.columns1(self.ln2(x))))


class Schedule(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.mixer0, self.mixer1 = nn.Linear(8, 24), Mixer(12), Mixer(20)
        self.ln, self.head = nn.LayerNorm(24), nn.Linear(24, 10)

    def forward(self, x):
        x = self.mixer1(self.mixer0(self.stem(x.reshape(-1, 8, 8))))
        return self.head(self.ln(x).mean(1))


def pictures(x, times):
    """A digit many times in three channels, plus noise: pixels that are all the same would cross the kink of relu together."""
    shape = 3, 8 * times, 8 * times
    place = torch.arange(math.prod(shape))
    noise = (797 * (place * place % 1021) + place * (16 * x).sum(1, keepdim=True).to(torch.int64)) % 1021
    return x.reshape(-1, 1, 8, 8).repeat(1, 3, times, times) + noise.to(x.dtype).reshape(-1, *shape) / 1021


def resnet18():
    """torchvision's, an eighth as wide, with a first convolution for small pictures and no first pool."""
    from torchvision.models.resnet import BasicBlock, ResNet

    class Narrow(ResNet):
        def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
            self.inplanes = 8 if planes == 64 else self.inplanes
            return super()._make_layer(block, planes // 8, blocks, stride, dilate)

        def forward(self, x):
            return super().forward(pictures(x, 4))
    net = Narrow(BasicBlock, [2, 2, 2, 2], num_classes=10)
    net.conv1, net.bn1, net.maxpool = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.Identity()
    net.fc = nn.Linear(64, 10)
    return net


def mobilenetv2():
    """torchvision's, with the first two strides 1."""
    from torchvision.models import MobileNetV2

    class Small(MobileNetV2):
        def forward(self, x):
            return super().forward(pictures(x, 2))
    net = Small(num_classes=10, width_mult=0.25, dropout=0.0)
    net.features[0][0].stride = net.features[2].conv[1][0].stride = (1, 1)
    net.features[2].use_res_connect = True          # as with a stride of 1 from the start
    return net


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = nn.Embedding(17, 12), nn.LSTM(12, 20, 2, batch_first=True), nn.Linear(20, 17)

    def forward(self, codes):
        return self.head(self.lstm(self.embedding(codes))[0])


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.c_attn(x).chunk(3, 2))
        return self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class GptLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(width, 4), nn.LayerNorm(width)
        self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(width, 4 * width), c_proj=nn.Linear(4 * width, width)))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x)), approximate='tanh'))


class Gpt(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(17, width), nn.Embedding(64, width)
        self.h, self.ln_f = nn.ModuleList([GptLayer(width), GptLayer(width)]), nn.LayerNorm(width)

    def forward(self, codes):
        x = self.wte(codes) + self.wpe.weight
        for layer in self.h:
            x = layer(x)
        return F.linear(self.ln_f(x), self.wte.weight)


# --- their recipes -----------------------------------------------------------------------------------------------------

def mlp_optimizer(net):
    named = list(net.named_parameters())
    pick = lambda test: [p for n, p in named if test(n)]
    last, bias = lambda n: n.startswith('fc3.'), lambda n: n.endswith('bias')
    return torch.optim.AdamW([
        dict(params=pick(lambda n: not last(n) and not bias(n))),
        dict(params=pick(lambda n: not last(n) and bias(n)), weight_decay=0.0),
        dict(params=pick(lambda n: last(n) and not bias(n)), lr=1e-3),
        dict(params=pick(lambda n: last(n) and bias(n)), lr=1e-3, weight_decay=0.0)], lr=2e-3, weight_decay=0.05)


def nesterov(net):
    return torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)


def slow_start(net, late, low, high, decay):
    """Through norms and relus gradients grow by some factor a layer towards the input, and so does what rounding does to them:
    there the rate is low."""
    return torch.optim.SGD([dict(params=[p], lr=high if re.match(late, name) else low, weight_decay=decay if p.dim() > 1 else 0)
                            for name, p in net.named_parameters()], momentum=0.9)


def gpt_optimizer(net):
    decays = lambda name: name.endswith('weight') and not re.search(r'ln_|wte|wpe', name)
    return torch.optim.AdamW([dict(params=[p], weight_decay=0.1 if decays(name) else 0.0) for name, p in net.named_parameters()],
                             lr=2e-3, betas=(0.9, 0.95))


def factor_of(function):
    return lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, function)


def warm_cosine(warm, low):
    """`warm` steps up to the full rate, then half a cosine down to a share of it at the end of the run."""
    def factor(step):
        if step < warm:
            return (step + 1) / warm
        return low + (1 - low) * (1 + math.cos(math.pi * (step - warm) / (STEPS - warm))) / 2
    return factor_of(factor)


def by_norm(most):
    return lambda net: nn.utils.clip_grad_norm_(net.parameters(), most)


def by_value(most):
    return lambda net: nn.utils.clip_grad_value_(net.parameters(), most)


class Recipe:
    def __init__(self, net, optimizer, schedule=None, clip=None, batch=96, text=False):
        self.net, self.optimizer, self.schedule, self.clip, self.batch, self.text = net, optimizer, schedule, clip, batch, text


RECIPES = {
    'mlp': Recipe(Mlp, mlp_optimizer),
    'convnet': Recipe(Convnet, nesterov),
    'schedule': Recipe(Schedule, lambda net: torch.optim.Adam(net.parameters(), lr=5e-3, betas=(0.9, 0.99), weight_decay=1e-3),
                       warm_cosine(5, 0.1), clip=by_norm(0.5)),
    'resnet18': Recipe(resnet18, lambda net: slow_start(net, 'layer4|fc', 1e-4, 2e-3, 5e-4),
                       factor_of(lambda step: 1 - 0.8 * step / STEPS), batch=16),
    'mobilenetv2': Recipe(mobilenetv2, lambda net: slow_start(net, r'features\.1[678]|classifier', 5e-7, 2e-4, 1e-2),
                          factor_of(lambda step: 0.5 ** (step // 8)), batch=32),
    'lstm': Recipe(Lstm, lambda net: torch.optim.Adam(net.parameters(), lr=5e-3), clip=by_value(0.01), text=True),
    'gpt': Recipe(Gpt, gpt_optimizer, warm_cosine(4, 0.0), clip=by_norm(1.0), text=True),
}


# --- a run -------------------------------------------------------------------------------------------------------------

def batches(x, y, size):
    while True:
        for at in range(0, len(x), size):
            yield x[at:at + size], y[at:at + size]


def samples(recipe, rows, dtype):
    """Pixels and the label; or, as a text, each pixel and the one behind it."""
    if recipe.text:
        return rows[:, :64], rows[:, 1:]
    return rows[:, :64].to(torch.float32).to(dtype) / 16, rows[:, 64]


def mean_loss(logits, y):
    return F.cross_entropy(logits.flatten(0, -2), y.flatten())


def train(recipe, rows, dtype):
    x, y = samples(recipe, rows, dtype)
    net = recipe.net()
    net.load_state_dict({name: values(name, tuple(t.shape)) if t.is_floating_point() else t
                         for name, t in net.state_dict().items()})
    net.to(dtype).train()
    optimizer = recipe.optimizer(net)
    schedule = recipe.schedule(optimizer) if recipe.schedule else None
    losses = []
    for _, (bx, by) in zip(range(STEPS), batches(x, y, recipe.batch)):
        optimizer.zero_grad()
        loss = mean_loss(net(bx), by)
        loss.backward()
        if recipe.clip:
            recipe.clip(net)
        optimizer.step()
        if schedule:
            schedule.step()
        losses.append(loss.item())
    state = {n: t.numpy().copy() for n, t in net.state_dict().items() if t.is_floating_point()}
    net.eval()
    with torch.no_grad():
        logits = torch.cat([net(part) for part in x.split(recipe.batch)])
    score = mean_loss(logits, y).item(), (logits.argmax(-1) == y).double().mean().item()
    few = max(1, min(ANSWERS, 3000 // logits[0].numel()))
    return losses, state, logits[:few].flatten(1).numpy().copy(), score


def write(name, losses, state, answers, score):
    stride = 1
    while sum((t.size + stride - 1) // stride * 4 + 230 for t in state.values()) > MOST:
        stride += 2                         # odd, so that it does not keep to one column
    tensors = {n: np.ascontiguousarray(t.reshape(-1)[::stride]) for n, t in state.items()}
    for n, t in state.items():
        tensors[n + '.norm'] = np.array([np.sqrt(np.square(t.astype(np.float64)).sum())])
    tensors['answers'] = answers
    save_file(tensors, here / f'{name}.safetensors', dict(stride=str(stride)))
    (here / f"{name}.safetensors").chmod(0o644)
    with open(here / f'{name}.expected', 'w') as file:
        file.write(f'# PyTorch {torch.__version__.split("+")[0]}: losses of the steps, each before its update; '
                   'mean loss and accuracy of all rows afterwards\n')
        file.writelines(f'step {i + 1} {loss:.9g}\n' for i, loss in enumerate(losses))
        file.write(f'evaluation {score[0]:.9g} {score[1]:.9g}\n')


def main():
    torch.set_num_threads(1)
    rows = torch.from_numpy(np.loadtxt(here / '../../samples/digits/optdigits.csv', delimiter=',', dtype=np.int64))
    for name in sys.argv[1:] or RECIPES:
        run, exact = train(RECIPES[name], rows, torch.float32), train(RECIPES[name], rows, torch.float64)
        write(name, *run)
        far = max(abs(a - b) / abs(b) for a, b in zip(run[0], exact[0]))
        away = max((np.abs(t - exact[1][n]).max() / np.abs(exact[1][n]).max(), n) for n, t in run[1].items())
        print(f'{name}: loss {run[0][0]:.4f} to {run[0][-1]:.4f}, accuracy {run[3][1]:.4f}; single precision is off by '
              f'{far:.1e} in losses, {away[0]:.1e} in {away[1]}', file=sys.stderr)


main()
