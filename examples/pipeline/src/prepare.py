"""Makes the data of a linear regression: a part to train on, a part to judge by."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

FEATURES = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()

    source = torch.Generator().manual_seed(7)
    truth = torch.randn(FEATURES, 1, generator=source)
    for part in ("train", "test"):
        features = torch.randn(arguments.samples, FEATURES, generator=source)
        torch.save({"features": features, "targets": features @ truth}, arguments.data / f"{part}.pt")
    print(f"{arguments.samples} samples to train on, as many to judge by")


if __name__ == "__main__":
    main()
