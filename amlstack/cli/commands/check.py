"""``amlstack check``: everything that is wrong with job files, in one run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from amlstack.base.findings import Finding, Level, errors, in_file_order, stated
from amlstack.cli.console import Json, end, print_json, say, tally
from amlstack.cli.jobfiles import formats
from amlstack.cli.jobfiles.formats import Format, chosen
from amlstack.cli.jobfiles.judgement import Checked, check_file, configured_gate
from amlstack.cli.policy_pack import GivenRules, NoPackError, PolicyConfig, PolicyPack

# The parser, as typer would make a pydantic adapter for each path of a list: a tenth of the time of 1,000 files.
Files = Annotated[
    list[Path] | None,
    typer.Argument(
        parser=Path,
        help="Job files: Python, or Azure ML CLI v2 YAML; none: those of --stack. With --against also JSON files and "
        "folders of Azure Policy.",
    ),
]
Size = Annotated[str | None, typer.Option(help="VM size of the cluster, instead of a stack's.")]
Stack = Annotated[
    str | None, typer.Option(help="Stack whose clusters are meant; unset: the only one of this folder, else sandbox.")
]
Against = Annotated[
    list[str] | None,
    typer.Option(
        help="Judge the stack by a tenant's policies: alz, alz-custom, mcsb, mcsb-v1, cis, or JSON of Azure Policy."
    ),
]
Exempt = Annotated[
    list[str] | None,
    typer.Option(help="Definition of which the stack has an exemption: its id, or the first 8 characters."),
]
ReadGroup = Annotated[
    bool,
    typer.Option(
        "--read-group", help="With --against: read location and tags of a resource group that exists from Azure."
    ),
]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Python job files may use network, credentials and processes while they are read."),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORM",
        help="text, json, github (annotations of a pull request) or sarif; with --changed text, json, names or stacks.",
    ),
]
Only = Annotated[str | None, typer.Option(metavar="errors", help="Show errors alone.")]
Fix = Annotated[
    bool,
    typer.Option("--fix", help="Write what answers `job-timeout` and `environment-pinned`, and show the difference."),
]
Workspace = Annotated[
    str | None,
    typer.Option(
        "--workspace",
        "-w",
        metavar="NAME|ID",
        help="With --fix: the workspace that knows versions; unset: the catalogue.",
    ),
]
Changed = Annotated[
    bool,
    typer.Option(
        "--changed",
        help="Judge nothing: list the jobs and stacks that changes since BASE touch. `--changed [BASE] [FILES]`.",
    ),
]


def check(
    files: Files = None,
    *,
    size: Size = None,
    stack: Stack = None,
    policy_config: PolicyConfig = None,
    against: Against = None,
    exempt: Exempt = None,
    form: Form = None,
    as_json: Json = False,
    changed: Changed = False,
    policy_pack: PolicyPack = None,
    read_group: ReadGroup = False,
    trust: Trust = False,
    only: Only = None,
    fix: Fix = False,
    workspace: Workspace = None,
) -> int:
    """Validate job files and print everything that is wrong.

    Checked are the file's form (unknown keys, wrong values, near misses by name), what its command binds, the files
    it names, the scripts that it starts (read, never run: syntax, arguments), its code folder (secrets, links that
    leave it, `.git`, large files), and, against the cluster's size, processes per node, InfiniBand, retirement and
    the number of nodes.
    The rules of the policy pack judge it at the levels of their configuration: mandatory is an error, advisory a
    warning. A pack or a configuration that is given wins over the stack's `amlstack:policies`. Errors refuse the file
    (exit status 1); warnings and notes do not.

    Examples:
        amlstack check job.yml --size Standard_ND96isr_H100_v5

        amlstack check workloads/*.py --stack prod --json

        amlstack check --stack prod

        amlstack check job.yml --size Standard_ND96isr_H100_v5 --policy-config team.json

    With --against a stack is judged by the policies of the tenant that it will be created in: who would refuse, change
    or report which resource, and the setting that answers it. No engine is asked, and Azure only with --read-group, for
    the tags of a group that exists; docs/how-to/tenant-policies.md.

        amlstack check --against alz --stack prod

        amlstack check --against initiative.json definitions/ --stack prod --exempt e413671a

    Advice that nearly every file gets stands once, with a count. `--fix` writes it: a timeout of a day, and of each
    environment the newest version that a workspace has, else, of a curated one, a version that the catalogue knows.
    It shows the difference and changes nothing else of a file.

        amlstack check workloads/*.yml --only errors

        amlstack check workloads/*.yml --fix --workspace my-workspace

    In CI: annotations beside the lines of a pull request, or a SARIF log; and the jobs that a range of commits touches
    (docs/how-to/checks-in-ci.md).

        amlstack check workloads/*.py --stack prod --format github

        for job in $(amlstack check --changed origin/main --format names); do amlstack rehearse "$job" -j 2x2; done
    """
    files = files or []
    if changed:
        if size or against:
            raise typer.BadParameter("`--changed` judges nothing: it goes with --stack, --format and --json alone.")
        asked = chosen(form, Format.TEXT, Format.JSON, Format.NAMES, Format.STACKS, as_json=as_json)
        return _changed(files, stack, asked)
    try:
        GivenRules.taken(policy_pack, None).judge_here()
    except NoPackError as error:
        raise typer.BadParameter(str(error)) from None
    asked = chosen(form, Format.TEXT, Format.JSON, Format.GITHUB, Format.SARIF, as_json=as_json)
    if against:
        from amlstack.cli.stack.tenant.judgement import judge_stack

        return judge_stack(files, stack, against, exempt or [], form=asked, read_group=read_group)
    if only not in (None, "errors") or (workspace is not None and not fix):
        raise typer.BadParameter("`--only` is `errors`, and `--workspace` goes with --fix.")
    files = files or _of_stack(stack)
    if read_group:
        raise typer.BadParameter("--read-group says something to the policies of --against, and none are given.")

    def verb(doing: Callable[[str], None]) -> int:
        check: Callable[[], int] = partial(
            _check, files, size, stack, policy_config, form=asked, doing=doing, only_errors=only is not None
        )
        if trust:
            from jobs.pythonfiles.guard import trusting

            check = trusting(check)
        return _fixing(workspace, check) if fix else check()

    if not any(file.suffix.lower() == ".py" for file in files):
        return verb(lambda _: None)
    ended = run_apart(verb)
    if ended.code is not None:
        return ended.code
    finding = stated("check-ended", "", ended=ended).changed(file=ended.last or None)
    if asked is Format.JSON:
        print_json({"ok": False, "findings": [finding.as_dict()], "files": []})
    else:
        formats.show(asked, (finding,), Path.cwd(), str(files[0]), category="check", closing=())
    return 1


def _of_stack(stack: str | None) -> list[Path]:
    """The job files that a stack lists, as its ``up`` reads them."""
    from amlstack.cli import targets

    if stack is None:
        raise typer.BadParameter(
            "Name job files, a stack with --stack whose jobs are meant, or policies with --against."
        )
    where = targets.find(None, stack)
    listed = [where.root / each.file for each in where.settings.jobs] if where.settings is not None else []
    here = Path.cwd()
    return [file.relative_to(here) if file.is_relative_to(here) else file for file in dict.fromkeys(listed)]


def _changed(files: list[Path], stack: str | None, form: Format) -> int:
    """Print the parts of the repository that a range of commits touches."""
    from amlstack.cli.jobfiles import changes

    ended = run_apart(lambda doing: changes.list_changes([str(file) for file in files], stack, form, doing))
    if ended.code is None:
        end(f"error: reading {ended.last or 'a job file'} ended the process ({ended.how}).")
    return ended.code


def _check(
    files: list[Path],
    size: str | None,
    stack: str | None,
    policy_config: Path | None,
    *,
    form: Format,
    doing: Callable[[str], None],
    only_errors: bool = False,
    mending: Callable[[str], str | None] | None = None,
) -> int:
    """The verb, which announces each file before it reads it: its exit status."""
    from amlstack.catalog import clock
    from amlstack.cli import targets
    from amlstack.cli.jobfiles.mending import told_once
    from amlstack.cli.stack import run_orders

    where = targets.find(size, stack)
    day = clock.today()
    gate, about = configured_gate(where, day, policy_config)
    from infra.runs import CodeFolders

    checked, folders = [], CodeFolders()
    for file in files:
        doing(str(file))
        checked.append(check_file(file, where, gate=gate, folders=folders, packages=True))
        if mending is not None and _mended(file, checked[-1].findings, mending, err=form is not Format.TEXT):
            doing(str(file))
            checked[-1] = check_file(file, where, gate=gate, folders=folders, packages=True)
    about = (*where.findings, *about, *gate.whole(), *run_orders.findings(checked, where))
    # Jobs may share a code folder, of which each finding is shown once.
    found = tuple(dict.fromkeys((*about, *(finding for each in checked for finding in each.findings))))
    hidden = [finding for finding in found if finding.level is not Level.ERROR] if only_errors else []
    if hidden:
        about, found = errors(about), errors(found)
        checked = [each._replace(findings=errors(each.findings)) for each in checked]
    closing = [f"{len(files)} file{'' if len(files) == 1 else 's'}: {tally(found)}"]
    if not files:
        closing = [f"stack {where.stack or stack}, its settings alone, which list no job files: {tally(found)}"]
    if form is Format.JSON:
        print_json(_as_values(checked, found, about))
    else:
        costs = _costs(checked) if form is Format.TEXT else ()
        if hidden:
            closing[-1] += f" ({tally(hidden)} not shown)"
        found = tuple(told_once(found)) if form is Format.TEXT else found
        shown_at = str(files[0]) if files else f"Pulumi.{stack}.yaml"
        formats.show(form, found, where.root, shown_at, category="check", closing=[*costs, *closing])
    return 1 if errors(found) else 0


def _fixing(workspace: str | None, check: Callable[..., int]) -> int:
    """The verb with a way to find versions; 2 where the workspace does not say them."""
    from amlstack.cli.jobfiles.mending import catalogued, versions_of
    from amlstack.cli.workspace.workspace_place import NoWorkspaceError
    from amlstack.provider.arm import ArmError

    try:
        return check(mending=versions_of(workspace) if workspace is not None else catalogued)
    except (NoWorkspaceError, ArmError) as error:
        end(f"error: {error}")


def _mended(file: Path, findings: tuple[Finding, ...], pinned: Callable[[str], str | None], *, err: bool) -> bool:
    """Edit a file, and show how; True where it was."""
    from amlstack.cli.jobfiles.mending import mend

    try:
        difference = mend(file, findings, pinned)
    except OSError as error:
        say(f"error: {file}: {error.strerror}", err=True)
        return False
    if difference:
        say(difference, err=err)
    return bool(difference)


def _as_values(checked: list[Checked], found: tuple[Finding, ...], about: tuple[Finding, ...]) -> dict[str, Any]:
    """The values that `--format json` prints."""
    from jobs.planning.plans import costs

    return {
        "ok": not errors(found),
        "findings": [finding.as_dict() for finding in in_file_order(about)],
        "files": [
            {
                "file": str(each.file),
                "jobs": len(each.plans),
                "cost": [{place: price._asdict() for place, price in costs(plan).items()} for plan in each.plans],
                "findings": [finding.as_dict() for finding in in_file_order(each.findings)],
            }
            for each in checked
        ],
    }


def _costs(checked: list[Checked]) -> Iterator[str]:
    """A line for each part of a job whose price is known."""
    from jobs.planning.plans import costs

    for each in checked:
        for plan in each.plans:
            for place, price in costs(plan).items():
                what = ": ".join(part for part in (plan.job.name or each.file.stem, place) if part)
                yield f"{each.file}: {what} costs {price}"


_DONE = b"done "


class Ended(NamedTuple):
    """The end of a verb's process.

    Attributes:
        code: The exit status that the verb asked for; None when it never came to that.
        how: ``signal 9``, or ``exit status 0``: how the process ended.
        last: What it last announced.
    """

    code: int | None
    how: str
    last: str


def run_apart(verb: Callable[[Callable[[str], None]], int]) -> Ended:
    """Run a verb in a child of this process, so that nothing that it loads can end it without a word.

    The child has no standard input. Where its output would not reach the place of this one's, as in a test that gathers
    it, there is no child.

    Args:
        verb: Gets a function by which it announces what it does; returns the exit status. What it raises ends the child
            as it would have ended this process.
    """
    try:
        apart = sys.stdout.fileno() == 1
    except (OSError, ValueError, AttributeError):
        apart = False
    if not apart:
        return Ended(verb(lambda _: None), "", "")
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _as_child(verb, writing)
    os.close(writing)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child gets it, too, and prints what there is to print
    try:
        with os.fdopen(reading, "rb") as stream:
            lines = stream.read().split(b"\0")[:-1]
        _, status = os.waitpid(child, 0)
    finally:
        signal.signal(signal.SIGINT, before)
    code = os.waitstatus_to_exitcode(status)
    how = f"signal {-code}" if code < 0 else f"exit status {code}"
    if lines and lines[-1].startswith(_DONE):
        return Ended(int(lines[-1].removeprefix(_DONE)), how, "")
    return Ended(None, how, lines[-1].decode(errors="replace") if lines else "")


def _as_child(verb: Callable[[Callable[[str], None]], int], writing: int) -> None:
    """Never returns."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    code = 1
    try:
        code = verb(lambda doing: _send(writing, doing.encode()))
    except KeyboardInterrupt:
        code = 130
    except BaseException as error:  # noqa: BLE001 - shown as it would be without a child
        asked = getattr(error, "exit_code", None)  # typer's: a wrong option, or an exit
        if isinstance(asked, int):
            getattr(error, "show", lambda: None)()
            code = asked
        else:
            sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    _send(writing, _DONE + str(code).encode())
    # Whatever was registered for the end of the process does not run: it may be the file's.
    os._exit(code)


def _send(writing: int, text: bytes) -> None:
    os.write(writing, text.replace(b"\0", b"") + b"\0")
