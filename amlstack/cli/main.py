"""The console script: finds a verb's module and runs it. Nothing heavy is imported before the verb is known."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.base import startup
from amlstack.base.text import Shield, did_you_mean, output

if TYPE_CHECKING:
    import typer


class Verb(NamedTuple):
    """One verb of the command line.

    Attributes:
        target: ``module:name`` of a function that may return an exit status, or of a `typer.Typer` of several.
        help: One line for ``amlstack --help``.
    """

    target: str
    help: str


_VERBS = {
    "init": ("repository:init", "Make a repository for a team: a stack and a first job."),
    "add": ("adding:add", "Add a job, cluster, environment, schedule or stack."),
    "upgrade": ("repository:upgrade", "Take a newer version of amlstack, and see what changes."),
    "up": ("stacks:up", "Bring up a stack: the sandbox's own, or any other."),
    "down": ("stacks:down", "Destroy a stack: the sandbox's own with all it wrote, or any other."),
    "drift": ("stacks:drift", "Find differences between Azure and what a stack deployed."),
    "import-ids": ("stacks:import_ids", "Write the import file for existing resources that a stack takes over."),
    "doctor": ("doctor:doctor", "Look at this machine and at Azure: why does it not work?"),
    "check": ("check:check", "Validate job files and print everything that is wrong."),
    "show": ("rehearse:show", "Show what a job file becomes: plan, request body, YAML or command."),
    "graph": ("rehearse:graph", "Draw a stack: data, jobs, clusters, who waits for whom."),
    "rehearse": ("rehearse:rehearse", "Run a job file on the sandbox, stream its rank logs, exit like the job."),
    "migrate": ("migrate:migrate", "Turn files of SDK v1 into job files, settings and patches of v2."),
    "submit": ("transfer:submit", "Submit a job file to a workspace, as its stack would."),
    "resubmit": ("runs:resubmit", "Submit a run once more, with some values changed."),
    "status": ("runs:status", "Show the jobs of a workspace, and why one waits."),
    "compare": ("runs:compare", "Show runs side by side: inputs, metrics, time and cost."),
    "logs": ("runs:logs", "Print the logs of a job: all ranks, also while it runs."),
    "shell": ("diagnosis:shell", "Open a shell on a node of a job that runs on the sandbox."),
    "forward": ("diagnosis:forward", "Print the address of a port on which a job listens."),
    "cancel": ("runs:cancel", "Cancel a job and wait for its end."),
    "download": ("transfer:download", "Download logs, files and named outputs of a job."),
    "open": ("runs:open_studio", "Print where the studio shows a job or the workspace."),
    "schema": ("catalogue:schema", "The JSON Schema of YAML job files, for editors."),
    "sizes": ("catalogue:sizes", "The VM sizes that the catalogue knows: GPUs, fabric, retirement."),
    "environments": ("catalogue:environments_app", "The curated environments, and what each really contains."),
    "diagnose": ("diagnosis:diagnose", "Name the first true cause in the logs of a distributed run."),
    "report": ("diagnosis:report", "Write one run as one HTML file: verdict, ranks over time, loss, logs."),
    "policy": ("policy:app", "The rules: list them, export them as Azure Policy."),
    "gitops": ("gitops:app", "CI for a team's repository: its files, and the comment."),
    "prove": ("prove:prove", "Walk through a stack's life on a first real subscription, and compare."),
    "sandbox": ("sandbox:app", "Azure on this machine: start it, look at it, end it."),
}
VERBS = {name: Verb(f"amlstack.cli.commands.{target}", line) for name, (target, line) in _VERBS.items()}
"""Every verb, in the order in which help lists them. A new verb is one function and one line here."""

INTRO = """\
Distributed training on Azure ML's InfiniBand sizes: declared, checked, rehearsed on this machine, then run.

Usage: amlstack VERB [OPTIONS] ...
"""
OUTRO = """\
`amlstack VERB --help` tells more. Try:
  amlstack check examples/*/job.*             is anything wrong?
  amlstack show examples/ddp_torchrun/job.py  what would run, and what was added to it?

`amlstack --show-completion bash >> ~/.bashrc` has the shell complete words; zsh and fish too.

Exit status: 0 good, 1 findings or a failed job, 2 wrong use, 3 another command works on the stack, 130 Ctrl-C.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Args:
        arguments: What follows ``amlstack``; None takes the process's own.

    Returns:
        The exit status.
    """
    if arguments is None:
        gc.set_threshold(*startup.RARELY)
        startup.leave_out_plugins()
        sys.stderr = Shield(sys.stderr)  # where a traceback goes, which may quote others
        try:
            code = main(sys.argv[1:])
        finally:
            gc.freeze()  # looking through all objects at the end would take a tenth of a verb's time
        _leave_threads_behind(code)
        return code
    words = list(arguments)
    if not words or words[0] in {"-h", "--help", "help"}:
        return _help(words[1:])
    if words[0] == "--version":
        from amlstack import __version__

        print(f"amlstack {__version__}")  # noqa: T201 - the answer
        return 0
    if words[0] in {"--complete", "--show-completion"}:
        from amlstack.cli.completion import SHELLS, candidates

        shell = words[1] if words[1:] else "bash"
        if words[0] == "--show-completion" and shell not in SHELLS:
            print(f"`--show-completion` knows {', '.join(SHELLS)}", file=sys.stderr)  # noqa: T201 - as below
            return 2
        lines = (
            candidates({name: partial(app_of, verb) for name, verb in VERBS.items()})
            if words[0] == "--complete"
            else [SHELLS[shell]]
        )
        print(*lines, sep="\n")  # noqa: T201 - the answer
        return 0
    verb = VERBS.get(words[0])
    if verb is None:
        print(output(_unknown(words[0])), file=sys.stderr)  # noqa: T201 - before any console exists
        return 2
    return run(words[0], verb, words[1:])


def run(name: str, verb: Verb, arguments: Sequence[str]) -> int:
    """Run one verb with its arguments; wrong use gives a message without a traceback, and 2."""
    try:
        # Verbs print by `console.say`; what is written otherwise, as by click, may quote others, too.
        with redirect_stdout(Shield(sys.stdout)), redirect_stderr(Shield(sys.stderr)):
            return _run(name, verb, arguments)
    except KeyboardInterrupt:  # also while a verb's modules are loaded
        return 130


def _run(name: str, verb: Verb, arguments: Sequence[str]) -> int:

    from amlstack.catalog.clock import ClockError
    from amlstack.catalog.overlay import OverlayError

    app = app_of(verb)
    app.pretty_exceptions_enable = False
    try:
        app(args=["--help" if word == "-h" else word for word in arguments], prog_name=f"amlstack {name}")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except (ClockError, OverlayError) as error:
        print(output(str(error)), file=sys.stderr)  # noqa: T201 - of every verb that asks the catalogue
        return 2
    except Exception as error:
        if not (told := _told(error)):
            raise
        print(output(told), file=sys.stderr)  # noqa: T201 - of every verb that uses the disk
        return 1
    return 0


def _told(error: Exception) -> str:
    """A sentence on a disk or on tables that cannot be used; empty for any other error."""
    from amlstack.base.files import sentence
    from amlstack.base.home import ForeignHomeError

    if isinstance(error, OSError):
        return sentence(error)
    tables = sys.modules.get("amlstack.sandbox.store.database")
    known = (ForeignHomeError, *((tables.StateError,) if tables else ()))
    return str(error) if isinstance(error, known) else ""


def _leave_threads_behind(code: int) -> None:
    """Ends the process here where a verb that was interrupted or failed left exchanges under way in daemon threads.

    An ordinary end takes OpenSSL down below them, and one that is just reading crashes the process then.
    """
    if code == 0 or "threading" not in sys.modules:
        return
    import threading

    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    if not others or not all(thread.daemon for thread in others):
        return
    import atexit
    import os

    atexit._run_exitfuncs()  # noqa: SLF001 - what an ordinary end runs
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # a pipe whose reader has gone
        return
    os._exit(code)


def app_of(verb: Verb) -> typer.Typer:
    """The app of a verb. Of a function it is one command, whose return value is the exit status.

    A dataclass among the function's parameters stands for its fields, whose annotations are the options.
    """
    import inspect
    from dataclasses import is_dataclass

    import typer

    module, _, attribute = verb.target.partition(":")
    function = getattr(import_module(module), attribute)
    if isinstance(function, typer.Typer):
        return function
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        options = [parameter]
        kind = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            options = [*inspect.signature(kind, eval_str=True).parameters.values()]
            groups[name] = kind, [each.name for each in options]
        parameters += (each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in options)

    def command(**given: Any) -> None:
        for name, (kind, options) in groups.items():
            given[name] = kind(*map(given.pop, options))
        raise typer.Exit(function(**given) or 0)

    command.__doc__ = function.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return app


def _help(words: Sequence[str]) -> int:
    if words and words[0] in VERBS:
        return run(words[0], VERBS[words[0]], ["--help"])
    width = max(map(len, VERBS))
    lines = "\n".join(f"  {name:{width}}  {verb.help}" for name, verb in VERBS.items())
    print(f"{INTRO}\nVerbs:\n{lines}\n\n{OUTRO}", end="")  # noqa: T201 - the answer
    return 0


def _unknown(word: str) -> str:
    return f"amlstack has no verb `{word}`. {did_you_mean(word, VERBS, otherwise='See `amlstack --help`.')}"


if __name__ == "__main__":
    sys.exit(main())
