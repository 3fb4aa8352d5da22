"""Regression with ParameterServerStrategy: variables on a parameter server, steps on workers, one coordinator.

Azure ML's TF_CONFIG knows workers and parameter servers. TensorFlow 2 wants a coordinator too: the first worker is it.
It takes another port for that; on its own the other workers hold a connection, to learn when the training is over.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import tensorflow as tf

FEATURES, BATCH, STEPS, RATE, PATIENCE = 16, 64, 30, 0.02, 120


def serve(cluster: tf.train.ClusterSpec, task: str, index: int, coordinator: tuple[str, int]) -> None:
    """Works for the coordinator until it is gone."""
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            line = socket.create_connection(coordinator, timeout=5)
            break
        except OSError:
            if time.monotonic() > ends:
                raise SystemExit(f"no coordinator at {coordinator} within {PATIENCE} s") from None
            time.sleep(0.2)
    line.settimeout(None)
    server = tf.distribute.Server(cluster, job_name=task, task_index=index, protocol="grpc")
    print(f"{task} {index} at {server.target}", flush=True)
    with contextlib.suppress(ConnectionResetError):
        line.recv(1)  # never answered, only ended


def coordinate(servers: dict[str, list[str]], host: str, epochs: int) -> list[float]:
    """Trains; the mean loss of each epoch."""
    with socket.create_server((host, 0)) as free:
        chief = f"{host}:{free.getsockname()[1]}"
    cluster = tf.train.ClusterSpec({"chief": [chief], **servers})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster, task_type="chief", task_id=0, rpc_layer="grpc"
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable(tf.zeros((FEATURES, 1)))
    truth = tf.random.stateless_normal((FEATURES, 1), seed=(7, 7))

    @tf.function
    def step(seed: tf.Tensor) -> Any:
        def replica(seed: tf.Tensor) -> tf.Tensor:
            features = tf.random.stateless_normal((BATCH, FEATURES), seed=seed)
            targets = features @ truth + 0.1 * tf.random.stateless_normal((BATCH, 1), seed=seed + 1)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(features @ weights - targets))
            weights.assign_sub(RATE * tape.gradient(loss, weights))
            return loss

        return strategy.run(replica, args=(seed,))

    losses = []
    for epoch in range(epochs):
        futures = [coordinator.schedule(step, args=(tf.constant([epoch, 2 * number]),)) for number in range(STEPS)]
        coordinator.join()
        losses.append(float(sum(coordinator.fetch(futures)) / STEPS))
        print(f"epoch {epoch + 1}/{epochs} loss {losses[-1]:.4f}", flush=True)
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--world-size", type=int, help="fail unless exactly so many workers take part")
    arguments = parser.parse_args()

    config = json.loads(os.environ["TF_CONFIG"])
    task, index = config["task"]["type"], config["task"]["index"]
    first, *others = config["cluster"]["worker"]
    if arguments.world_size not in (None, 1 + len(others)):
        raise SystemExit(f"{1 + len(others)} workers take part, {arguments.world_size} were asked for")
    host, port = first.rsplit(":", 1)
    servers = {"worker": others, "ps": config["cluster"]["ps"]}
    cluster = tf.train.ClusterSpec(servers)
    del os.environ["TF_CONFIG"]  # TensorFlow shall take the cluster as it is named here
    if task == "ps":
        server = tf.distribute.Server(cluster, job_name="ps", task_index=index, protocol="grpc")
        print(f"parameter server {index} at {server.target}", flush=True)
        server.join()  # for ever: the service ends it
    elif index > 0:
        serve(cluster, "worker", index - 1, (host, int(port)))
    else:
        with socket.create_server((host, int(port)), backlog=len(others)):  # closed when this is over
            losses = coordinate(servers, host, arguments.epochs)
            if losses[-1] >= losses[0]:
                raise SystemExit(f"the loss did not fall: {losses[0]:.4f} to {losses[-1]:.4f}")
            Path("outputs").mkdir(exist_ok=True)
            metrics = {"world_size": 1 + len(others), "loss": losses[-1], "losses": losses}
            Path("outputs/metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")


if __name__ == "__main__":
    main()
