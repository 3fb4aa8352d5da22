"""The writer of a line: prefixes of launchers, process ids, and the layout that a log itself shows."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from amlstack.diagnose.reading.tracebacks import HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.diagnose.events import Event

MOST_RANKS = 4000

_LAUNCHER = re.compile(
    r"torch\.distributed\.(?:elastic|launcher|run)|torch/distributed/elastic|ChildFailedError|torchelastic"
    r"|\[launch\.py:|deepspeed\.launcher|accelerate\.commands\.launch|elastic_operator"
)
_WORLD = re.compile(r"\b(?:nranks|world[_ ]size)\b\D{1,4}(\d{1,6})\b", re.IGNORECASE)
_PER_NODE = re.compile(r"\bnproc_per_node\s*[:=]\s*(\d{1,4})\b")
_READY = re.compile(
    r"distributed init \(rank (?P<rank>\d{1,6})|GLOBAL_RANK: (?P<rank2>\d{1,6}), MEMBER: \d+/(?P<world>\d{1,6})"
    r"|initialized host \S+ as rank (?P<rank3>\d{1,6})|to store for rank: (?P<rank4>\d{1,6})"
    r"|(?:init(?:ializ\w+)?|join\w*|ready)\b.{0,40}\brank[ =:]{1,2}(?P<rank5>\d{1,6})"
    r"(?: of |/|.{0,12}world[_ ]size\D{1,3})(?P<world2>\d{1,6})"
    r"|init\w* \(rank/world[_ -]size\) (?P<rank6>\d{1,6})/(?P<world3>\d{1,6})"
    r"|\brank=(?P<rank7>\d{1,6}), world_size=(?P<world4>\d{1,6})\b",
    re.IGNORECASE,
)
"""Each launcher's and framework's way to say that a rank is about to meet the others."""
_V1_RANK = re.compile(r"This is an MPI job\. Rank:(\d+)")


@dataclass(slots=True)
class Layout:
    """The facts that are known of a log's job so far.

    Attributes:
        rank: The log's rank, when it is one rank's own log.
        launcher: A launcher wrote it.
        ranks: Ranks that its lines mention.
        world: Number of ranks.
        per_node: Processes per node.
        ready: Ranks that were about to meet the others.
    """

    rank: int | None = None
    launcher: bool = False
    ranks: set[int] = field(default_factory=set)
    world: int | None = None
    per_node: int | None = None
    ready: set[int] = field(default_factory=set)

    def feed(self, line: Line) -> None:
        """Takes one line."""
        if line.rank is not None and len(self.ranks) < MOST_RANKS:
            self.ranks.add(line.rank)
        text = line.text
        if not self.launcher and _LAUNCHER.search(text):
            self.launcher = True
        if self.world is None and (found := _WORLD.search(text)):
            self.world = int(found[1])
        if self.per_node is None and (found := _PER_NODE.search(text)):
            self.per_node = int(found[1])
        if len(self.ready) < MOST_RANKS and (found := _READY.search(text)):
            named = found.groupdict()
            self.ready.add(next(int(value) for name, value in named.items() if name.startswith("rank") and value))
            if world := next((value for name, value in named.items() if name.startswith("world") and value), None):
                self.world = max(int(world), self.world or 0)
                if self.world == 1 and not self.ranks:  # it meets no other
                    self.rank = 0
        if self.rank is None and (found := _V1_RANK.search(text)):
            self.rank = int(found[1])


_JSON = re.compile(r"""\{"(?:log|Log|LogMessage)": ?"(?P<text>(?:[^"\\]|\\.)*)"[,}]""")
_COLOUR = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\a\x1b]*(?:\a|\x1b\\)|[()][AB0]|[=>78M])")
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
        # its role may hold the host
        (
            "[",
            r"\[(?P<node>[A-Za-z][\w-]{0,62}):(?P<local>\d{1,2})\]:? ?(?=  |Traceback|\w+(?:Error|Exception)\b)",
        ),
        ("(", rf"\((?:worker|rank|trainer)[-_ ](?P<rank>{_NUMBER})\):? ?"),
        # Ray, vLLM and others that name the process: (RayTrainWorker pid=7, ip=10.0.0.9), (Worker_TP3 pid=7)
        (
            "(",
            (
                rf"\((?=[^()]{{0,99}}\b(?:pid|ip|rank)=\w)(?P<who>[A-Za-z_][\w.:/+-]*(?: (?:DP|PP|TP|EP)\d+)*)?"
                rf"(?:,? ?rank=(?P<rank>{_NUMBER}))?(?:,? ?pid=(?:(?P<pid>\d+)|[a-z_]+))?"
                r"(?:,? ?ip=(?P<node>[\w.:-]+))?\) "
            ),
        ),
        ("[", r"\[pod/[\w./-]+\] "),  # kubectl logs --prefix
        # syslog, and journald whose time was another prefix
        (_LETTERS, r"[A-Z][a-z]{2} [ \d]\d [\d:]{8} [\w.-]+ (?!kernel)[\w./-]+(?:\[\d+\])?: "),
        (_LETTERS, r"[\w.-]+ [\w./-]+\[\d+\]: "),
        ("ah", r"(?:app|heroku)\[[\w.-]+\]: "),
        # compose, kubeflow
        (_LETTERS, rf"(?:[\w-]+-)?(?:worker|trainer)-(?P<rank>{_NUMBER})(?: +--| +\|) ?(?! *\d+:\d+ \[)"),
        (_LETTERS, r"(?!(?i:info|warn\w*|error|debug|critical|notice|fatal|trace) )[\w.-]{1,63} +\| ?"),
        # srun --label
        (
            _DIGITS,
            (
                rf"(?P<task>{_NUMBER}): (?=Traceback|  File|    \S|\w+(?:\.\w+)*(?:Error|Exception)\b|srun:|\[rank ?\d"
                r"|[EF]\d{4} \d|\*\*\* )"
            ),
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
        # Markdown's quote of a notebook's traceback, or of a plain one
        (">", r"> (?=\s*(?:[\w.]+(?:Error|Exception)\b|<ipython-input|-+> |\d+ |[~/]\S* in |File |Traceback \())"),
        ("s", r"std(?:err|out): "),
        ("|", r"\| [A-Z]+ +\| std(?:err|out) \| "),  # a logger that takes what a program prints
        # sglang: the time, and the parallel ranks beside it
        ("[", r"\[(?P<date>20\d\d-\d\d-\d\d \d\d:\d\d:\d\d)(?P<who>(?: (?:DP|PP|TP|EP)\d+){1,4})\] "),
        (
            "[" + _DIGITS,
            (
                r"\[?(?P<date>20\d\d)[-/]\d\d[-/]\d\d[ T_]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:?"
                r"(?: UTC(?: (?:[\w.-]+ )?--)?)? ?"
            ),
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
    r"|\bsrun: error: [\w.-]+: task (?P<rank6>\d{1,6}): |\bon worker /job:worker/\S{0,20}task:(?P<rank7>\d{1,6}) failed"
    r"|^ERROR on proc (?P<rank8>\d{1,6}): "  # LAMMPS
)
_RANKED = re.compile(r"(?:\brank[ _:=]{0,2}(?P<rank>\d{1,6})(?![\d./])|^\[(?P<rank2>\d{1,6})\])", re.IGNORECASE)
_HOSTED = re.compile(r"(?P<node>(?=[\w.-]*[\d.])[A-Za-z][\w.-]*[A-Za-z\d]): ?$")
_WARNED = re.compile(
    r"\bNCCL (?:INFO\b|WARN (?=\[(?:Service|Proxy)))|^(?:\S+ ){0,4}?"
    r"(?:\[?(?:WARN(?:ING)?|INFO|DEBUG|NOTICE)\b(?! NCCL)|[WI] (?:tensorflow|external/)|[WI]\d{3,4} |\[[WI]\d*[\] ])"
    r"|\b(?:[Rr]etrying|retry loop|will retry|[Ii]gnored? (?:\w+ )?error|[Ii]gnoring)\b"
    r"|^(?:cat|rm|ls|mkdir|cp|mv|ln|chmod|chown|find|grep|sed|tail|head|touch|stat|df): "
    r"|(?:User|Future|Deprecation|Runtime|Resource)Warning\b|^warnings?\b|: Warning: |: [WI] \w+/"
    r"|(?:^|[\] ])\[(?:WARN(?:ING)?|INFO|DEBUG|info|debug)\]|[\"']level[\"']: ?[\"'](?i:warn(?:ing)?|info|debug)[\"']"
)
_NOT_SOFT = re.compile(
    r"NCCL WARN(?! \[[SP]\w+ [^\]]*\] (?:Accept f|Failed to execute operation Cl))"
    r"|torch\.distributed\.elastic.*\b[Ff]ailed|Sending process|: Lost task .*: java\.lang\.OutOfMemoryError"
)


class Line(NamedTuple):
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
    return _bare(Line(plain(raw)))


def plain(text: str) -> str:
    """The text as a terminal shows it: without its codes, and without what was written over."""
    if "\b" in text:
        before, _, after = text.rpartition("\b")
        text = after if after.strip() else before
    return _COLOUR.sub("", text) if "\x1b" in text else text


def _bare(line: Line) -> Line:
    for _ in range(6):
        if line.text.startswith("{"):
            line = line._replace(text=plain(_unwrapped(line.text)))
        if line.text[:1] in " \t" or line.text.startswith("Traceback"):  # indentation is the program's own
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
    return line._replace(
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
    """True where a line was written at the level of a warning or below."""
    return bool(_WARNED.search(text[:200])) and not _NOT_SOFT.search(text)


def _shorter(line: Line) -> Line | None:
    for prefix in _BY_FIRST.get(line.text[0], ()):
        if found := prefix.match(line.text):
            named = found.groupdict()
            rank, local, node, task = named.get("rank"), named.get("local"), named.get("node"), named.get("task")
            number = line.rank if rank is None and task is None else int(rank or task or 0)
            return Line(
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


LONGEST = 1 << 18
"""Bytes of a log's begin in which processes are looked for: ranks tell theirs when they start."""
ONE_NODE = 16
"""GPUs that one node has at most."""
_COMMUNICATOR = re.compile(
    rb"[\w.-]+:(?P<pid>\d+):\d+ \[\d+\] NCCL INFO (?:\S+ )?comm 0x\w+ rank (?P<rank>\d+) n[Rr]anks (?P<size>\d+)"
)
# Each names a process and its rank on one line.
_PAIRS = tuple(
    re.compile(pattern)
    for pattern in (
        (
            rb"[\w.-]+:(?P<pid>\d+):\d+ \[\d+\] NCCL INFO (?:Channel|Ring) \d+(?:/\d+)? : (?P<rank>\d+)\[\w+\] -> "
            rb"\d+\[\w+\] (?!\[receive\])"
        ),
        rb"[\w.-]+:(?P<pid>\d+):\d+ \[\d+\] .{0,80}\[Proxy Service (?P<rank>\d+)\]",
        rb"\bpid=(?P<pid>\d+)[^)\n]{0,80}\)\S{0,8} \[rank(?P<rank>\d+)\]:",
        rb"\bpid=(?P<pid>\d+)\)? world_rank=(?P<rank>\d+)",
        rb"\bRank +(?P<rank>\d+) (?:Group +\d+ )?Pid +(?P<pid>\d+) on\b",
        rb"process rank (?P<rank>\d+) with PID (?P<pid>[1-9]\d*) on node",
    )
)
_NCCL_PROCESS = re.compile(rb"(?P<node>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<gpu>\d+)\] ")


@dataclass(slots=True)
class Processes:
    """The statements of a log's begin and end about processes.

    Attributes:
        ranks: Process → its rank, where it has one and shares it with no other process: groups smaller than the whole
            number their members anew.
        gpus: Process → its GPU, where it has one and shares it with no other.
        nodes: Nodes of these processes.
    """

    ranks: dict[str, int] = field(default_factory=dict)
    gpus: dict[str, int] = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()


def seen(parts: Iterable[bytes]) -> Processes:
    """Reads pieces of a log."""
    text = b"\n".join(parts)
    groups = [(int(found["size"]), found["pid"].decode(), int(found["rank"])) for found in _COMMUNICATOR.finditer(text)]
    largest = max((size for size, _, _ in groups), default=0)
    ranks = _one_each((pid, rank) for size, pid, rank in groups if size == largest)
    for pattern in () if ranks else _PAIRS:
        ranks = _one_each((found["pid"].decode(), int(found["rank"])) for found in pattern.finditer(text))
        if ranks:
            break
    lines = list(_NCCL_PROCESS.finditer(text))
    return Processes(
        ranks,
        _one_each((found["pid"].decode(), int(found["gpu"])) for found in lines),
        frozenset(found["node"].decode() for found in lines),
    )


def ranked(events: list[Event], processes: Processes, world: int | None) -> list[Event]:
    """Events with the rank of the process that wrote them, where nothing nearer names one.

    The number of a GPU is a rank where one node has all ranks, each with a GPU of its own.

    Args:
        events: Of one log.
        processes: Of the same log.
        world: Ranks of the job, when known.
    """
    alone = len(processes.nodes) == 1 and 1 < (world or 0) <= ONE_NODE
    found = []
    for event in events:
        pid = str(event.facts.get("pid", ""))
        if event.rank is not None or not pid:
            found.append(event)
            continue
        rank = processes.ranks.get(pid)
        if rank is None and not processes.ranks and alone and processes.gpus.get(pid, ONE_NODE) < (world or 0):
            rank = processes.gpus[pid]
        found.append(replace(event, rank=rank))
    return found


def _one_each(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Process → number, without processes that have several and without numbers that several have."""
    numbers: dict[str, set[int]] = {}
    for pid, number in pairs:
        numbers.setdefault(pid, set()).add(number)
    owners: dict[int, set[str]] = {}
    for pid, several in numbers.items():
        for number in several:
            owners.setdefault(number, set()).add(pid)
    return {
        pid: number
        for pid, several in numbers.items()
        for number in several
        if len(several) == 1 and len(owners[number]) == 1
    }


MOST = 8
"""Forms of prefixes that are remembered of one log."""
LONGEST_PREFIX = 200
_NUMBERS_OF_RANKS = re.compile(r"\brank[ _:=]{0,2}(?P<rank>\d{1,6})(?![\d./])|^\[(?P<rank2>\d{1,6})\]", re.IGNORECASE)
_NUMBERED = re.compile(r"(?P<open>\[?)(?P<rank>\d{1,6})(?P<close>\]?:? )(?:Traceback \(most|slurmstepd: )")
SAMPLE = 400
"""Lines that show whether a log's lines are labelled."""
_LABELS = (
    re.compile(r" {0,5}(?P<rank>\d{1,6}):(?: |$)"),  # srun --label
    re.compile(r"\[ {0,5}(?P<rank>\d{1,6})\](?::? |$)"),  # hydra's and others' -l
)
_OTHERS = ("srun:", "slurmstepd:", "-----", "=====")
"""The lines that launchers write between those that they label."""
MOST_WORDS = 6
"""Words of a prefix: more are a sentence."""
_WORDS = re.compile(r"[A-Za-z]{2,}")
_DIGIT_RUN = re.compile(r"\d+")


@dataclass(slots=True)
class Prefixes:
    """The forms of one log."""

    _forms: list[re.Pattern[str]] = field(default_factory=list)
    _label: re.Pattern[str] | None = None

    def line_of(self, raw: str) -> Line:
        """The line without its prefixes, and who wrote it."""
        line = strip(raw)
        if self._label is not None and line.rank is None and (found := self._label.match(line.text)):
            line = _bare(line._replace(text=line.text[found.end() :]))
            return line if line.rank is not None else line._replace(rank=int(found["rank"]), task=True)
        return self.strip(raw, line)

    def sample(self, begin: bytes) -> None:
        """Takes the begin of the log: numbers before most of its lines are labels, unless they only count the lines.

        A counter gives each number once, labels come again.
        """
        lines = [strip(row.decode(errors="replace")) for row in begin.splitlines()[-SAMPLE:] if row.strip()]
        rows = [f"{line.rank}: " if line.task else line.text for line in lines if line.task or line.rank is None]
        rows = [row for row in rows if not row.startswith(_OTHERS)]
        for form in _LABELS:
            numbers = [found["rank"] for row in rows if (found := form.match(row))]
            bracketed = form is _LABELS[1]
            if len(numbers) * 10 >= len(rows) * 6 and len(numbers) > len(set(numbers)) > bracketed:
                self._label = form
                return

    def strip(self, raw: str, line: Line) -> Line:
        """The line without a prefix that this log has taught, its rank known.

        Args:
            raw: As it stands in the log.
            line: Without the prefixes that every log may have.
        """
        if line.rank is None:
            self._learn(line.text)
        elif HEADER in line.text and (found := _NUMBERED.match(raw)):
            self._add(re.escape(found["open"]) + r"(?P<rank>\d{1,6})" + re.escape(found["close"]))
        if line.rank is None:
            for form in self._forms:
                if found := form.match(line.text):
                    return line._replace(text=line.text[found.end() :], rank=int(found["rank"]))
        return line

    def _learn(self, text: str) -> None:
        before, header, _ = text.partition(HEADER)
        if not header or not before.strip() or len(before) > LONGEST_PREFIX or len(_WORDS.findall(before)) > MOST_WORDS:
            return
        found = _NUMBERS_OF_RANKS.search(before)
        if found is None:
            return
        begin, end = found.span("rank" if found["rank"] else "rank2")
        form = _digitless(before[:begin]) + r"(?P<rank>\d{1,6})" + _digitless(before[end:])
        self._add(form)

    def _add(self, form: str) -> None:
        if len(self._forms) < MOST and form not in {each.pattern for each in self._forms}:
            self._forms.append(re.compile(form))


def _digitless(text: str) -> str:
    """A pattern of a text whose numbers may be others."""
    return r"\d+".join(re.escape(part) for part in _DIGIT_RUN.split(text))
