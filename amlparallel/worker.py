"""One worker process: calls ``init()`` once, ``run(mini_batch)`` for each mini-batch, ``shutdown()`` at the end.

It reads what to do from stdin, and answers on the descriptor that it is started with; what the entry script prints goes
to the process's own log files.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import logging
import os
import sys
import traceback
from typing import Any

from amlparallel import inputs, messages


class MiniBatchContext:
    """The second argument of ``run()``, where it takes one.

    Attributes:
        mini_batch_id: The mini-batch's number as text.
        minibatch_index: The same.
        partition_key_value: Of a table split by columns, their values; else None.
    """

    def __init__(self, index: int, keys: Any) -> None:
        self.mini_batch_id = str(index)
        self.minibatch_index = str(index)
        self.partition_key_value = keys


def main(argv: list[str]) -> int:
    """Serves until stdin ends: the answers' descriptor, the name of the process, then a JSON object of settings."""
    answers = os.fdopen(int(argv[0]), "wb")
    settings = json.loads(argv[1])
    orders = os.fdopen(os.dup(0), "rb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    logging.getLogger("EntryScript").setLevel(settings["level"])
    if settings["log"]:
        handler = logging.FileHandler(settings["log"], delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s|%(levelname)s|%(name)s|%(message)s"))
        logging.getLogger("EntryScript").addHandler(handler)
    try:
        module = _load(settings["entry_script"], settings["program"])
        if hasattr(module, "init"):
            module.init()
    except BaseException:  # noqa: BLE001 - SystemExit too: an entry script may call sys.exit
        sys.stdout.flush()
        messages.send(answers, ready=False, error=_shown())
        return 1
    messages.send(answers, ready=True)
    while (order := messages.receive(orders)) is not None:
        messages.send(answers, **_one(module, settings["input_data"], order))
    if hasattr(module, "shutdown"):
        module.shutdown()
    return 0


def _one(module: Any, place: str, order: messages.Message) -> messages.Message:
    """Runs one mini-batch; what became of it."""
    wanted: int | None = None
    try:
        given, context = _mini_batch(place, order)
        wanted = len(given)
        two = len(inspect.signature(module.run).parameters) > 1
        returned = module.run(given, context) if two else module.run(given)
        items, text = messages.items_of(returned)
    except BaseException:  # noqa: BLE001 - SystemExit too: an entry script may call sys.exit
        return {"wanted": wanted, "error": _shown()}
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return {"wanted": wanted, "items": items, "text": text}


def _mini_batch(place: str, order: messages.Message) -> Any:
    """The argument of ``run()``, and its context."""
    if not order["table"]:
        return [os.path.join(place, file) if file else place for file in order["files"]], MiniBatchContext(
            order["number"], None
        )
    table = inputs.find(place)
    if table is None:
        raise inputs.TableError("the MLTable has gone")
    rows = inputs.frame(table, order["files"], order["part"], order["parts"])
    keys = order["keys"]
    if keys:
        rows = inputs.of_group(rows, keys)
        keys = {name: _plain(rows[name].iloc[0]) for name in keys}
    return rows, MiniBatchContext(order["number"], keys)


def _plain(value: Any) -> Any:
    """A value of numpy as Python's own."""
    return value.item() if hasattr(value, "item") else value


def _load(entry_script: str, program: list[str]) -> Any:
    path = os.path.abspath(entry_script)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"the entry script {entry_script} is not in the step's code")
    sys.argv = [path, *program]
    for folder in (os.getcwd(), os.path.dirname(path)):
        if folder in sys.path:
            sys.path.remove(folder)
        sys.path.insert(0, folder)
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"the entry script {entry_script} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "run", None)):
        raise AttributeError(f"the entry script {entry_script} has no function run(mini_batch)")  # noqa: TRY004
    return module


def _shown() -> str:
    """The exception with the frames of the entry script, not ours."""
    text = traceback.format_exc()
    sys.stderr.write(text)
    sys.stderr.flush()
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
