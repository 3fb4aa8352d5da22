"""Regression under MultiWorkerMirroredStrategy, which finds the other workers in TF_CONFIG."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import tensorflow as tf

FEATURES, BATCH, STEPS, RATE = 16, 64, 30, 0.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--world-size", type=int, help="fail unless exactly so many workers take part")
    arguments = parser.parse_args()

    config = json.loads(os.environ["TF_CONFIG"])
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    workers, index = len(config["cluster"]["worker"]), config["task"]["index"]
    if arguments.world_size not in (None, workers):
        raise SystemExit(f"{workers} workers take part, {arguments.world_size} were asked for")
    print(f"worker {index} of {workers}, {strategy.num_replicas_in_sync} replicas in all", flush=True)

    truth = tf.random.stateless_normal((FEATURES, 1), seed=(7, 7))
    points = tf.random.Generator.from_seed(100 + index)  # every worker draws its own share of the data
    with strategy.scope():
        weights = tf.Variable(tf.zeros((FEATURES, 1)))

    def step(features: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(features @ weights - targets))
        gradient = tape.gradient(loss, weights)
        context = tf.distribute.get_replica_context()
        weights.assign_sub(RATE * context.all_reduce(tf.distribute.ReduceOp.MEAN, gradient))
        return loss

    @tf.function
    def epoch(features: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        total = tf.zeros(())
        for number in tf.range(STEPS):
            one = strategy.run(step, args=(features[number], targets[number]))
            total += strategy.reduce(tf.distribute.ReduceOp.MEAN, one, axis=None)
        return total / STEPS

    losses = []
    for number in range(arguments.epochs):
        features = points.normal((STEPS, BATCH, FEATURES))
        targets = features @ truth + 0.1 * points.normal((STEPS, BATCH, 1))
        losses.append(float(epoch(features, targets)))
        if index == 0:
            print(f"epoch {number + 1}/{arguments.epochs} loss {losses[-1]:.4f}", flush=True)
    if index == 0:
        if losses[-1] >= losses[0]:
            raise SystemExit(f"the loss did not fall: {losses[0]:.4f} to {losses[-1]:.4f}")
        Path("outputs").mkdir(exist_ok=True)
        metrics = {"world_size": workers, "loss": losses[-1], "losses": losses}
        Path("outputs/metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")


if __name__ == "__main__":
    main()
