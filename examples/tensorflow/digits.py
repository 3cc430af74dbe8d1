#!/usr/bin/env python3
"""Trains a convolutional network of Keras on handwritten digits, on GPU:0 where there is one.

``docs/guide/run-a-tensorflow-program.md`` says how to run it.
"""

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf

TRAINING_IMAGES = 1347  # the first ones; the rest, by other writers, is never trained on

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--cpu", action="store_true", help="on the CPU, for comparison")
parser.add_argument("--epochs", type=int, default=4)
arguments = parser.parse_args()
if arguments.cpu:
    tf.config.set_visible_devices([], "GPU")
tf.config.set_soft_device_placement(False)  # what a device cannot compute is an error
device = "GPU:0" if tf.config.get_visible_devices("GPU") else "CPU:0"

table = np.loadtxt(Path(__file__).parents[1] / "digits" / "optdigits.csv.gz", delimiter=",", dtype="float32")
images, labels = table[:, :64].reshape(-1, 8, 8, 1) / 16, table[:, 64].astype("int32")
training = images[:TRAINING_IMAGES], labels[:TRAINING_IMAGES]
others = images[TRAINING_IMAGES:], labels[TRAINING_IMAGES:]

layers = tf.keras.layers
with tf.device(device):
    model = tf.keras.Sequential(
        [
            layers.Conv2D(16, 3, activation="relu", input_shape=(8, 8, 1)),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
            layers.Dense(10),
        ]
    )
random = np.random.default_rng(1)  # the same numbers on each device
model.set_weights([random.normal(0, 0.2, each.shape) * (each.ndim > 1) for each in model.get_weights()])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.Adam(0.004), loss, metrics=["accuracy"])
model.fit(*training, batch_size=64, epochs=arguments.epochs, shuffle=False, verbose=0)
lost, accuracy = model.evaluate(*others, batch_size=450, verbose=0)
print(f"{device}: {accuracy:.1%} of {len(others[0])} images are read right, loss {lost:.4f}")
