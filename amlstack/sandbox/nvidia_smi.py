"""``python -I -S nvidia_smi.py WORDS…`` stands in for nvidia-smi: commands count GPUs with it, or look for it.

It needs nothing but the standard library. It lists as many GPUs as the node is taken to have, and knows no more.
"""

import os
import sys

NAME = "CPU (no GPU in this rehearsal)"


def answer(words: list[str], count: int) -> str:
    """The text that is printed.

    Args:
        words: Its arguments: ``-L``, ``--query-gpu=…`` with ``--format=csv[,noheader]``, or others.
        count: GPUs that the node is taken to have.
    """
    query = next((word.partition("=")[2] for word in words if word.startswith(("--query-gpu=", "--query-gpus="))), "")
    if "-L" in words or "--list-gpus" in words:
        lines = [f"GPU {index}: {NAME} (UUID: GPU-{index:032x})" for index in range(count)]
    elif query:
        fields = [field.strip() for field in query.split(",")]
        plain = any("noheader" in word for word in words)
        lines = [] if plain else [", ".join(fields)]
        for index in range(count):
            known = {
                "index": str(index),
                "count": str(count),
                "uuid": f"GPU-{index:032x}",
                "name": NAME,
                "gpu_name": NAME,
            }
            lines.append(", ".join(known.get(field, "[N/A]") for field in fields))
    else:
        lines = [f"no GPU here: a rehearsal on the CPU, with {count} GPU(s) on each node as the job counts them"]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(answer(sys.argv[1:], int(os.environ.get("AMLSTACK_SANDBOX_GPUS") or "1")))
