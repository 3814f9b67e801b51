"""The nets of nets/*.net as PyTorch and JAX have them, to be timed side by side with a training program.

Usage: peers.py eager|compile|jax NET THREADS. Prints one JSON line when the first step is done; then, for each number of
seconds read from standard input, takes steps for so long and prints their times in milliseconds as one JSON line."""
import json
import os
import sys
import time

begin = time.time()
engine, net, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.environ['OMP_NUM_THREADS'] = os.environ['MKL_NUM_THREADS'] = str(threads)
os.environ['TORCHINDUCTOR_COMPILE_THREADS'] = '1'
os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['CUDA_VISIBLE_DEVICES'] = ''
if threads == 1:
    os.environ['XLA_FLAGS'] = '--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1'


def torch_step():
    import torch
    from torch import nn
    import torch.nn.functional as F
    torch.set_num_threads(threads)
    torch.manual_seed(0)

    class Cnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.c2 = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
            self.f1, self.f2 = nn.Linear(64 * 7 * 7, 128), nn.Linear(128, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.c1(x)), 2)
            x = F.max_pool2d(F.relu(self.c2(x)), 2)
            return self.f2(F.relu(self.f1(x.flatten(1))))

    class Gpt(nn.Module):                   # pre-norm, causal, 4 layers of width 256, 4 heads, bytes
        def __init__(self, vocabulary=256, width=256, heads=4, layers=4, context=128):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(1, context, width) * .02)
            self.h = nn.ModuleList([nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, 'gelu', batch_first=True,
                                                               norm_first=True) for _ in range(layers)])
            self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.register_buffer('mask', nn.Transformer.generate_square_subsequent_mask(context))

        def forward(self, codes):
            x = self.wte(codes) + self.wpe
            for block in self.h:
                x = block(x, src_mask=self.mask, is_causal=True)
            return self.head(self.ln(x)).transpose(1, 2)

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.l, self.o = nn.Embedding(256, 128), nn.LSTM(128, 256, 1, batch_first=True), nn.Linear(256, 256)

        def forward(self, codes):
            return self.o(self.l(self.e(codes))[0]).transpose(1, 2)

    class Block(nn.Module):                 # of ResNet-18
        def __init__(self, before, after, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
            self.conv2, self.bn2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
            self.down = nn.Sequential()
            if stride != 1 or before != after:
                self.down = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)))
            return F.relu(self.bn2(self.conv2(y)) + self.down(x))

    def resnet18():                         # in its 32 x 32 form: a first layer of 3 x 3, no first pool
        layers, channels = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
        for wide, stride in [(64, 1), (128, 2), (256, 2), (512, 2)]:
            layers += [Block(channels, wide, stride), Block(wide, wide, 1)]
            channels = wide
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))

    def dense(*sizes):
        layers = [f for a, b in zip(sizes, sizes[1:]) for f in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    labels = lambda count: torch.randint(0, 10, (count,))
    text = lambda count, length: torch.randint(0, 256, (count, length))
    model, x, y = {
        'digits': lambda: (dense(64, 64, 10), torch.randn(32, 64), labels(32)),
        'mlp': lambda: (dense(784, 256, 128, 10), torch.randn(64, 784), labels(64)),
        'cnn': lambda: (Cnn(), torch.randn(64, 1, 28, 28), labels(64)),
        'lstm': lambda: (Lstm(), text(16, 64), text(16, 64)),
        'gpt': lambda: (Gpt(), text(8, 128), text(8, 128)),
        'resnet18': lambda: (resnet18(), torch.randn(32, 3, 32, 32), labels(32)),
    }[net]()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    forward = torch.compile(model) if engine == 'compile' else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(forward(x), y).backward()
        optimizer.step()
    return step


def jax_step():
    import jax
    import jax.numpy as jnp
    import numpy as np
    rng = np.random.default_rng(0)
    new = lambda *s: jnp.asarray(rng.standard_normal(s) * .05, jnp.float32)
    if net == 'cnn':
        x, y = new(64, 1, 28, 28), jnp.asarray(rng.integers(0, 10, 64))
        params = dict(c1=new(32, 1, 3, 3), b1=new(32), c2=new(64, 32, 3, 3), b2=new(64),
                      w1=new(3136, 128), d1=new(128), w2=new(128, 10), d2=new(10))
        conv = lambda x, w, b: jax.lax.conv_general_dilated(x, w, (1, 1), 'SAME') + b[:, None, None]
        pool = lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), 'VALID')

        def forward(p, x):
            x = pool(jax.nn.relu(conv(x, p['c1'], p['b1'])))
            x = pool(jax.nn.relu(conv(x, p['c2'], p['b2']))).reshape(64, -1)
            return jax.nn.relu(x @ p['w1'] + p['d1']) @ p['w2'] + p['d2']
    else:
        sizes, batch = {'digits': ([64, 64, 10], 32), 'mlp': ([784, 256, 128, 10], 64)}[net]
        x, y = new(batch, sizes[0]), jnp.asarray(rng.integers(0, 10, batch))
        params = [(new(a, b), jnp.zeros(b)) for a, b in zip(sizes, sizes[1:])]

        def forward(p, x):
            for k, (w, b) in enumerate(p):
                x = x @ w + b
                x = jax.nn.relu(x) if k < len(p) - 1 else x
            return x
    loss = lambda p: -jnp.take_along_axis(jax.nn.log_softmax(forward(p, x)), y[:, None], 1).mean()

    def update(p, m, v, t):
        value, g = jax.value_and_grad(loss)(p)
        m = jax.tree.map(lambda m, g: .9 * m + .1 * g, m, g)
        v = jax.tree.map(lambda v, g: .999 * v + .001 * g * g, v, g)
        new_p = lambda p, m, v: p - 1e-4 * (m / (1 - .9 ** t) / (jnp.sqrt(v / (1 - .999 ** t)) + 1e-8) + .01 * p)
        return jax.tree.map(new_p, p, m, v), m, v, t + 1, value

    fast = jax.jit(update, donate_argnums=(0, 1, 2))
    state = [params, jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params), jnp.float32(1)]

    def step():
        *state[:], value = fast(*state)
        value.block_until_ready()
    return step


def peak_kb():
    with open('/proc/self/status') as status:
        return next(int(line.split()[1]) for line in status if line.startswith('VmHWM'))


step = jax_step() if engine == 'jax' else torch_step()
step()
print(json.dumps(dict(first_step_s=time.time() - begin)), flush=True)
step()
for line in sys.stdin:
    times, stop = [], time.perf_counter() + float(line)
    while len(times) < 2 or time.perf_counter() < stop:
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    print(json.dumps(dict(ms=times, peak_kb=peak_kb())), flush=True)
