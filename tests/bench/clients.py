"""What PyTorch's and TensorFlow's DirectML devices take, beside the CPU device of the same process.

``clients.py PYTHON ...`` runs itself under ``dmlemu exec`` in each of the Pythons, which have torch_directml
or TensorFlow's plugin installed, and prints a table for each: microseconds of wall time and, in brackets, of
CPU time of all threads; each the least of many rounds, in which the devices take turns.  ``--only WORD``
selects cases.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time

MOST_ROUNDS, LEAST_ROUNDS = 40, 5
SECONDS = 12.0  # for a case, all devices together
RESNET_BLOCKS = ((64, 3), (128, 4), (256, 6), (512, 3))  # filters and number


class Case:
    """What is done ``count`` times on a device; ``run`` returns once the results are there."""

    def __init__(self, name, count, run):
        self.name, self.count, self.run = name, count, run


# --- PyTorch ---


def torch_resnet50(torch):
    """ResNet-50 as its authors describe it, with random weights."""
    nn = torch.nn

    def convolution(inputs, outputs, size, stride=1):
        layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
        return nn.Sequential(layer, nn.BatchNorm2d(outputs))

    class Block(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.body = nn.Sequential(
                convolution(inputs, width, 1),
                nn.ReLU(),
                convolution(width, width, 3, stride),
                nn.ReLU(),
                convolution(width, 4 * width, 1),
            )
            changes = stride != 1 or inputs != 4 * width
            self.shortcut = convolution(inputs, 4 * width, 1, stride) if changes else nn.Identity()

        def forward(self, x):
            return torch.relu(self.body(x) + self.shortcut(x))

    layers = [convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, number in RESNET_BLOCKS:
        for at in range(number):
            layers.append(Block(inputs, width, 2 if at == 0 and width > 64 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)).eval()


def torch_cases(torch, device):
    def many(function, count):
        def run():
            for _ in range(count):
                result = function()
            return result.cpu()

        return run

    small = torch.rand(4, 4).to(device)
    bytes_4k = torch.rand(1024)
    yield Case("add 4x4", 200, many(lambda: small + small, 200))
    yield Case("add 4x4 and read back", 50, many(lambda: (small + small).cpu(), 50))
    yield Case("upload 4 KB", 100, many(lambda: bytes_4k.to(device), 100))
    for size in (64, 256, 1024):
        a, b = (torch.rand(size, size).to(device) for _ in range(2))
        count = 4 if size == 1024 else 50
        yield Case(f"matmul {size}x{size}", count, many(lambda a=a, b=b: a @ b, count))
    model = torch_resnet50(torch).to(device)
    image = torch.rand(1, 3, 224, 224).to(device)
    yield Case("ResNet-50, one image", 1, many(lambda: model(image), 1))


def torch_devices():
    import torch
    import torch_directml

    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    devices = {"CPU": torch.device("cpu"), "DirectML": torch_directml.device()}
    return f"PyTorch {torch.__version__}", {
        name: list(torch_cases(torch, each)) for name, each in devices.items()
    }


# --- TensorFlow ---


def tensorflow_cases(tf, device):
    import numpy

    def many(function, count):
        def run():
            with tf.device(device):
                for _ in range(count):
                    result = function()
                return result if isinstance(result, numpy.ndarray) else result.numpy()

        return run

    def on_device(*shape):
        with tf.device(device):
            return tf.identity(tf.random.stateless_uniform(shape, seed=(1, 2)))

    small = on_device(4, 4)
    bytes_4k = numpy.random.default_rng(1).random(1024, dtype=numpy.float32)
    yield Case("add 4x4", 200, many(lambda: tf.add(small, small), 200))
    yield Case("add 4x4 and read back", 50, many(lambda: tf.add(small, small).numpy(), 50))
    yield Case("upload 4 KB", 100, many(lambda: tf.convert_to_tensor(bytes_4k), 100))
    for size in (64, 256, 1024):
        a, b = on_device(size, size), on_device(size, size)
        count = 4 if size == 1024 else 50
        yield Case(f"matmul {size}x{size}", count, many(lambda a=a, b=b: tf.matmul(a, b), count))
    with tf.device(device):
        model = tf.keras.applications.ResNet50(weights=None)
    image = on_device(1, 224, 224, 3)
    yield Case("ResNet-50, one image, eager", 1, many(lambda: model(image, training=False), 1))
    compiled = tf.function(lambda image: model(image, training=False))
    yield Case("ResNet-50, one image, tf.function", 1, many(lambda: compiled(image), 1))


def tensorflow_devices():
    import tensorflow as tf

    tf.random.set_seed(1)
    devices = {"CPU": "/CPU:0", "DirectML": "/GPU:0"}
    assert tf.config.list_physical_devices("GPU"), "the plugin lists no device"
    return f"TensorFlow {tf.__version__}", {
        name: list(tensorflow_cases(tf, each)) for name, each in devices.items()
    }


# --- measuring ---


def timed(run):
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(cases):
    """Microseconds of wall and CPU time, the least of rounds in which the devices take turns."""
    for case in cases.values():
        case.run()
        case.run()
    least = {name: (float("inf"), float("inf")) for name in cases}
    end = time.monotonic() + SECONDS
    for at in range(MOST_ROUNDS):
        if at >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for name, case in cases.items():
            least[name] = tuple(map(min, least[name], timed(case.run)))
    return {name: [1e6 * each / cases[name].count for each in least[name]] for name in cases}


def work(only):
    """In a Python with one of the packages: prints a line of JSON for each case."""
    of_torch = importlib.util.find_spec("torch_directml") is not None
    title, devices = torch_devices() if of_torch else tensorflow_devices()
    print(json.dumps({"title": title}), flush=True)
    for rows in zip(*devices.values(), strict=True):
        if only in rows[0].name:
            row = {"case": rows[0].name, **measure(dict(zip(devices, rows, strict=True)))}
            print(json.dumps(row), flush=True)


def show(line):
    row = json.loads(line)
    if "title" in row:
        print(f"\n{row['title']}\n{'':36} {'CPU':>20} {'DirectML':>20} {'ratio':>14}")
        return
    cpu, ours = row["CPU"], row["DirectML"]
    times = [f"{wall:,.0f} ({process:,.0f})" for wall, process in (cpu, ours)]
    ratio = f"{ours[0] / cpu[0]:.2f} ({ours[1] / cpu[1]:.2f})"
    print(f"{row['case']:36} {times[0]:>20} {times[1]:>20} {ratio:>14}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.only)
        return
    for python in options.pythons:
        command = [sys.executable, "-m", "dmlemu", "exec", python, __file__, "--work", "--only", options.only]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as done:
            for line in done.stdout:
                if line.startswith("{"):
                    show(line)


if __name__ == "__main__":
    main()
