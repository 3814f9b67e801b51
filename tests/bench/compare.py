"""Times training programs and their peers in turns, and prints the table. Run by run.sh, which says what is needed.

Usage: compare.py MLC [--nets digits,mlp,cnn] [--peers eager,compile,jax] [--threads 1] [--rounds 8] [--seconds 0.5]

All processes are there from the beginning, held to the same core if they have one thread; in each round every one of them
takes steps for the same time while the others wait. So a disturbance hits all sides, and ratios of minima mean something."""
import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import select
import statistics
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent


def arguments():
    parser = argparse.ArgumentParser(prog='run.sh')
    parser.add_argument('mlc', help=argparse.SUPPRESS)
    parser.add_argument('--nets', default='digits,mlp,cnn')
    parser.add_argument('--peers', default='eager,compile,jax', help='empty: none')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=8)
    parser.add_argument('--seconds', type=float, default=0.5, help='that each side takes steps in a round')
    parser.add_argument('--patience', type=float, default=300, help='seconds for a peer to make its first step')
    return parser.parse_args()


class Peer:
    """A process of peers.py. `dead` says why it is not there."""

    def __init__(self, engine, net, threads, patience):
        self.engine, self.ms, self.peak_kb, self.dead = engine, [], 0, None
        self.process = subprocess.Popen([sys.executable, here / 'peers.py', engine, net, str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], patience)
        line = self.process.stdout.readline() if ready else ''
        if not line:
            self.dead = 'too slow to start' if ready == [] else self.process.stderr.read().strip().split('\n')[-1]
            self.process.kill()
        else:
            self.first_step_s = json.loads(line)['first_step_s']

    def round(self, seconds):
        self.process.stdin.write(f'{seconds}\n')
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        self.ms += answer['ms']
        self.peak_kb = answer['peak_kb']

    def close(self):
        if not self.dead:
            self.process.stdin.close()
            self.process.wait()


class Program:
    """A training program made by mlc; run anew in each round, on as many steps as fit."""

    def __init__(self, mlc, net, threads, folder):
        self.command = [folder / f'{net}-train', '--threads', str(threads), '--json', '--benchmark']
        start = time.perf_counter()
        subprocess.run([mlc, 'compile', here / 'nets' / f'{net}.net', '-o', self.command[0]], check=True, cwd=folder)
        self.compile_s = time.perf_counter() - start
        runs = [self.run(1) for _ in range(10)]
        self.start_ms, self.guess = min(run['start_ms'] for run in runs), runs[-1]['median_ms']
        self.minima, self.medians, self.peak_kb = [], [], 0

    def run(self, steps):
        return json.loads(subprocess.run([*self.command, str(steps)], check=True, capture_output=True, text=True).stdout)

    def round(self, seconds):
        answer = self.run(max(3, min(200000, int(seconds * 1e3 / self.guess))))
        self.guess = answer['median_ms']
        self.minima.append(answer['min_ms'])
        self.medians.append(answer['median_ms'])
        self.peak_kb = max(self.peak_kb, answer['peak_kb'])
        self.planned = answer['planned_bytes']


def compare(net, args, folder):
    program = Program(args.mlc, net, args.threads, folder)
    peers = [Peer(engine, net, args.threads, args.patience) for engine in args.peers.split(',') if engine]
    for _ in range(args.rounds):
        program.round(args.seconds)
        for peer in peers:
            if not peer.dead:
                peer.round(args.seconds)
    for peer in peers:
        peer.close()
    return program, peers


def show(net, program, peers):
    least, median = min(program.minima), statistics.median(program.medians)
    print(f'{net:9}{"mlc":9}{least:11.4f}{median:11.4f}{"":16}{program.peak_kb / 1024:9.1f}{"":8}{program.start_ms / 1e3:10.4f}'
          f'   compiled in {program.compile_s:.1f} s, {program.planned / 2**20:.1f} MiB planned')
    for peer in peers:
        if peer.dead:
            print(f'{"":9}{peer.engine:9}   {peer.dead}')
            continue
        low, middle = min(peer.ms), statistics.median(peer.ms)
        print(f'{"":9}{peer.engine:9}{low:11.4f}{middle:11.4f}{least / low:8.2f}{median / middle:8.2f}{peer.peak_kb / 1024:9.1f}'
              f'{program.peak_kb / peer.peak_kb:8.3f}{peer.first_step_s:10.1f}')
    alive = [peer for peer in peers if not peer.dead]
    if alive:
        low, middle = min(min(p.ms) for p in alive), min(statistics.median(p.ms) for p in alive)
        small = min(p.peak_kb for p in alive)
        print(f'{"":9}{"to the best of these":31}{least / low:8.2f}{median / middle:8.2f}{"":9}{program.peak_kb / small:8.3f}')
    sys.stdout.flush()


def processor():
    with open('/proc/cpuinfo') as file:
        return next((line.split(':', 1)[1].strip() for line in file if line.startswith('model name')), platform.machine())


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return 'not there'


def main():
    args = arguments()
    cores = sorted(os.sched_getaffinity(0))
    if args.threads == 1:
        os.sched_setaffinity(0, {cores[-1]})
    compiler = subprocess.run(['cc', '--version'], capture_output=True, text=True).stdout.split('\n')[0]
    mlc = subprocess.run([args.mlc, '--version'], capture_output=True, text=True).stdout.strip()
    print(f'{time.strftime("%Y-%m-%d %H:%M")}  {processor()}, {len(cores)} cores, load {os.getloadavg()[0]:.1f} before; '
          f'{args.threads} thread(s)')
    print(f'{mlc}; {compiler}; torch {version("torch")}, jax {version("jax")}, Python {platform.python_version()}')
    print('milliseconds a training step (forward, backward, AdamW); ratio: mlc to the peer; memory: most in use, MiB; '
          'start: seconds to the first step (peers: and through it)')
    print(f'{"net":9}{"":9}{"min":>11}{"median":>11}{"ratio":>8}{"ratio":>8}{"memory":>9}{"ratio":>8}{"start s":>10}')
    with tempfile.TemporaryDirectory() as folder:
        for net in args.nets.split(','):
            show(net, *compare(net, args, pathlib.Path(folder)))


main()
