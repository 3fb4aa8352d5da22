"""What launchers and loggers put in front of a line: ranks, nodes, colours, times."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

_JSON = re.compile(r"""\{"(?:log|Log|LogMessage)": ?"(?P<text>(?:[^"\\]|\\.)*)"[,}]""")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NUMBER = r"\d{1,6}"

_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"

# Each takes one prefix off, and begins with one of the characters beside it.
# Named groups: rank, task, local, node, pid, who (whose parts name a rank), date.
_PREFIXES = tuple(
    (begin, re.compile(pattern))
    for begin, pattern in (
        # mpirun --tag-output, with --timestamp-output too
        (
            "[" + _LETTERS,
            rf"(?:\w{{3}} \w{{3}} +\d+ [\d:]{{8}} \d{{4}})?\[\d+,(?P<rank>{_NUMBER})\]<std(?:out|err|diag)>: ?",
        ),
        ("[", rf"\[(?:[\w.-]+@)?\d+,(?P<rank>{_NUMBER})\]<std(?:out|err)>: ?"),
        # horovodrun
        ("[" + _LETTERS, rf"(?:\w{{3}} \w{{3}} +\d+ [\d:]{{8}} \d{{4}})?\[(?P<rank>{_NUMBER})\]<std(?:out|err)>: ?"),
        ("[", rf"\[(?i:rank)(?:: ?| )?(?P<rank>{_NUMBER})\](?:: ?| (?=\[|20\d\d-))"),  # torch, Lightning, loggers
        ("[rR", rf"\[?[Rr]ank ?(?P<rank>{_NUMBER})\]?: (?=Traceback|  |\w+(?:\.\w+)*(?:Error|Exception))"),
        ("r" + _DIGITS, rf"(?:rank )?(?P<rank>{_NUMBER})\]: "),  # the same, its beginning cut off
        (
            "[",
            rf"\[(?:default|trainer|worker|local_rank|role|train)(?P<local>{_NUMBER})(?:\|\d+)?\]: ?",
        ),  # torchrun --tee
        ("(", rf"\((?:worker|rank|trainer)[-_ ](?P<rank>{_NUMBER})\):? ?"),
        # Ray, vLLM and others that name the process: (RayTrainWorker pid=7, ip=10.0.0.9), (Worker_TP3 pid=7)
        (
            "(",
            (
                rf"\((?=[^()]{{0,99}}\b(?:pid|ip|rank)=\w)(?P<who>[A-Za-z_][\w.:/+-]*(?: (?:DP|PP|TP|EP)\d+)*)?"
                rf"(?:,? ?rank=(?P<rank>{_NUMBER}))?(?:,? ?pid=(?P<pid>\d+))?(?:,? ?ip=(?P<node>[\w.:-]+))?\) "
            ),
        ),
        # compose, kubeflow
        (_LETTERS, rf"(?:[\w-]+-)?(?:worker|trainer)-(?P<rank>{_NUMBER})(?: +--| +\|) ?(?! *\d+:\d+ \[)"),
        # srun --label
        (
            _DIGITS,
            rf"(?P<task>{_NUMBER}): (?=Traceback|  File|    \S|\w+(?:\.\w+)*(?:Error|Exception)\b|srun:|\[rank ?\d)",
        ),
        # hydra mpi -l
        ("[", rf"\[(?P<rank>{_NUMBER})\] (?=Traceback|  File|    \S|\w+(?:\.\w+)*(?:Error|Exception)\b)"),
        # pdsh
        (_LETTERS + _DIGITS, r"(?P<node>ip-\d+-\d+-\d+-\d+[\w.-]*|\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{20,40}): "),
        # A host's name has at most 63 characters, 253 with its domain. Without a bound a long word costs its square.
        (_LETTERS + _DIGITS + "_-", r"(?P<node>(?i:[\w-]{0,63}(?:node|host|vm|worker)[\w-]{0,63}\d)): "),
        (
            _LETTERS,
            r"(?P<node>[A-Za-z][\w.-]{0,252}\d): (?=Traceback|\s+File|\s*\w+(?:\.\w+)*(?:Error|Exception)\b|\[)",
        ),
        ("[", r"\[\d{1,9}\] (?=\[rank)"),  # a console that numbers its lines
        ("s", r"std(?:err|out): "),
        # sglang: the time, and the parallel ranks beside it
        ("[", r"\[(?P<date>20\d\d-\d\d-\d\d \d\d:\d\d:\d\d)(?P<who>(?: (?:DP|PP|TP|EP)\d+){1,4})\] "),
        (
            "[" + _DIGITS,
            r"\[?(?P<date>20\d\d)[-/]\d\d[-/]\d\d[ T_]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:?(?: UTC)? ?",
        ),
        ("s", r"std(?:err|out) [FP] "),  # Kubernetes
    )
)
_BY_FIRST = {
    first: tuple(pattern for begin, pattern in _PREFIXES if first in begin)
    for first in {each for begin, _ in _PREFIXES for each in begin}
}
"""The first character of a line → prefixes that can stand there."""
_AXIS = re.compile(r"(?:^|[_ ])(?P<axis>DP|PP|TP|EP)(?P<number>\d{1,5})(?![A-Za-z\d])")
_NCCL = re.compile(r"(?P<node>[\w.-]+):(?P<pid>\d+):\d+ \[\d+\] ")
_HOST_PID = re.compile(r"(?:\[\d+\.\d+\] )?\[(?P<node>[A-Za-z][\w.-]*):0*(?P<pid>\d+)(?: *:\d+)*\] ")
_SLURM = re.compile(r"\bsrun: error: (?P<node>[\w.-]+): tasks? [\d,-]+: ")
_SYSLOG = re.compile(r"[A-Z][a-z]{2} +\d+ [\d:]{8} (?P<node>[\w.-]+) kernel: ")
_INLINE = re.compile(
    r"\[(?:PG [^\]]{0,60}?)?(?i:rank) (?P<rank>\d{1,6})\]|\[global_rank=(?P<rank2>\d{1,6})\]"
    r"|\brank: (?P<rank3>\d{1,6})\b|\(rank (?P<rank4>\d{1,6})\)"
    r"|^[Rr]ank (?P<rank5>\d{1,6})(?::| (?:raised|failed|got|crashed))"
    r"|\bsrun: error: [\w.-]+: task (?P<rank6>\d{1,6}): "
)
_RANKED = re.compile(r"(?:\brank[ _:=]{0,2}(?P<rank>\d{1,6})(?![\d./])|^\[(?P<rank2>\d{1,6})\])", re.IGNORECASE)
_HOSTED = re.compile(r"(?P<node>(?=[\w.-]*[\d.])[A-Za-z][\w.-]*[A-Za-z\d]): ?$")
_WARNED = re.compile(
    r"\bNCCL INFO\b|^(?:\S+ ){0,4}?"
    r"(?:\[?(?:WARN(?:ING)?|INFO|DEBUG|NOTICE)\b(?! NCCL)|[WI] tensorflow|[WI]\d{3,4} |\[[WI]\d* )"
    r"|\b(?:[Rr]etrying|retry loop|will retry|[Ii]gnored error|[Ii]gnoring)\b"
    r"|^(?:cat|rm|ls|mkdir|cp|mv|ln|chmod|chown|find|grep|sed|tail|head|touch|stat|df): "
    r"|(?:User|Future|Deprecation|Runtime|Resource)Warning\b|^warnings?\b|: Warning: |: [WI] \w+/"
)
_NOT_SOFT = re.compile(r"NCCL WARN|torch\.distributed\.elastic.*\b[Ff]ailed|Sending process")


@dataclass(frozen=True, slots=True)
class Line:
    """A line without what was put in front of it.

    Attributes:
        text: What the program wrote, its indentation kept.
        rank: Who wrote it, by the prefix.
        local: Local rank, by the prefix.
        node: Where, by the prefix.
        dated: A time stood before it.
        pid: Its process, by the prefix.
        task: The rank is the number of the scheduler's task, which is a node's where each starts a launcher.
    """

    text: str
    rank: int | None = None
    local: int | None = None
    node: str | None = None
    dated: bool = False
    pid: str | None = None
    task: bool = False


def strip(raw: str) -> Line:
    """Takes prefixes off a line, as many as there are."""
    plain = _unwrapped(raw) if raw.startswith("{") else raw
    line = Line(_COLOUR.sub("", plain) if "\x1b" in plain else plain)
    for _ in range(4):
        if not line.text or line.text[0] in " \tTF":  # indentation and the plainest lines have no prefix
            return line
        shorter = _shorter(line)
        if shorter is None:
            return line
        line = shorter
    return line


def _unwrapped(raw: str) -> str:
    """The line within what container engines and log collectors write: one JSON object for each line."""
    found = _JSON.match(raw)
    if found is None:
        return raw
    try:
        return str(json.loads(f'"{found["text"]}"')).rstrip("\n")
    except ValueError:
        return raw


def named(line: Line, before: str) -> Line:
    """A line with the rank and node that an unknown prefix before its traceback seems to name."""
    rank, node = _RANKED.search(before), _HOSTED.match(before)
    return replace(
        line,
        rank=int(rank["rank"] or rank["rank2"]) if line.rank is None and rank else line.rank,
        node=node["node"] if line.node is None and node else line.node,
    )


def inline_rank(text: str) -> int | None:
    """A rank that the line itself names as its writer."""
    found = _INLINE.search(text)
    return None if found is None else int(next(filter(None, found.groups())))


def inline_node(text: str) -> str | None:
    """A host that the line itself names as the one it was written on."""
    found = _NCCL.search(text[:200]) or _HOST_PID.match(text) or _SYSLOG.match(text) or _SLURM.match(text)
    return None if found is None else found["node"]


def soft(text: str) -> bool:
    """Whether a line was written at the level of a warning or below."""
    return bool(_WARNED.search(text[:200])) and not _NOT_SOFT.search(text)


def _shorter(line: Line) -> Line | None:
    for prefix in _BY_FIRST.get(line.text[0], ()):
        if found := prefix.match(line.text):
            named = found.groupdict()
            rank, local, node, task = named.get("rank"), named.get("local"), named.get("node"), named.get("task")
            number = line.rank if rank is None and task is None else int(rank or task or 0)
            return replace(
                line,
                text=line.text[found.end() :],
                rank=parallel(named.get("who") or "") if number is None else number,
                task=task is not None or (line.task and rank is None),
                local=line.local if local is None else int(local),
                node=node or line.node,
                dated=line.dated or named.get("date") is not None,
                pid=named.get("pid") or line.pid,
            )
    return None


def parallel(who: str) -> int | None:
    """The rank that a name such as ``Worker_TP3`` or ``PP0 TP3`` stands for.

    A rank of a later stage (PP) follows from the number of shards (TP), which a name does not give. Replicas of an
    engine (DP) have ranks of their own each, and experts (EP) are the same processes counted otherwise.
    """
    axes = {found["axis"]: int(found["number"]) for found in _AXIS.finditer(who)}
    stage, shard = axes.get("PP"), axes.get("TP")
    if axes.get("DP") or (stage and shard is not None):
        return None
    return stage or shard if shard is not None or stage is not None else None


def process(text: str) -> str | None:
    """The process that a line itself names as its writer, as NCCL and Open MPI write it."""
    found = _NCCL.search(text[:200]) or _HOST_PID.match(text)
    return None if found is None else found["pid"]
