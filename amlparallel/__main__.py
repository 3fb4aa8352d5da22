"""``python -m amlparallel``: one node of a parallel step; the first one's exit status is the step's."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from amlparallel import inputs, messages
from amlparallel.master import Master, Server, Slot, last, say


def main(argv: list[str]) -> int:
    """Runs one node; 0 when the step went well, 1 when it failed, 2 when it cannot be run."""
    settings = inputs.read(argv)
    node, nodes = int(os.environ.get("NODE_RANK") or 0), int(os.environ.get("WORLD_SIZE") or 1)
    host, port = os.environ.get("MASTER_ADDR") or "127.0.0.1", int(os.environ.get("MASTER_PORT") or 0)
    if node:
        slots = _started(settings, (host, port), node)
        for slot in slots:
            slot.join()
        lost = next((slot.lost for slot in slots if slot.lost), None)
        if lost:
            sys.stderr.write(f"ConnectionError: {lost}\n")
        return 1 if lost else 0
    try:
        batches = inputs.split(settings)
    except (inputs.InputError, inputs.TableError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}.\n")
        return 2
    return _lead(settings, batches, (host, port), nodes)


def _lead(settings: inputs.StepSettings, batches: list[inputs.MiniBatch], address: tuple[str, int], nodes: int) -> int:
    """The first node."""
    master = Master(settings, batches, nodes * settings.workers)
    server = Server(address, master)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say(f"{len(batches)} mini-batches, {nodes} node(s) with {settings.workers} process(es) each")
    if settings.ignored:
        say(f"of no effect on the sandbox: {', '.join(settings.ignored)}")
    slots = _started(settings, (address[0], int(server.server_address[1])), 0)
    reason = master.wait()
    for slot in slots:
        if reason is None:
            slot.join()
        else:
            slot.stop()
    _write(master, reason)
    if reason is None:
        if settings.append_row_to:
            messages.write_results(settings.append_row_to, master.rows())
        return 0
    first = master.failed[min(master.failed)] if master.failed else ""
    sys.stdout.flush()
    sys.stderr.write(f"{first.rstrip()}\n" if first else "")
    sys.stderr.write(f"ParallelRunError: {reason}{'. The first: ' + last(first) if first else ''}\n")
    sys.stderr.flush()
    os._exit(1)  # threads may still wait for processes that were ended


def _started(settings: inputs.StepSettings, address: tuple[str, int], node: int) -> list[Slot]:
    slots = [Slot(settings, address, node, number) for number in range(settings.workers)]
    for slot in slots:
        slot.start()
    return slots


def _write(master: Master, reason: object) -> None:
    """The overview and the errors, under the names that Azure ML has for them."""
    logs = Path("logs")
    logs.joinpath("user").mkdir(parents=True, exist_ok=True)
    lines = [
        f"mini-batches: {master.total}",
        f"ended: {master.ended}",
        f"failed: {len(master.failed)}",
        f"items processed: {master.processed}",
        f"items failed: {master.failed_items}",
    ]
    logs.joinpath("job_progress_overview.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = "The parallel step completed." if reason is None else f"The parallel step failed: {reason}."
    logs.joinpath("job_result.txt").write_text(result + "\n", encoding="utf-8")
    if master.failed:
        failed = [f"mini-batch {index}: {text.rstrip()}" for index, text in sorted(master.failed.items())]
        logs.joinpath("user", "error.txt").write_text("\n\n".join(failed) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
