"""``amlstack check``: everything that is wrong with job files, in one run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amlstack.base.findings import Finding, errors, in_file_order
from amlstack.cli.console import print_findings, print_json, say, tally
from amlstack.cli.jobfiles import formats
from amlstack.cli.jobfiles.formats import Format, chosen
from amlstack.cli.jobfiles.judgement import check_file, configured_gate
from amlstack.cli.policy_pack import GivenRules, NoPackError, PolicyConfig, PolicyPack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amlstack.cli.jobfiles.judgement import Checked

app = typer.Typer(add_completion=False)

# The parser, as typer would make a pydantic adapter for each path of a list: a tenth of the time of 1,000 files.
Files = Annotated[
    list[Path] | None,
    typer.Argument(
        parser=Path,
        help="Job files: Python, or Azure ML CLI v2 YAML; none: those of --stack. With --against also JSON files and "
        "folders of Azure Policy.",
        show_default=False,
    ),
]
Size = Annotated[
    str | None,
    typer.Option("--size", "--cluster-size", help="VM size of the cluster, instead of a stack's.", show_default=False),
]
Stack = Annotated[
    str | None,
    typer.Option(help="Stack whose clusters are meant; unset: the only one of this folder, else sandbox."),
]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        help="Judge the stack by a tenant's policies: alz, alz-custom, mcsb, mcsb-v1, cis, or JSON of Azure Policy.",
        show_default=False,
    ),
]
Exempt = Annotated[
    list[str] | None,
    typer.Option("--exempt", help="Definition of which the stack has an exemption: its id, or the first 8 characters."),
]
ReadGroup = Annotated[
    bool,
    typer.Option(
        "--read-group", help="With --against: read location and tags of a resource group that exists from Azure."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program: another spelling of --format json.")]
Form = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORM",
        help="text, json, github (annotations of a pull request) or sarif; with --changed text, json, names or stacks.",
        show_default=False,
    ),
]
Changed = Annotated[
    bool,
    typer.Option(
        "--changed",
        help="Judge nothing: list the jobs and stacks that changes since BASE touch. `--changed [BASE] [FILES]`.",
    ),
]


@app.command()
def check(  # noqa: PLR0917 - typer's options
    files: Files = None,
    size: Size = None,
    stack: Stack = None,
    policy_config: PolicyConfig = None,
    against: Against = None,
    exempt: Exempt = None,
    form: Form = None,
    *,
    as_json: Json = False,
    changed: Changed = False,
    policy_pack: PolicyPack = None,
    read_group: ReadGroup = False,
) -> None:
    """Validate job files and print everything that is wrong.

    Checked are the file's form (unknown keys, wrong values, near misses by name), what its command binds, the files
    it names, its code folder (secrets, links that leave it, `.git`, large files), and, against the cluster's size,
    processes per node, InfiniBand, retirement and the number of nodes.
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
    the tags of a group that exists; docs/tenant-policies.md.

        amlstack check --against alz --stack prod

        amlstack check --against initiative.json definitions/ --stack prod --exempt e413671a

    In CI: annotations beside the lines of a pull request, or a SARIF log; and the jobs that a range of commits touches
    (docs/checks-in-ci.md).

        amlstack check workloads/*.py --stack prod --format github

        for job in $(amlstack check --changed origin/main --format names); do amlstack rehearse "$job" -j 2x2; done
    """
    if changed:
        raise typer.Exit(_changed(files or [], stack, form, as_json=as_json, others=(size, against)))
    try:
        GivenRules.taken(policy_pack, None).judge_here()
    except NoPackError as error:
        raise typer.BadParameter(str(error)) from None
    asked = chosen(form, Format.TEXT, Format.JSON, Format.GITHUB, Format.SARIF, as_json=as_json)
    if not files and not against:
        files = _of_stack(stack)
    if against:
        from amlstack.cli.stack.tenant.judgement import judge_stack

        raise typer.Exit(judge_stack(files or [], stack, against, exempt or [], form=asked, read_group=read_group))
    if read_group:
        raise typer.BadParameter("--read-group says something to the policies of --against, and none are given.")

    from amlstack.catalog import overlay
    from amlstack.cli.jobfiles import child_process

    def verb(doing: Callable[[str], None]) -> int:
        with overlay.found_once():
            return _check(files or [], size, stack, policy_config, form=asked, doing=doing)

    if not any(file.suffix.lower() == ".py" for file in files or ()) or not child_process.possible():
        raise typer.Exit(verb(lambda _: None))
    ended = child_process.run(verb)
    if ended.code is None:
        finding = Finding(
            "check-ended",
            "",
            f"The check of this file ended before its time ({ended.how})",
            "A Python job file runs to its end in the process that reads it",
            "Keep what runs on the nodes in a file of its own, and let the job's command start that.",
            file=ended.last or None,
        )
        if asked is Format.JSON:
            print_json({"ok": False, "findings": [finding.as_dict()], "files": []})
        elif asked in formats.FORMS:
            formats.show(asked, (finding,), Path.cwd(), str((files or [Path()])[0]), category="check", closing=())
        else:
            print_findings((finding,))
    raise typer.Exit(1 if ended.code is None else ended.code)


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


def _changed(
    files: list[Path], stack: str | None, form: str | None, *, as_json: bool, others: tuple[object, ...]
) -> int:
    """Print the parts of the repository that a range of commits touches."""
    from amlstack.cli.jobfiles import changes, child_process

    if any(others):
        raise typer.BadParameter("`--changed` judges nothing: it goes with --stack, --format and --json alone.")
    asked = chosen(form, Format.TEXT, Format.JSON, Format.NAMES, Format.STACKS, as_json=as_json)

    def verb(doing: Callable[[str], None]) -> int:
        return changes.list_changes([str(file) for file in files], stack, asked, doing)

    if not child_process.possible():
        return verb(lambda _: None)
    ended = child_process.run(verb)
    if ended.code is None:
        say(f"error: reading {ended.last or 'a job file'} ended the process ({ended.how}).", err=True)
        return 2
    return ended.code


def _check(
    files: list[Path],
    size: str | None,
    stack: str | None,
    policy_config: Path | None,
    *,
    form: Format,
    doing: Callable[[str], None],
) -> int:
    """The verb, which announces each file before it reads it: its exit status."""
    from amlstack.catalog import clock
    from amlstack.cli import targets
    from amlstack.cli.stack import run_orders

    where = targets.find(size, stack)
    day = clock.today()
    gate, about = configured_gate(where, day, policy_config)
    from infra.runs import CodeFolders

    checked, folders = [], CodeFolders()
    for file in files:
        doing(str(file))
        checked.append(check_file(file, where, gate=gate, folders=folders))
    about = (*where.findings, *about, *gate.whole(), *run_orders.findings(checked, where))
    # Jobs may share a code folder, of which each finding is shown once.
    found = tuple(dict.fromkeys((*about, *(finding for each in checked for finding in each.findings))))
    closing = [f"{len(files)} file{'' if len(files) == 1 else 's'}: {tally(found)}"]
    if not files:
        closing = [f"stack {where.stack or stack}, its settings alone, which list no job files: {tally(found)}"]
    if form is Format.JSON:
        print_json(_as_values(checked, found, about))
    elif form in formats.FORMS:
        shown_at = str(files[0]) if files else f"Pulumi.{stack}.yaml"
        formats.show(form, found, where.root, shown_at, category="check", closing=closing)
    else:
        print_findings(found)
        say("\n".join([*_costs(checked), *closing]))  # at once: each writing reaches the terminal
    return 1 if errors(found) else 0


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
                "cost": [{place: asdict(price) for place, price in costs(plan).items()} for plan in each.plans],
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
