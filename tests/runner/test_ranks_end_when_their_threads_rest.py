"""Threads of gloo free tensors of Python after a transfer: a process that ended before that would be aborted."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from amlstack.base.paths import PROJECT


def printed(program: str) -> str:
    """The output of a Python that starts as a rank's does, in a process of its own: the shim changes imports."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=False, cwd=PROJECT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_thread_that_computes_is_seen_and_one_that_waits_is_not() -> None:
    program = """
        import hashlib, threading
        from amlcpu import communication

        begun, enough, data = threading.Event(), threading.Event(), bytes(1 << 20)

        def compute():
            while not enough.is_set():
                hashlib.sha256(data)  # without the interpreter's lock, as gloo's threads
                begun.set()

        def rest():
            begun.set()
            enough.wait()

        for work in (compute, rest):
            begun.clear(), enough.clear()
            thread = threading.Thread(target=work)
            thread.start()
            begun.wait()
            if work is rest:
                communication.wait_for_threads()  # it may not have reached its wait yet
            print(any(communication.others_run() for _ in range(1000)))
            enough.set()
            thread.join()
    """
    assert printed(program).split() == ["True", "False"]


def test_an_end_waits_until_two_looks_in_a_row_find_nobody() -> None:
    program = """
        from amlcpu import communication

        looks = iter([True, False, True, True, False, False, None])
        communication.wait_for_threads(running=lambda: next(looks))
        print(next(looks))
    """
    assert printed(program).split() == ["None"]


def test_an_end_does_not_wait_for_ever() -> None:
    program = """
        import itertools
        from amlcpu import communication

        clock, looks = itertools.count(0.0, 0.5), itertools.count(1)
        communication.wait_for_threads(running=lambda: bool(next(looks)), clock=lambda: next(clock))
        print(next(looks) - 1)
    """
    # The clock starts at 0, and is read before each look: at 0.5, 1.0, 1.5 and, in vain, at 2.0.
    assert printed(program).split() == ["3"]


def test_a_process_waits_once_at_its_end_however_many_groups_it_makes() -> None:
    program = """
        import types
        from amlcpu import communication

        made = []
        torch = types.ModuleType("torch.distributed")
        torch.init_process_group = lambda backend, **more: made.append(backend)
        torch.new_group = torch.destroy_process_group = lambda *more, **named: None
        communication._groups(torch)
        waited = []
        communication.atexit = types.SimpleNamespace(register=waited.append)
        torch.init_process_group("nccl")
        torch.init_process_group("gloo")
        print(made, len(waited))
    """
    assert printed(program).strip() == "['gloo', 'gloo'] 1"


def test_a_group_ends_after_its_threads() -> None:
    program = """
        import types
        from amlcpu import communication

        order = []
        torch = types.ModuleType("torch.distributed")
        torch.init_process_group = torch.new_group = lambda: None
        torch.destroy_process_group = lambda group=None: order.append(group)
        communication.wait_for_threads = lambda: order.append("waited")
        communication._groups(torch)
        torch.destroy_process_group("the group")
        print(order)
    """
    assert printed(program).strip() == "['waited', 'the group']"
