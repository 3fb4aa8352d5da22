"""Messages of a log: how an exception's goes on, NCCL's watchdog, records of loggers and servers, counters of steps."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from amlstack.diagnose.reading.collector import MOST_EVENTS
from amlstack.diagnose.reading.last_words import LAST, LONGEST, REPORT, form, succeeded
from amlstack.diagnose.reading.writers import soft, strip
from amlstack.diagnose.signatures import EventRole, hedged, match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amlstack.diagnose.events import Event
    from amlstack.diagnose.reading.writers import Line
    from amlstack.diagnose.signatures import Signature


def values(facts: dict[str, str]) -> dict[str, Any]:
    """Numbers as numbers, lists of ranks as tuples, all else as text."""
    read: dict[str, Any] = {}
    for name, value in facts.items():
        key = name.rstrip("0123456789")
        if key == "missing":
            read[key] = tuple(int(each) for each in re.findall(r"\d+", value)[:MOST_EVENTS])
        elif re.fullmatch(r"-?\d{1,12}", value):
            read[key] = int(value)
        else:
            read[key] = value.strip(".,:;")
    if not isinstance(read.get("rank", 0), int):
        del read["rank"]
    if "node" in read:
        read["node"] = str(read["node"])
    return read


MOST_LINES = 30
"""Lines that a message has at most."""
MOST_LOOSE = 3
"""Lines of a message above the stack that ends it."""
RULE = "-" * 74
"""The lines that Open MPI puts above and below its messages."""
_NEXT = re.compile(
    r"^(?:\W{0,2}(?:INFO|WARN(?:ING)?|ERROR|DEBUG|CRITICAL|NOTICE|FATAL)\b|\[[EWIF][\d \]]|[EWIF]\d{4} "
    r"|[=\-*_+]{5,}|Traceback\b(?! of )|Exception (?:ignored|in thread)|Exception raised from|Process \w+-\d+:|frame #"
    r"|[\w./~-]+: line \d+: |(?:cp|mv|rm|ls|ln|cat|cd|mkdir|chmod|tar|scp|rsync|wget|curl|git): "
    r"|\[end of output\]|error: |note: |srun:|slurmstepd:|wandb:|Killed\b|terminate called|Killing subprocess"
    r"|During handling"
    r"|The above exception|\[?20\d\d[-/]\d\d|\[?\d\d:\d\d:\d\d|\d+%\||\w+@|[\w.-]+:\d+:\d+ \[)"
)
"""The beginning of a line that is no part of the message before it: a prefix, a header, a table."""
CAUSED = "Caused by: "
"""Begins what Java says of the exception below another one."""
JAVA = re.compile(r"Caused by: |(?:javax?|org|com|net|io|ai|scala|kotlin|akka|clojure)\.[\w.$]+(?:Exception|Error)\b")
_STACK = re.compile(
    JAVA.pattern + r"|goroutine \d+ \[|created by \S|(?:runtime|main)\.\w+\(\)$"
    r"|(?:[\w.-]+/)*[\w.-]+\.[\w.()*]+\((?:0x[0-9a-f]+.*|\.\.\.)\)$"  # Go
    r"|.*\(\w+\.(?:java|scala|kt):\d+\)|frame #\d+: |<omitting python frames>"
    r"|(?:\S+\.py|<ipython-input-\S+)\(\d+\): \S+$"
    # glibc, also where a shell's word follows in the last line
    r"|=+ (?:Backtrace|Memory map)\b|.*\[0x[0-9a-f]+\]$|[0-9a-f]{8,16}-[0-9a-f]{8,16} [r-][w-][x-][ps] "
    r"|\S+ \S+ [IW] tensorflow/core/common_runtime/bfc_allocator\.cc|[IW] tensorflow/core/common_runtime/bfc_alloc"
    r"|(?:Limit|InUse|MaxInUse|NumAllocs|MaxAllocSize): +\d+$|- \S+\.(?:c|cc|cpp|cu|h|hpp):\w+\(\):\d+$"
)
"""Begins a line of what a program shows of its stack, or of its memory, when it ends."""


@dataclass(slots=True)
class MessageReader:
    """The message of one writer's last exception.

    Attributes:
        at: Which event it belongs to; None when no message is open.
        left: Lines that it may still have.
        dated: A time stood before its first line, so that one before another line does not begin another message.
        loose: How many lines are neither indented nor a stack's, and may be of somebody else.
        end: Number of its last line.
        stack: The last line was one of a stack or of memory.
        stacked: Lines of a stack were seen.
    """

    at: int | None = None
    left: int = 0
    dated: bool = False
    loose: int = 0
    end: int = 0
    stack: bool = False
    stacked: bool = False

    def begin(self, at: int, *, dated: bool) -> None:
        """An exception's first line was read."""
        self.at, self.left, self.dated, self.loose = at, MOST_LINES, dated, 0
        self.stacked = False

    def feed(self, text: str, *, dated: bool, indented: bool = False) -> bool:
        """Takes a line of the same writer; whether it is a part of the message, which is all that is indented."""
        if self.at is None:
            return False
        self.left -= 1
        self.stack = stack = _STACK.match(text) is not None
        self.stacked |= stack
        self.loose += not (indented or stack)
        if (self.left < 0 and self.loose > MOST_LOOSE * self.stacked) or (
            not stack and ((dated and not self.dated) or _NEXT.match(text))
        ):
            self.at = None
            return False
        return True


def better(than: Signature, text: str) -> tuple[Signature, dict[str, str]] | None:
    """The more exact sign that a later line of a message holds; None when it holds none."""
    found = match(text)
    if found is None:
        return None
    signature = found[0]
    # the process's own end, that from outside, or what its script did afterwards
    outside = signature.code in ("job-timeout", "job-cancelled", "image-step-failed", "package-not-built")
    if signature.kind in ("crash", "signal") or outside or soft(text):
        return None
    if signature.role is EventRole.VICTIM:
        return found if than.depth <= 1 and signature.kind != "stop" else None
    if signature.role is not EventRole.CULPRIT or hedged(text, signature):
        return None
    return found if signature.depth > than.depth else None


@dataclass(slots=True)
class BlockReader:
    """Reads what stands between two rules of Open MPI, whose sentences are broken into lines.

    Attributes:
        open: A rule has come, and the next one has not.
        begin: The line of its first text.
    """

    open: bool = False
    begin: int = 0
    _texts: list[str] = field(default_factory=list)

    def feed(self, text: str, number: int) -> tuple[int, str] | None:
        """Takes a line; the number of its first line and the whole text of a block that ends with this one."""
        bare = text.strip()
        if len(bare) == len(RULE) and bare == RULE:
            done = (self.begin, " ".join(self._texts)) if self.open and self._texts else None
            # The end of one is not the beginning of the next: each has two rules.
            self.open, self._texts = done is None, []
            return done
        if self.open and bare:
            if not self._texts:
                self.begin = number
            self._texts.append(bare)
            if len(self._texts) > MOST_LINES:
                self.open, self._texts = False, []
        return None


_WORTH = re.compile(rb"(?:finish|complet|succe|done|exit|end (?:of|train|run|job))", re.IGNORECASE)


def finished(tail: bytes, lines: int, line_of: Callable[[str], Line], raised: int = 0) -> dict[int | None, int]:
    """The last line on which each writer says that its run came to its end as it should; None for nameless ones.

    What follows the uncaught exception of a line ``raised`` near the log's end are a script's words, not its program's.
    """
    found: dict[int | None, int] = {}
    rows = tail.removesuffix(b"\n").split(b"\n")
    raised *= not any(map(_FORWARD.search, rows[len(rows) - lines + raised :]))
    for number, raw in enumerate(rows, start=lines - len(rows) + 1):
        if not _WORTH.search(raw):
            continue
        line = line_of(raw[:LONGEST].decode(errors="replace"))
        whose = not 0 < raised < number or line.rank is not None or soft(line.text)
        if whose and succeeded(line.text):
            found[line.rank] = number
    return found


_AGAIN = re.compile(
    rb"\b(?:retry|retries|retrying|try(?:ing)? again|wait(?:ing)?)\b|\.cc:\d+ -> \d+\s*$|warnings\.warn\(|^[\W\d]*$",
    re.IGNORECASE,
)
"""Lines that only repeat, wait, or trace a call that failed."""


def spoken(tail: bytes, lines: int) -> int:
    """The last line that says something else than that a call is tried again, or waits."""
    rows = tail.removesuffix(b"\n").split(b"\n")
    return next((lines - at for at, raw in enumerate(reversed(rows)) if not _AGAIN.search(raw)), 0)


_GROUP = re.compile(r"\[PG (?:ID )?(?P<id>\d+)(?: PG GUID (?P<guid>\w+))?")
_WORK = re.compile(r"SeqNum=(?P<seq>\d+), OpType=(?P<op>\w+)(?:, NumelIn=(?P<size>\d+))?")
_REACHED = re.compile(
    r"last enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), last completed (?:NCCL )?work: (?P<completed>-?\d+)",
    re.IGNORECASE,
)


def facts(text: str) -> dict[str, Any]:
    """Pieces of a line: ``group``, ``seq``, ``op``, ``size``, ``enqueued``, ``completed``, as far as it has them."""
    found: dict[str, Any] = {}
    if group := _GROUP.search(text):
        found["group"] = f"{group['id']}/{group['guid'] or ''}"
    if work := _WORK.search(text):
        found |= {"seq": int(work["seq"]), "op": work["op"], "size": work["size"] or ""}
    if reached := _REACHED.search(text):
        found |= {"enqueued": int(reached["enqueued"]), "completed": int(reached["completed"])}
    return found


TAIL = 64 * 1024
"""Bytes before a log's end in which the last counter of each rank is looked for."""
MOST_COUNTER_LINES = 300
LONGEST_COUNTER = 500

_STEP = re.compile(
    r"(?<![\w.])['\"]?(?P<what>global[_ ]?step|step|iteration|iter|batch|epoch)s?\b['\"]?\s{0,3}"
    r"[:=#]?\s{0,3}\[?['\"]?\s{0,4}(?!\d+\.\d+ ON )(?P<at>\d{1,12}(?:\.\d{1,12})?)",
    re.IGNORECASE,
)
_COUNTER = re.compile(rb"(?:step|iter|iteration|epoch|batch)\D{0,10}\d", re.IGNORECASE)
_FORWARD = re.compile(
    rb"(?<![A-Za-z.])(?:(?:global[_ ]?)?step|iter(?:ation)?|epoch|batch|round)s?[\"']?\s{0,3}[:=#\[(]?\s{0,4}"
    rb"(?!\d+/\d+ : [A-Z]{3}|\d+\.\d+ ON )\d+"  # but no step of an image's build, or of Slurm
    rb"|\d%\|.{0,400}\d/\d|\b\w*[a-z]\w*=\d+\.\d+,? .{0,40}\b\w*[a-z]\w*=\d+\.\d+",
    re.IGNORECASE,
)
_BARS = re.compile(rb"%\|[^|\n]{0,300}\| *(\d+)/\d")
# Which of several counters on a line: the finest that rises over the whole run.
_FINENESS = ("globalstep", "step", "iteration", "iter", "epoch", "batch")


class LogTail:
    """Passes chunks on and keeps the end of what passed."""

    def __init__(self) -> None:
        self.kept = b""

    def keep(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks."""
        for chunk in chunks:
            self.kept = chunk[-TAIL:] if len(chunk) >= TAIL else (self.kept + chunk)[-TAIL:]
            yield chunk


def counter(text: str) -> tuple[str, float] | None:
    """The finest counter on a line, ``("step", 12.0)``; None when there is none."""
    found = {each["what"].lower().replace("_", "").replace(" ", ""): float(each["at"]) for each in _STEP.finditer(text)}
    for axis in _FINENESS:
        if axis in found:
            return ("step" if axis == "globalstep" else axis), found[axis]
    return None


_AFTERWARDS = re.compile(
    rb"wandb:|\bRun (?:summary|history)\b|mlflow|Self C(?:PU|UDA)\b|profil|__del__|atexit|resource_tracker|leaked",
    re.IGNORECASE,
)
"""Lines of trackers, profilers and the teardown of a process: no training goes on there."""
_STARTS = re.compile(
    rb"(?:^|[\s/])(?:torchrun|mpirun|mpiexec|horovodrun|deepspeed|accelerate|srun|python3?) |torch\.distributed\.run"
    rb"|start(?:ing|ed)\b|initializ|world_?size|nranks|resum|\battempt\b",
    re.IGNORECASE,
)
"""Signs that something was started once more."""


def progress(
    tail: bytes, lines: int, line_of: Callable[[str], Line] = strip, over: int = 0
) -> dict[int | None, tuple[int, ...]]:
    """Lines at the end of a log on which each rank came forward: counters and progress bars; None for nameless ones.

    Args:
        tail: The log's last bytes.
        lines: How many lines the log has.
        line_of: Tells who wrote a line.
        over: The line of the launcher's last words, after which only what is started anew comes forward; 0 for none.
    """
    found: dict[int | None, list[int]] = {}
    rows = tail.removesuffix(b"\n").split(b"\n")
    for number, raw in enumerate(rows, start=lines - len(rows) + 1):
        if 0 < over < number and _STARTS.search(raw):
            over = 0
        if not 0 < over < number and _FORWARD.search(raw) and not _AFTERWARDS.search(raw):
            drawn = len(set(_BARS.findall(raw)))  # a bar that was drawn anew in its line
            found.setdefault(line_of(raw[:LONGEST_COUNTER].decode(errors="replace")).rank, []).extend(
                [number] * max(1, drawn)
            )
    return {rank: tuple(numbers[-MOST_COUNTER_LINES:]) for rank, numbers in found.items()}


_OF_AN_END = re.compile(
    r"[\s|#~^=+*─│╭╰-]|Traceback|During handling|The above exception|File \"|frame #|srun:|slurmstepd:|wandb:"
    r"|Exception raised from|\[(?:New LWP|New Thread|Thread debugging|Inferior) |Using host libthread_db"
    r"|0x[0-9a-f]{6,} in |\d+\t|$"
)
"""Begins lines that belong to an end, or to nothing."""
SHORT = 240
"""Bytes of a line that show what it is."""


def ordinary(tail: bytes, lines: int, line_of: Callable[[str], Line]) -> tuple[int, ...]:
    """The lines near a log's end that a program that lives writes, as far as their begin tells."""
    rows = tail.removesuffix(b"\n").split(b"\n")
    shown = (line_of(raw[:SHORT].decode(errors="replace")).text for raw in rows)
    ends = (_OF_AN_END.match(text) or _STACK.match(text) for text in shown)
    return tuple(number for number, end in enumerate(ends, lines - len(rows) + 1) if not end)


_RECORD = re.compile(r"\[?20\d\d[-/]\d\d[-/]\d\d[T ,_]\d\d:\d\d")
"""Begins a record of a logger."""
WENT_ON = 20
"""Records that a logger writes after an exception that it logged as an error, where its program goes on."""


_KUBERNETES = re.compile(r"^\S+Z std(?:out|err) [FP] ")
"""The prefix of each line in Kubernetes' own files; its time is no logger's."""


def record(text: str) -> str:
    """The form in which a logger's record begins, and its level where that ends nothing; empty where it is none."""
    found = _RECORD.match(_KUBERNETES.sub("", text))
    return "" if found is None else re.sub(r"\d", "0", found[0]) + "~" * soft(text)


def without_logged(events: Iterable[Event], tail: bytes, lines: int) -> tuple[Event, ...]:
    """The events of a log; exceptions that a logger recorded before it wrote on are notes."""
    rows = tail.removesuffix(b"\n").split(b"\n")
    forms = [record(raw[:LONGEST].decode(errors="replace")).rstrip("~") for raw in rows]

    def went_on(event: Event) -> bool:
        form = str(event.facts.get("record", ""))
        later = forms[max(0, event.line - lines + len(rows)) :].count(form.rstrip("~")) if form else 0
        return later >= (1 if form.endswith("~") else WENT_ON)

    return tuple(replace(event, role=EventRole.NOTE) if went_on(event) else event for event in events)


_FAILED_REQUEST = re.compile(rb"\b5\d\d\b|^\s*$")
_SERVED = b'" 200'


def with_last_request(events: tuple[Event, ...], tail: bytes, lines: int) -> tuple[Event, ...]:
    """The events of a log; the exception of a request is one where its server answered no other, and says no more."""
    asked = [at for at, event in enumerate(events) if "asked" in event.facts]
    if not asked or _SERVED in tail:
        return events
    last, rows = events[asked[-1]], tail.removesuffix(b"\n").split(b"\n")
    later = rows[max(0, last.line - lines + len(rows)) :]
    said = str(last.facts.get("said", "")).encode()
    if not all(_FAILED_REQUEST.search(row) or row.strip() in said for row in later):
        return events
    shown = {name: value for name, value in last.facts.items() if name not in ("caught", "record")}
    return tuple(
        replace(event, soft=False, facts=shown, role=event.signature.role) if at == asked[-1] else event
        for at, event in enumerate(events)
    )


NARROWEST = 16
"""Characters of a line that more than one program will hardly write."""
BANNER = 60
"""Lines of a log's begin that a program may write whenever it starts."""


def begun(head: bytes, tail: bytes, lines: int, sign: int) -> int:
    """The line near a log's end on which its first lines come once more, as they do where a program is started again.

    Args:
        head: The log's first bytes.
        tail: The log's last bytes.
        lines: How many lines the log has.
        sign: The line of its first sign of an end: what is written from there on is no banner.
    """
    top = head.split(b"\n")[: min(BANNER, sign - 1)]
    # Steps say nothing; LSF's report and an exception are ends.
    ends = (REPORT[1:], b"Exception: ", b"Traceback (most", b'  File "')
    top = top[: next((at for at, raw in enumerate(top) if _FORWARD.search(raw) or any(w in raw for w in ends)), BANNER)]
    places = {form: at for at, form in reversed([*enumerate(map(form, top))]) if len(form) >= NARROWEST}
    rows = tail.removesuffix(b"\n").split(b"\n")
    forms = enumerate(map(form, rows), start=lines - len(rows) + 1)
    seen = [(number, places[form]) for number, form in forms if form in places and number > BANNER]
    again = [
        a for a, b, c in zip(seen, seen[1:], seen[2:], strict=False) if a[1] < b[1] < c[1] and c[0] - a[0] <= BANNER
    ]
    return max((number for number, _ in again if lines - number >= LAST), default=0)


def last_counter(tail: bytes, line_of: Callable[[str], Line] = strip) -> dict[int | None, tuple[str, float]]:
    """The last counter of each rank that the end of a log names; None stands for lines that name none."""
    found: dict[int | None, tuple[str, float]] = {}
    worth = [raw for raw in tail.splitlines() if _COUNTER.search(raw)]
    for raw in worth[-MOST_COUNTER_LINES:]:
        line = line_of(raw[:LONGEST_COUNTER].decode(errors="replace"))
        if (reached := counter(line.text)) is not None:
            found[line.rank] = reached
    return found
