"""A line fitted by two ranks with DistributedDataParallel: ends with 1 unless the loss falls and both ranks agree."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train, and compare."""
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.rand(64, 1)
    losses = []
    for step in range(50):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), 2 * x + 1)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if dist.get_rank() == 0 and step % 10 == 9:
            print(f"step {step + 1} loss {losses[-1]:.4f}", flush=True)
    weight = model.module.weight.detach().clone()
    dist.all_reduce(weight)
    agree = torch.allclose(weight / dist.get_world_size(), model.module.weight)
    dist.destroy_process_group()
    if not agree or losses[-1] >= losses[0]:
        raise SystemExit("the ranks disagree, or the loss did not fall")


if __name__ == "__main__":
    main()
