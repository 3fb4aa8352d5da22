"""A tiny language model under the transformers Trainer, made from a configuration: nothing is downloaded.

The text is counting modulo a few bases, so that the next number can be learnt.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

WORDS, LENGTH, SAMPLES, LOG_EVERY = 16, 24, 4096, 15


class Counting(Dataset[dict[str, torch.Tensor]]):
    """Numbers that go up by one and start anew after WORDS."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        words = (torch.arange(LENGTH) + index) % WORDS
        return {"input_ids": words, "labels": words}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--world-size", type=int, help="fail unless exactly so many ranks take part")
    arguments = parser.parse_args()

    set_seed(7)
    config = GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=32, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    settings = TrainingArguments(
        output_dir="checkpoints",
        max_steps=arguments.steps,
        per_device_train_batch_size=8,
        learning_rate=5e-3,
        logging_steps=LOG_EVERY,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
        ddp_backend="nccl" if torch.cuda.is_available() else "gloo",
    )
    if arguments.world_size not in (None, settings.world_size):
        raise SystemExit(f"{settings.world_size} ranks take part, {arguments.world_size} were asked for")
    print(f"rank {settings.process_index} of {settings.world_size} on {settings.device}", flush=True)
    trainer = Trainer(model=GPT2LMHeadModel(config), args=settings, train_dataset=Counting())
    trainer.train()
    if trainer.is_world_process_zero():
        losses = [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]
        for number, loss in enumerate(losses, 1):
            print(f"step {number * LOG_EVERY}/{arguments.steps} loss {loss:.4f}", flush=True)
        if losses[-1] >= losses[0]:
            raise SystemExit(f"the loss did not fall: {losses[0]:.4f} to {losses[-1]:.4f}")
        Path("outputs").mkdir(exist_ok=True)
        metrics = {"world_size": settings.world_size, "loss": losses[-1], "losses": losses}
        Path("outputs/metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
