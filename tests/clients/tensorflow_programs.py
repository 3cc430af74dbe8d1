"""Programs of TensorFlow, run by test_tensorflow.py: ``tensorflow_programs.py NAME [SECONDS]``.

The Python that runs it has TensorFlow and its DirectML plugin. The last line that it prints is JSON.
"""

import json
import sys
import threading
import time

import numpy as np
import tensorflow as tf

tf.config.set_soft_device_placement(False)  # what a device cannot compute is an error
layers = tf.keras.layers
GPU, CPU = "/GPU:0", "/CPU:0"


def devices():
    """The names of the devices that are no CPUs."""
    return [each.name for each in tf.config.list_physical_devices("GPU")]


def operations():
    """What operations give, each with the device of its result."""
    with tf.device(GPU):
        a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        counter = tf.Variable([1.0, 1.0])
        for _ in range(3):
            counter.assign_add([1.0, 2.0])  # in place; the operator is released before it is recorded
        found = {
            "identity": tf.identity(a),
            "add": a + a,
            "matmul": tf.matmul(a, a),
            "relu": tf.nn.relu(a - 2.0),
            "assign_add": counter.read_value(),
        }
    return {name: [each.device.rpartition("/")[2], each.numpy().tolist()] for name, each in found.items()}


def _lstm(device):
    # The plugin has no CudnnRNN, which layers.LSTM asks for on every GPU, nor what other initializers need.
    from_zero = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}
    with tf.device(device):
        model = tf.keras.Sequential(
            [
                layers.RNN(layers.LSTMCell(12, **from_zero), return_sequences=True, input_shape=(9, 5)),
                layers.RNN(layers.LSTMCell(7, **from_zero)),
                layers.Dense(3),
            ]
        )
        random = np.random.default_rng(2)
        model.set_weights([random.normal(0, 0.3, each.shape) for each in model.get_weights()])
        inputs = tf.constant(random.normal(0, 1, (4, 9, 5)).astype("float32"))
        return tf.function(model)(inputs).numpy()


def lstm():
    """The largest value that an LSTM predicts, and the largest difference to the CPU."""
    ours, theirs = _lstm(GPU), _lstm(CPU)
    return [float(np.abs(theirs).max()), float(np.abs(ours - theirs).max())]


def threads():
    """Rounds of three threads that compute, and of a pipeline with prefetching; the first wrong value."""
    end, rounds, wrong = time.monotonic() + float(sys.argv[2]), [0] * 4, []

    def check(thread, got, expected):
        if not np.array_equal(got, expected):
            wrong.append([thread, got.tolist(), expected.tolist()])
        rounds[thread] += 1

    def compute(thread):
        random = np.random.default_rng(thread)
        while time.monotonic() < end and not wrong:
            a, b = random.integers(-4, 5, (2, 8 + thread, 8 + thread)).astype("float32")
            with tf.device(GPU):
                x, y = tf.constant(a), tf.constant(b)
                check(thread, (tf.matmul(x, y) + x).numpy(), a @ b + a)

    @tf.function
    def step(batch):
        with tf.device(GPU):
            return tf.matmul(batch, batch) + batch

    def stream():
        batches = np.arange(64 * 16, dtype="float32").reshape(64, 4, 4) % 7
        while time.monotonic() < end and not wrong:
            data = tf.data.Dataset.from_tensor_slices(batches).map(lambda each: each + 1).prefetch(4)
            data = data.apply(tf.data.experimental.prefetch_to_device(GPU))
            for batch, expected in zip(data, batches + 1):  # noqa: B905 (Python 3.9)
                check(3, step(batch).numpy(), expected @ expected + expected)
                if time.monotonic() > end:
                    break

    running = [threading.Thread(target=compute, args=(each,)) for each in range(3)]
    running.append(threading.Thread(target=stream))
    for each in running:
        each.start()
    for each in running:
        each.join()
    return [rounds, wrong[:1]]


print(json.dumps({each.__name__: each for each in (devices, operations, lstm, threads)}[sys.argv[1]]()))
