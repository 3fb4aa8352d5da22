"""``amlstack gitops``: CI files for a team's repository, and what their steps need beyond the other verbs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from amlstack.base.files import write_whole
from amlstack.cli.console import end, ended_by, print_json, say

app = typer.Typer(add_completion=False, no_args_is_help=True, help="CI for a team's repository; docs/how-to/gitops.md.")

Stack = Annotated[str | None, typer.Option("--stack", "-s", help="The stack that is deployed.")]
TheStack = Annotated[str, typer.Option("--stack", "-s", help="The stack that is deployed.")]


@app.command()
def add(
    target: Annotated[str, typer.Argument(help="github, azure-pipelines or kubernetes.")],
    stack: Stack = None,
    owners: Annotated[
        str | None,
        typer.Option(help="Who approves changes of the checks, for CODEOWNERS: @ORG/TEAM; unset: whom the file has."),
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that were edited.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")] = False,
) -> None:
    """Copy the files of `deploy/` into this repository, with the stack's name filled in.

    CODEOWNERS gets what it lacks: tools, rules, workflows, and what the stacks' settings name as rules or as Python.
    For a further stack, GitHub's workflows stay as they are; other services get a folder of the stack's name. A file
    that is there and differs is shown, and nothing is written; `--force` overwrites it. What has to be set once outside
    of the repository (identities, variables, approvals) is printed as commands.

    Examples:
        amlstack gitops add github --stack prod --owners @contoso/platform

        amlstack gitops add azure-pipelines --stack prod --dry-run
    """
    from amlstack.base.text import did_you_mean
    from amlstack.cli.gitops import files as adding

    if target not in adding.TARGETS:
        known = ", ".join(f"`{name}`" for name in adding.TARGETS)
        end(f"`target` must be one of {known}, got `{target}`. {did_you_mean(target, sorted(adding.TARGETS))}".strip())
    adding.run(target, stack, force=force, dry_run=dry_run, owners=owners)


@app.command()
def stacks(
    commit: Annotated[str, typer.Argument(help="What is asked about.", show_default=False)] = "HEAD",
    since: Annotated[str, typer.Option(help="List only those that it changes since this commit.")] = "",
) -> None:
    """Print as a JSON list the stacks for Azure, all or those that a commit changes; workflows make a matrix of it.

    A file touches the stacks whose settings lead to it, else those that lead to something in the nearest folder above
    it. Tools, workflows and the lock file touch all, and so does a commit that this clone does not have.

    Examples:
        amlstack gitops stacks "$GITHUB_SHA" --since "$BASE"
    """
    from amlstack.cli.git import GitError
    from amlstack.cli.gitops import touched

    found = touched.deployed(Path.cwd())
    try:
        found = touched.touched(commit, since) if since else found
    except GitError as error:
        say(f"all stacks are meant: {error}", err=True)
    say(json.dumps(found, separators=(",", ":")))


@app.command()
def guards(
    commit: Annotated[str, typer.Argument(help="What a pull request would make of this branch.")],
    stack: TheStack,
    *,
    take: Annotated[
        bool, typer.Option("--take", help="Bring what the commit declares into this checkout, and none of its guards.")
    ] = False,
    rules: Annotated[
        Path | None, typer.Option(help="Write the options by which this checkout's rules judge, one a line.")
    ] = None,
) -> None:
    """Print as JSON which files of its own gate a commit changes, and which exceptions from the rules it asks for.

    The checkout is that of the branch which a pull request goes into. Its tools, rules, lock file and workflows count.

    Exit status: 0 also with changed guards, 2 wrong use.

    Examples:
        amlstack gitops guards "$GITHUB_SHA" --stack prod --take --rules rules > guards.json
    """
    from amlstack.cli.git import GitError
    from amlstack.cli.gitops import guards as guarding

    try:
        found = guarding.gate_changes(commit, stack)
        if take:
            guarding.take(commit, found)
    except GitError as error:
        end(f"The guards cannot be compared: {error}")
    if rules is not None:
        write_whole(rules, "".join(f"{word}\n" for word in found.words()))
    print_json(found.as_dict())


@app.command()
def comment(
    stack: TheStack,
    results: Annotated[Path, typer.Option(help="Folder of what the steps have written.")] = Path("results"),
    before: Annotated[
        Path | None, typer.Option(help="Checkout without the pull request, for the cost before; unset: this one.")
    ] = None,
    commit: Annotated[str, typer.Option(help="The commit that was looked at.")] = "",
    link: Annotated[str, typer.Option(help="Address of reports and logs.")] = "",
) -> None:
    """Print the comment of a pull request as Markdown: changes, verdicts, cost before and after, rehearsals.

    It is made of the JSON of the other verbs: `check.json`, `rehearsal/FILE.json`, `review.json`, `preview.json` and
    `guards.json` in one folder. It names what did not run. The first line is a mark by which the comment is found and
    edited in place.

    Examples:
        amlstack gitops comment --stack prod --results results > comment.md
    """
    from amlstack.cli.gitops import comment as comments

    with ended_by(comments.ResultsError):
        found = comments.read(results)
    say(comments.text(stack, found, comments.of_folder(stack, before), commit=commit, link=link), nl=False)


@app.command()
def compare(
    agreed: Annotated[Path, typer.Argument(help="JSON of the preview that was looked at.")],
    now: Annotated[Path, typer.Argument(help="JSON of a later preview of the same stack.")],
) -> None:
    """Say in what two previews differ; `amlstack up --keep-to FILE` refuses to apply what differs.

    Exit status: 0 the same plan, 1 another one, 2 wrong use.

    Examples:
        amlstack gitops compare pull-request/preview.json preview.json
    """
    from amlstack.cli.stack import plan

    with ended_by(plan.NoPlanError):
        then, later = plan.read_agreed(agreed), plan.read_agreed(now)
    lines = tuple(then.differences(later.steps))
    for line in lines:
        say(f"- {line}")
    if not lines:
        number = len(later.steps)
        say(f"The plan is the same: {number} resource{'' if number == 1 else 's'}.")
    raise typer.Exit(1 if lines else 0)
