"""One log becomes the events of its ranks. The text is streamed: memory does not grow with the log."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from amlstack.diagnose import signatures
from amlstack.diagnose.events import Log, Origin, Stamp, find_stamp, last_stamp
from amlstack.diagnose.reading import last_words, lines, messages, records, tracebacks, writers
from amlstack.diagnose.reading.collector import LONGEST_TEXT, NEAR, Collector
from amlstack.diagnose.reading.terminal import NARROWEST, wraps
from amlstack.diagnose.reading.writers import Layout
from amlstack.diagnose.signatures import EventRole, by_code, hedged, match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amlstack.diagnose.reading.writers import Line
    from amlstack.diagnose.signatures import Signature

    Writer = tuple[int | None, int | None]

NAMELESS = (None, None)
MOST_WRITERS = 256
ECHO = 5
"""Lines that a script still writes after the uncaught exception of its program."""
CUT = 20
"""Lines after a traceback's last frame at a log's end: its exception was cut off rather than lost among others."""
PATIENCE = 200
"""Lines after which a message that its writer did not go on with is complete."""
ATTENTION = 20_000
"""Lines of a log that are read only because they may continue a message."""
_SPAWNED = re.compile(r"^(?:-- Process |Exception in device=\w+:)(\d{1,5})(?: terminated with the following error|: )")
_LOCAL = re.compile(r"--local[_-]rank=(\d{1,5})\b")
_RANKED_HEADER = re.compile(rf"\S.*\[rank ?(?P<rank>\d{{1,6}})\]: ?{re.escape(tracebacks.HEADER)}$")
"""A header that stands behind a progress bar, with its rank: the next lines have the rank at their beginning."""
_IGNORED = re.compile(
    r"Exception ignored in|--- Logging error ---|Error in atexit\._run_exitfuncs"
    r"|\W?(?:WARN(?:ING)?\b(?! NCCL).*|(?:INFO|DEBUG)\b\S{0,20} )Traceback \("
    r"|(?P<asked>Exception \w+ during processing of request"
    r"|.{0,60}\bException (?:in ASGI application|on /\S* \[[A-Z]+\]))"
)
"""Begins what is shown of an exception that was caught, and ends no program."""
_ASIDE = ("Exception in thread ", "Exception in callback ", "future: <Task finished", "future: <Future finished")
"""Begin what Python prints of an exception that ends a thread or a task, and not the program."""
_WRAPPERS = ("Exception", "Exception:")
_WITHOUT = 3
"""Lines above a traceback in which a library says that it does without what it shows."""
_OF_UNITTEST = re.compile(r"(?:ERROR|FAIL): .+ \([\w.]+\)$")
"""Begins what unittest shows of a test that failed."""
_LISTS = re.compile(r"\d validation errors? for \S+$|:$")
"""Ends the first line of a message that goes on with a list."""
_NOTHING = re.compile(
    r"(?:Attribute|Type)Error: 'NoneType' object (?:has no attribute|is not|does not)\b|(?:Exception|RuntimeError)$"
)
"""A function made nothing, or an exception says nothing: it may have logged why right above."""
_PARENT = "subprocess.CalledProcessError: "
_ENVIRONMENT = re.compile(r"(?:^|[/\\])os\.py$")
"""The file in which a KeyError is about `os.environ`."""
BEGIN = 12
"""Lines at a log's begin that are read whatever they hold: it may have been cut within a traceback of a notebook,"""
PLAIN = 6
"""or within a plain one."""


class Exceptions:
    """Reads tracebacks line by line, and gives back the lines that are none.

    Args:
        collector: Gets the events.
    """

    __slots__ = (
        "_above", "_aside", "_asked", "_attention", "_began", "_collector", "_ignored", "_last_raised", "_messages",
        "_readers", "_records", "_spawned", "_until",
    )  # fmt: skip

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._readers: dict[Writer, tracebacks.TracebackReader] = {}
        self._messages: dict[Writer, messages.MessageReader] = {}
        self._last_raised: dict[Writer, int] = {}
        self._spawned: int | None = None
        self._ignored: set[Writer] = set()
        self._aside: set[Writer] = set()
        self._records: dict[Writer, str] = {}
        self._above: tuple[int, list[str]] = 0, []
        self._asked = False
        self._began: Writer | None = None
        self._until, self._attention = 0, ATTENTION

    @property
    def open(self) -> bool:
        """True where the next line may belong to a traceback or a message."""
        return bool(self._messages) or any(reader.open for reader in self._readers.values())

    def notice(self, number: int, line: Line) -> None:
        """Takes a line that may say whose the next exception is, or that it or the line above ends nothing."""
        if line.text.lstrip().startswith(_WARNS):
            self._collector.warned(number - 1)
        if found := _SPAWNED.match(line.text):
            self._spawned = int(found[1])
        if found := _IGNORED.match(line.text):
            self._ignored.add((line.rank, line.local))
            self._asked = found["asked"] is not None
        if line.text.startswith(_ASIDE):
            self._aside.add((line.rank, line.local))

    def below(self, number: int, line: Line, above: Callable[[], Iterable[str]]) -> None:
        """Takes a header and the lines above it, the nearest first: a logger's record, the words of a child."""
        lines = list(above())
        self._above = number, lines
        self._records.pop((line.rank, line.local), None)
        if lines and (form := messages.record(lines[0])):
            self._records[line.rank, line.local] = form

    def _follows_from(self, raised: tracebacks.Raised, line: Line) -> bool:
        """Adds the error above an exception that follows from it: what a child printed, or why nothing was made."""
        number, above = self._above
        nothing = _NOTHING.match(raised.text) is not None
        looked_at = _WITHOUT if nothing else len(above) * raised.text.startswith(_PARENT)
        said = [writers.plain(text) for text in above[:looked_at]]
        same = raised.text.partition(": ")[2] if nothing else ""  # what was only printed before it was raised
        rows = [at for at in reversed(range(len(said))) if not _OF_UNITTEST.match(said[at])]
        rows = [at for at in rows if not (same and same in said[at])]
        found = next((at for at in rows if last_words.logged_as_error(said[at])), None)
        if found is None and not nothing:
            found = next((at for at in rows if last_words.tells_of_an_end(said[at])), None)
        if found is None:
            return False
        at, facts = number - 1 - found, {"over": True}
        self._collector.add(by_code("logged-error"), at, line, said[found], facts=facts)
        return True

    def feed(self, number: int, line: Line, stamp: Callable[[], Stamp | None]) -> Line | None:
        """Take a line and return the part to judge as a line of its own; None when no part is left."""
        if self._messages:
            self._attention -= 1
            if number > self._until or self._attention < 0:
                self._messages.clear()
        if (found := _RANKED_HEADER.search(line.text)) is not None:
            line = line._replace(rank=int(found["rank"]), text=tracebacks.HEADER)
        writer = own = (line.rank, line.local)
        if (begun := self._continued(writer, line.text)) is not None:
            writer, line = begun, line._replace(rank=begun[0], local=begun[1])
        reader = self._reader(writer)
        bare = reader.bare(line.text)
        if number <= BEGIN and not self._last_raised:
            bare = reader.begin_within(bare, plain=number <= PLAIN, flat=line.dated)
        if bare != line.text:
            line = line._replace(text=bare)
        inside = reader.open
        one = reader.feed(line.text, number) if not (several := tracebacks.inline(line.text, number)) else None
        for raised in several or filter(None, (one,)):
            self._raised(writer, raised, writers.named(line, reader.before), stamp())
        if several or one is not None:
            if own != writer:  # its message goes on without a prefix as well
                self._last_raised[own] = self._last_raised[writer]  # as may those of its chain
                self.message(writers.Line("", *own), self._last_raised[writer], number)
            return None
        if not reader.open:
            return None if self._goes_on(writer, number, line) else line
        self._collector.cover(number)
        # Frames quote source code: words of an error in it mean nothing. Lines of others may come between.
        self._messages.pop(writer, None)
        if not inside:
            self._began = writer if writer != NAMELESS else None
            # The text before the header in its line is a summary, or a progress bar.
            line = line._replace(text=line.text.partition(tracebacks.HEADER)[0])
        return None if tracebacks.quoted(line.text) or (inside and tracebacks.HEADER in line.text) else line

    def _continued(self, writer: Writer, text: str) -> Writer | None:
        """Whose traceback a line goes on with: that of a writer whose name stands before the header alone."""
        if writer == self._began or (writer == NAMELESS and tracebacks.HEADER in text):
            self._began = None  # its name stands before every line, or another traceback begins
        begun = self._began
        if begun is None or writer != NAMELESS or self._reader(NAMELESS).open:
            return None
        return begun if self._reader(begun).open else None

    def ignored(self, line: Line) -> bool:
        """True where the lines before say that an exception was caught; it is asked for once."""
        writer = (line.rank, line.local)
        found = writer in self._ignored
        self._ignored.discard(writer)
        return found

    def message(self, line: Line, at: int, number: int) -> None:
        """The message of an event may go on in the writer's next lines."""
        if len(self._messages) < MOST_WRITERS and self._attention > 0:
            reader = self._messages.setdefault((line.rank, line.local), messages.MessageReader())
            reader.begin(at, dated=line.dated)
            self._until = number + PATIENCE

    def finish(self, lines: int) -> None:
        """The log has ended: messages that end with it, and tracebacks whose end is missing."""
        for message in self._messages.values():
            if (
                message.at is not None
                and message.loose <= messages.MOST_LOOSE * message.stack
                and message.end >= lines - 1
            ):  # the log ends with frames, or a list of faults
                event = self._collector.events[message.at]
                self._collector.cover_all(range(event.line, lines))
                soft = event.soft and _SUMMARY not in event.text
                self._collector.events[message.at] = replace(event, soft=soft, facts={**event.facts, "over": True})
        for (rank, local), reader in self._readers.items():
            cut = reader.cut_short()
            if cut is None or lines - cut.line > CUT:
                continue
            if cut.chained and (at := self._last_raised.get((rank, local))) is not None:
                self._collector.cut_off(at, lines)
                continue
            if reader.headless and any(each.code == "bare-exception" for each in self._collector.events[:1]):
                continue  # the exception stands above its frames
            line = writers.named(writers.Line("", rank, local), reader.before)
            if not cut.text.startswith("at "):
                self._raised((rank, local), cut, line, None)
                continue
            rest: dict[str, Any] = {"soft": (rank, local) in self._ignored, "facts": _facts(cut)}
            above = writers.plain(next(iter(self._above[1]), ""))
            if last_words.logged_as_error(above):  # the program printed what its exception says first
                cut = replace(cut, text=f"{above} ({cut.text})")
            # How a program was started says nothing of what it did.
            code = "traceback-cut-short" if cut.says else "launcher-wrapper"
            signature = by_code("interrupted" if reader.before.endswith(last_words.INTERRUPTED) else code)
            self._collector.add(signature, cut.line, line, cut.text, origin=Origin.TRACEBACK, source=cut.frame, **rest)

    def _goes_on(self, writer: Writer, number: int, line: Line) -> bool:
        """Takes a line that may continue the writer's last message, and makes more of its event where it says more."""
        reader = self._messages.get(writer)
        if reader is None:
            return False
        at, text = reader.at, line.text
        indented = not text[:1].strip()
        again = at is not None and _TRIED_AGAIN.search(text) is not None
        if at is not None and again and number - self._collector.events[at].line <= CONTINUES:
            self._collector.retried(at)
        if at is None or again or not reader.feed(text.strip(), dated=line.dated, indented=indented):
            del self._messages[writer]
            return False
        self._until, reader.end = max(self._until, number + PATIENCE * (indented or reader.stack)), number
        event = self._collector.events[at]
        self._collector.show(at, text)
        self._collector.hear(at, text)
        if reader.left >= 0 or reader.stack:
            self._collector.cover(number)
        deeper = (event.text.endswith(":") and text[:1] in " \t") or event.text.endswith(" TorchScript interpreter.")
        if deeper and tracebacks.same_class(event.text, text.strip()):
            self._collector.sharpen(at, event.signature, number, text, {})  # the message quotes the traceback itself
            return True
        of_java = event.text.startswith("Py4J") and messages.JAVA.match(text)
        if of_java or text.startswith(messages.CAUSED):
            self._collector.sharpen(at, event.signature, number, text.removeprefix(messages.CAUSED), {})
            return True
        before, own = str(event.facts.get("said", event.text)).rpartition("\n")[2], match(text)
        found = messages.better(event.signature, text)
        if found is None and len(before) >= NARROWEST and text[:1].strip():  # broken at a space
            text = f"{before} {text}"
            found = messages.better(event.signature, text)
        inner = f"{event.facts.get('inner', 'c10d' * (event.code != 'bare-exception'))}\n{event.text}"
        if found is not None and found[0].role is EventRole.VICTIM and not tracebacks.COMMUNICATION.search(inner):
            found = None  # what its process says later is a consequence
        if found is not None:
            self._collector.sharpen(at, found[0], number, text, {**messages.values(found[1]), **messages.facts(text)})
        return found is not None or own is None

    def _reader(self, writer: Writer) -> tracebacks.TracebackReader:
        if writer not in self._readers and len(self._readers) >= MOST_WRITERS:
            self._readers = {key: each for key, each in self._readers.items() if each.open}
        return self._readers.setdefault(writer, tracebacks.TracebackReader())

    def _meant(self, raised: tracebacks.Raised, line: Line) -> tuple[Signature, dict[str, str]]:
        """The signature of an exception, and pieces of its text."""
        found = match(raised.text)
        if self._follows_from(raised, line):
            return by_code("launcher-wrapper"), {}
        if found is None and raised.text.startswith("KeyError: ") and _ENVIRONMENT.search(raised.inner):
            return by_code("environment-variable-missing"), {}
        if found is None or found[0].role in (EventRole.CONTEXT, EventRole.NOISE):
            return by_code("python-exception"), {}
        return found

    def _caught(self, raised: tracebacks.Raised, signature: Signature) -> dict[str, str]:
        """Facts on who caught an exception, from the lines above its traceback and from its first frame."""
        facts: dict[str, str] = {}
        above = (text for text in self._above[1] if text.strip())
        if (
            raised.caught
            and signature.kind != "stop"
            and any(map(tracebacks.DONE_WITHOUT.search, islice(above, _WITHOUT)))
        ):
            facts["guess"] = "said"
        logged = bool(self._above[1]) and last_words.logged_as_error(writers.plain(self._above[1][0]))
        if raised.caught == "own" or (raised.caught and logged):
            facts["caught"] = raised.caught
        return facts

    def _raised(self, writer: Writer, raised: tracebacks.Raised, line: Line, time: Stamp | None) -> None:
        signature, facts = self._meant(raised, line)
        events = self._collector.events
        if self._spawned is not None and writer == (None, None):
            facts, self._spawned = {**facts, "local": str(self._spawned)}, None
            at = self._last_raised.get(writer)
            if at is not None and events[at].text in _WRAPPERS:  # the parent's, whose message goes on with this
                wrapper = by_code("launcher-wrapper")
                events[at] = replace(events[at], signature=wrapper, role=wrapper.role)
        if signature.role is EventRole.VICTIM and signature.kind != "stop" and raised.meets:
            signature = by_code("rendezvous-timeout")  # who never met a peer did not lose one
        at = self._last_raised.get(writer)
        if at is not None and at < len(events) and self._reader(writer).cell and not raised.chained:
            # A program that ended and said nothing yet reports what a notebook raised.
            raised = replace(raised, original="main" in events[at].facts and events[at].text.endswith(":"))
        if (raised.chained or raised.original) and at is not None and at < len(events):
            self._collector.chain(at, raised, signature, time)
            return
        ignored = self.ignored(writers.Line("", *writer))
        if ignored and self._asked:
            facts = {**facts, "asked": "request"}
        if writer in self._aside:
            self._aside.discard(writer)
            facts = {**facts, "aside": "thread"}
        elif (form := self._records.pop(writer, None)) and not raised.main:
            facts = {**facts, "record": form}
        facts = {**facts, **self._caught(raised, signature)}
        before = len(events)
        self._collector.add(
            signature,
            raised.line,
            line,
            raised.text,
            time=time,
            facts={**messages.values(facts), **_facts(raised)},
            origin=Origin.TRACEBACK,
            source=raised.frame,
            soft=ignored,
        )
        if len(events) > before:
            self._last_raised[writer] = before
            self._messages.pop(writer, None)
            if not ((ignored and not _LISTS.search(raised.text)) or signature.kind == "stop"):
                self.message(line._replace(rank=writer[0], local=writer[1]), before, raised.line)


def _facts(raised: tracebacks.Raised) -> dict[str, Any]:
    return {
        **({"packages": raised.packages} if raised.packages else {}),
        **({"inner": raised.inner} if raised.inner else {}),
        **({"main": raised.main} if raised.main else {}),
        **({"local": int(local[1])} if raised.own_command and (local := _LOCAL.search(raised.text)) else {}),
    }


MOST_LOOKED_BACK = 2000
"""Lines without a time for which the lines before are searched for one."""
LEAD = 100
"""Characters of a long line before the sign that it holds that are shown with it."""
_FRAME = re.compile(r"(?:[\w.-]+: )?frame #\d+: ")
_UNREAD = re.compile(r"\W*(?P<class>(?:Syntax|Indentation|Tab)Error)(?P<torn>(?P=class))?(?:[\W\d]*$|: )(?P<said>.*)")
"""Exceptions that Python prints without a header where it cannot read the program itself, also two that were torn."""
_EXITED = re.compile(
    r"\bprocess\b.{0,40} exited with (?:status )?code [1-9]|^\S*(?:python[\d.]*|perl|sh): (?:\d+: )?[Cc]an't open "
)
_UNCAUGHT_OF_JS = re.compile(
    r"^(?:(?:[\w.-]+:\d+ )?[Uu]ncaught (?:\(in promise\):? )?|\[Unhandled promise rejection: "
    r"|\d+\. Unhandled (?=\w+\.)|\(node:\d+\) UnhandledPromiseRejectionWarning: )"
    r"(?=(?:\w+ )?\w*Error: |[\w.]+Exception$)"
)
"""Begins what a browser or Node.js prints of an exception that nobody caught."""
_UNCAUGHT = re.compile(r"ERROR: (?:Load|Init)Error: (?P<said>\S.*)")
"""Begins what Julia prints of an exception that ended its program."""
SHOWN = 8
"""Lines before them that name the place and quote it, of two processes."""
_OF_SHELL = re.compile(
    r"(?:.*: line \d+: +\d+ |\[\d+\][+-]? +\d* *|zsh: )?"
    r"(?:Abort|abort|IOT instruction|(?P<crash>(?i:segmentation fault)))"
)
"""Begins a shell's word of a program that ended itself: the program may have said why in the line above."""
FATAL = (": fatal error", ": CUDA error", ": ROCm error", ": HIP error", ": MUSA error")
"""End the place in its source that a program of ggml names when it aborts: the reason stands above it."""
_SAYS_WHY = re.compile(r"error|fail|cannot|could not|unable|invalid|assert|unsupported|missing", re.IGNORECASE)
_TRIED_AGAIN = re.compile(r"\bWARN(?:ING)?\b.*\b[Rr]etry(?:ing)?\b|^\W{0,3}(?:[Rr]etrying|[Tt]rying again)\b")
"""A line right below an exception: its program tries again."""
_WARNS = ("warn(", "warnings.warn(")
"""Begin the source code that Python shows below a warning."""
CONTINUES = 2
"""Lines between a warning and the place in C++ that it comes from."""
_RECORDED = re.compile(r'"(?:message|msg|error|exception)": ?"(?P<text>[A-Za-z_][\w.]*(?:Error|Exception): .*?)"?,?$')
"""An exception as a value of a record that is printed over several lines."""
_REPRESENTED = re.compile(r"(?P<class>[A-Za-z_][\w.]*(?:Error|Exception))\((?P<quote>['\"])(?P<text>.+)(?P=quote)\)$")
"""An exception as Python represents it, in a line of its own."""
_REPORTED = re.compile(
    r".{0,40}Error reported to Coordinator: <(?:class|type) '(?:[\w.]*\.)?"
    r"(?!OutOfRange|Cancelled|Aborted|Unavail)(?P<class>\w+)'>, (?P<text>.+)"
)
"""An exception at which TensorFlow stops a training, though it says "Finished" then. Two of those left out are how data
end, and after the others a session may be made anew."""
_OCCURRED = re.compile(r"Exception has occurred: (?P<class>[\w.]+(?:Error|Exception))$")
"""The line of a debugger on an exception: the message stands in the next line."""
_TRACKER = re.compile(rb"^[\d-]+ [\d:,]+ +[A-Z]+ +[\w-]+ *:\d+ \[\w+\.py:\S+\(\):\d+\]")
"""Begins the log that wandb keeps of itself, without which a run does."""
_OF_JAVA = re.compile(r"#\s+(?=(?:SIG[A-Z]+|EXCEPTION_\w+) \(0x)")
"""Begins the line in which Java's virtual machine names the signal that ended it, in a report of comments."""
_OF_GDB = re.compile(r"\d+\s+\S+\.(?:c|cc|cpp|h|S): No such file or directory\.?$")
"""Begins what gdb says where it has not the source of a frame."""
_OF_PROTOBUF = "[libprotobuf ERROR "
"""Begins what protobuf says of a text that it cannot read, above the check that fails then."""
_GLOG = re.compile(r"(?:^|: |[\])] )(?P<record>F\d{4} [\d:.]+ +\d+ \S+:\d+\] .+|.*\(\S+ vs\. \S+\).*)")
"""The record of glog that ends a program, or the rest of one that is cut off: its stack stands below."""
_SUMMARY = "Current allocation summary follows"
"""Ends what TensorFlow says of an allocation that failed for good."""
_WITH_STACK = re.compile(
    r"Exception in thread |panic: |Error:$|fatal error: |Unhandled [Ee]xception|\*\*\* Error in .*: 0x[0-9a-f]+ \*\*\*$"
    r"|.*Current allocation summary follows"
)
"""Begins a line below which a program shows its stack, or its memory."""
_OURS = re.compile(r"(?:\[[^\]]*\]:? ?)*amlstack: ")
"""Begins what a rehearsal itself writes into a rank's log: no cause, whatever it quotes."""


class Scanner:
    """Reads one log line by line.

    Args:
        name: The log, as it is shown.
        rank: Its rank, when it is one rank's own log.
        node: Its node, when its folder names it.
    """

    __slots__ = (
        "_block", "_exceptions", "_looked_back", "_notes", "_read", "_table", "collector", "layout", "name", "node",
        "prefixes",
    )  # fmt: skip

    def __init__(self, name: str, rank: int | None = None, node: str | None = None) -> None:
        self.name, self.node = name, node
        self.layout = Layout(rank)
        self.collector = Collector(name, node)
        self._exceptions = Exceptions(self.collector)
        self._table = records.TableReader()
        self._block = messages.BlockReader()
        self.prefixes = writers.Prefixes()
        self._notes = self._looked_back = self._read = 0

    def attentive(self) -> bool:
        """True where every following line matters: inside a traceback, a table or a summary of several lines."""
        collector = self.collector  # asked for every line of a log: plain attributes, no calls
        return (
            self._table.open
            or self._read < BEGIN
            or self._block.open
            or collector.details > 0
            or collector.dumped > 0
            or self._exceptions.open
        )

    def _is_note(self, number: int, raw: str) -> bool:
        """True where a line is no output of the run: on an excerpt's origin, above it, or by the rehearsal itself."""
        if number == self._notes + 1 and raw.startswith("#"):
            self._notes = number
            return True
        return _OURS.match(raw) is not None

    def feed(self, number: int, raw: str, before: Callable[[], Iterable[str]]) -> None:
        """Takes one line."""
        self._read += 1
        raw = _OF_JAVA.sub("", raw) if raw[:1] == "#" else raw.removeprefix("\ufeff")
        if self._is_note(number, raw):
            return
        line = self.prefixes.line_of(raw)
        self.layout.feed(line)
        self._exceptions.notice(number, line)
        if line.text.lstrip().startswith("Traceback"):
            self._exceptions.below(number, line, before)

        def stamp() -> Stamp | None:
            own = find_stamp(raw[:160])
            if own is not None or self._looked_back >= MOST_LOOKED_BACK:
                return own
            self._looked_back += 1
            return last_stamp(before())

        row = self._table.feed(line.text, number)
        if row is not None:
            self._row(row)
        if self._table.open:
            return
        if (block := self._block.feed(line.text, number)) is not None:
            self._whole(block, line, stamp)
        self.collector.follow(line)
        rest = self._exceptions.feed(number, line, stamp)
        if rest is None:
            return
        text = rest.text.strip()
        unread = _UNREAD.match(text) if "Error" in text[:80] else None
        frame = tracebacks.frame_in("\n".join(islice(before(), SHOWN))) if unread is not None else None
        if unread is not None and frame is not None and frame.own and not frame.function:
            said = f": {unread['said'].lstrip(': ')}" if unread["said"] else ""  # else it may come in the next line
            text = f"{unread['class']}{said}"
            of = {"origin": Origin.TRACEBACK, "source": frame, "facts": {"main": True}}
            self._added(rest, by_code("python-exception"), number, text, time=stamp(), **of)
        elif uncaught := _UNCAUGHT.match(text):
            of = {"origin": Origin.TRACEBACK, "facts": {"main": True}}
            self._added(rest, by_code("python-exception"), number, uncaught["said"], time=stamp(), **of)
        elif reported := _REPORTED.match(text):
            of = {"origin": Origin.TRACEBACK, "facts": {"stops": True}}
            text = f"{reported['class']}: {reported['text']}"
            self._added(rest, by_code("python-exception"), number, text, time=stamp(), **of)
        else:
            self._line(number, rest, stamp, before)

    def _whole(self, block: tuple[int, str], line: Line, stamp: Callable[[], Stamp | None]) -> None:
        """The whole text of one of Open MPI's messages, unless its lines have shown the same already."""
        begin, text = block
        found = match(text)
        if found is None or found[0].role in (EventRole.NOISE, EventRole.CONTEXT) or "WARNING:" in text[:20]:
            return
        if not any(event.line >= begin and event.weight >= found[0].weight for event in self.collector.events[-8:]):
            facts = {**messages.values(found[1]), "block": True}
            self.collector.add(found[0], begin, line, text, time=stamp(), facts=facts)

    def last_words(self, shown: tuple[int, Line, int] | None, lines: int) -> None:
        """Takes the error that the program logged last: it counts where the log shows no other sign of an end."""
        if shown is None:
            return
        number, line, begin = shown
        # What another event is about already, or a log with a better sign, gains nothing.
        better, near, events = (EventRole.CULPRIT, EventRole.VICTIM), number - NEAR, self.collector.events
        said = {"over": True} if begin else {}
        if begin and lines - number > NEAR:  # a report stands below
            self.collector.cover_all(range(number, lines))
        if line.text and not any(
            (event.line == number and not event.soft)
            or (
                event.role in better
                and near <= event.line
                and not ((begin or event.origin is Origin.LINE) and event.line < number - last_words.LAST)
                and not (event.soft and event.origin is Origin.LINE)
                and not (begin and event.signature.kind == "stop" and event.line > number)
            )
            for event in events
        ):
            code = "interrupted" if line.text == last_words.INTERRUPTED else "logged-error"
            self.collector.add(by_code(code), number, line, line.text.strip(), facts=said)
        for at, event in enumerate(events if begin else ()):
            if (
                event.line >= min(begin, near)  # the one that the last words gave way to
                and event.role is EventRole.CULPRIT
                and event.origin is Origin.LINE
                and not event.soft
            ):
                events[at] = replace(event, facts={**event.facts, **said})

    def finish(self, lines: int, parts: Iterable[bytes] = ()) -> Log:
        """The log with everything that was seen.

        Args:
            lines: How many it has.
            parts: Its begin and its end, which may tell the ranks of processes.
        """
        row = self._table.finish()
        if row is not None:
            self._row(row)
        self._exceptions.finish(lines)
        layout, events = self.layout, self.collector.events
        if any(event.rank is None and "pid" in event.facts for event in events):
            events = writers.ranked(events, writers.seen(parts), layout.world)
        if layout.launcher:  # each task is a launcher's, on a node of its own
            events = [each if "task" not in each.facts else replace(each, rank=None) for each in events]
        rank = None if layout.rank is None or not layout.launcher else str(layout.rank)
        return Log(
            name=self.name,
            lines=lines,
            rank=None if layout.launcher else layout.rank,
            node=rank if self.node is None else self.node,
            launcher=layout.launcher,
            ranks=frozenset(layout.ranks),
            ready=frozenset(layout.ready),
            world=layout.world,
            per_node=layout.per_node,
            events=tuple(sorted(events, key=lambda event: event.line)),
            ending=self.collector.ending(lines),
        )

    def _line(
        self, number: int, line: Line, stamp: Callable[[], Stamp | None], before: Callable[[], Iterable[str]]
    ) -> None:
        text = line.text.strip()
        if _FRAME.match(text):  # names a function of C++, and says nothing of it
            return
        text = _as_raised(_OCCURRED.sub(r"\g<class>:", text))
        if text.startswith("what():"):
            self.collector.thrown(number, text)
        raised = tracebacks.definite(text, lived=True)
        if raised and self._exceptions.ignored(line):
            return
        found, text, number = _judged(text, number, before)
        if found is None:
            if raised and not writers.soft(text):
                self._bare(number, line, text, stamp(), before)
            return
        signature, facts = found
        if signature.role is EventRole.NOISE:
            return
        without = tracebacks.DONE_WITHOUT.search(text) is not None
        soft = signature.role in (EventRole.CULPRIT, EventRole.VICTIM) and (writers.soft(text) or (raised and without))
        soft &= not (signature.kind == "stop" and tracebacks.GIVES_UP.search(text))
        soft |= signature.role is EventRole.NOTE
        if text.startswith("Exception raised from") and (last := self.collector.events[-1:]):
            soft |= last[0].soft and number - last[0].line <= CONTINUES
        read = messages.values(facts)
        if signature.code in ("nccl-watchdog-timeout", "nccl-heartbeat"):
            read |= messages.facts(text)
        if signature.role is EventRole.CULPRIT and not signature.ends and (without or hedged(text, signature)):
            read["guess"] = "raised" if raised and without else "said"
        fatal = text.endswith(FATAL)
        if fatal or (("exited with" in text or signature.code == "file-missing") and _EXITED.search(text)):
            read["over"] = True
        if fatal or signature.code in ("aborted", "segmentation-fault", "native-fatal-error"):
            text = _with_reason(text, before())
        self._added(line, signature, number, _part_with(signature, text), time=stamp(), soft=soft, facts=read)

    def _bare(
        self, number: int, line: Line, text: str, time: Stamp | None, before: Callable[[], Iterable[str]]
    ) -> None:
        """Adds an exception that nothing more is known of, without a header."""
        bare = text.endswith(":") or messages.JAVA.match(text)  # its message or its frames may stand below
        lived = not tracebacks.definite(text) and not bare
        above = [] if lived else [text for text in islice(before(), SHOWN) if text]
        frame = tracebacks.frame_in("\n".join(reversed(above))) if above and above[0][:1] == " " else None
        whole = frame is not None and frame.function  # its header was one of too many
        rest: dict[str, Any] = {"origin": Origin.TRACEBACK, "source": frame} if whole else {}
        signature = by_code("python-exception" if whole else "bare-exception")
        self._added(line, signature, number, text, time=time, soft=lived, **rest)

    def _added(self, line: Line, signature: Signature, number: int, text: str, **rest: Any) -> None:
        """Adds an event of a line; of one that reads like an exception the message may go on."""
        before = len(self.collector.events)
        self.collector.add(signature, number, line, text, **rest)
        raised = tracebacks.definite(text, lived=True) or _WITH_STACK.match(text)
        if len(self.collector.events) > before and raised and (_SUMMARY in text or not rest.get("soft")):
            self._exceptions.message(line, before, number)

    def _row(self, row: records.FailedProcess) -> None:
        self.layout.launcher = True
        self.layout.ranks.add(row.rank if row.rank is not None else 0)
        line = writers.Line("", rank=row.rank, local=row.local, node=row.host)
        facts: dict[str, Any] = {"exit": row.code, "root": row.root, "error_file": row.error_file}
        time = find_stamp(row.time)
        found = match(row.last_reason)
        if found is not None or tracebacks.definite(
            row.last_reason, lived=True
        ):  # no bar that was printed into the table
            signature = found[0] if found is not None else by_code("python-exception")
            frame = tracebacks.frame_in("\n".join(text[2:] for text in row.reason[1:]))
            self.collector.add(
                signature, row.line, line, row.last_reason, time=time, facts=facts, origin=Origin.TABLE, source=frame
            )
            return
        text = f"rank {row.rank} (local rank {row.local}) ended with exit code {row.code}"
        signature = by_code(signatures.code_of(row.code) or "exit-summary")
        self.collector.add(signature, row.line, line, text, time=time, facts=facts, origin=Origin.TABLE)


def _judged(
    text: str, number: int, before: Callable[[], Iterable[str]]
) -> tuple[tuple[Signature, dict[str, str]] | None, str, int]:
    """The sign that a line holds, with its text and number: of glog's word below a fatal record that record's."""
    found = None if _OF_GDB.match(text) else match(text)
    if found is not None and found[0].code == "fatal-log-line":
        record = _GLOG.search(next(iter(before()), ""))
        if record is not None:
            return (by_code("native-fatal-error"), {}), record["record"], number - 1
    return found, text, number


def _part_with(signature: Signature, text: str) -> str:
    """A line, or of a long one the part with the sign."""
    if len(text) > LONGEST_TEXT and signature.pattern is not None and (at := signature.pattern.search(text)):
        return f"…{text[at.start() - LEAD :]}" if at.start() > LONGEST_TEXT - LEAD else text
    return text


def _as_raised(text: str) -> str:
    """An exception as a traceback shows it, where a line holds it as a record's value or as Python represents it."""
    if text.startswith(": ") and messages.JAVA.match(text[2:]):  # the second line of Py4J's exception
        return text[2:]
    text = _UNCAUGHT_OF_JS.sub("", recorded["text"] if (recorded := _RECORDED.match(text)) else text)
    return f"{shown['class']}: {shown['text']}" if (shown := _REPRESENTED.match(text)) else text


def _with_reason(text: str, before: Iterable[str]) -> str:
    """A shell's word of an abort, or the place of one, behind what the program itself says of it right above."""
    rows = [row.strip() for row in islice(before, CONTINUES) if row.strip()]
    if found := _OF_SHELL.match(text):
        rows = [row for row in rows[:1] if not found["crash"] or last_words.logged_as_error(row)]
    elif not text.endswith(FATAL):
        rows = [row for row in rows[:1] if _OF_PROTOBUF in row]
    above = next((row for row in rows if _SAYS_WHY.search(row) and not writers.soft(row)), None)
    return text if above is None else f"{above} ({text})"


def scan(name: str, chunks: Iterable[bytes], *, rank: int | None = None, node: str | None = None) -> Log:
    """Reads a log.

    Args:
        name: As it is shown.
        chunks: Its bytes, UTF-8 or nearly, in pieces of any size.
        rank: The rank whose log it is, when the file's name has it.
        node: The node it comes from, when the folder's name has it.
    """
    scanner = Scanner(name, rank, node)
    number = 0
    tail = messages.LogTail()
    blocks = lines.whole_lines(chunks)
    first = next(blocks, b"")
    scanner.prefixes.sample(first)
    line_of = scanner.prefixes.line_of
    broken, blocks = wraps(first, line_of), chain(filter(None, (first,)), blocks)
    blocks = tail.keep(broken.rejoined(blocks) if broken.width else blocks)
    first = next(blocks, b"")
    for number, text, before in lines.interesting(
        chain(filter(None, (first,)), blocks), scanner.attentive, scanner.collector.cover_all
    ):
        if text:
            scanner.feed(number, text, before)
    words = last_words.last(tail.kept, number, line_of)
    words = last_words.compiled(words, tail.kept, number, line_of)
    if words is None or not words[1].text:
        words = last_words.above(tail.kept, number, line_of, scanner.collector.summed_up(number)) or words
    scanner.last_words(words, number)
    log = scanner.finish(number, (first[: writers.LONGEST], tail.kept))
    if _TRACKER.search(first[:LONGEST_TEXT]):  # an exception of `wandb.init` ends the run
        log = replace(log, events=tuple(each for each in log.events if "wandb_init" in each.facts.get("inner", "")))
    raised = (each.line for each in log.events if "main" in each.facts and not each.soft)
    if any("record" in event.facts for event in log.events):
        log = replace(log, events=messages.without_logged(log.events, tail.kept, number))
    log = replace(log, events=messages.with_last_request(log.events, tail.kept, number))
    if not log.events:
        return replace(log, reached=messages.last_counter(tail.kept, line_of))
    sign = next((each.line for each in log.events if each.role is EventRole.CULPRIT and not each.soft), number)
    over = max(
        (event.line for event in log.events if event.origin is Origin.TABLE or event.code == "mpi-process-failed"),
        default=0,
    )
    again = messages.begun(first, tail.kept, number, sign)
    return replace(
        log,
        reached=messages.last_counter(tail.kept, line_of),
        progress=messages.progress(tail.kept, number, line_of, over),
        finished=messages.finished(tail.kept, number, line_of, next((at for at in raised if number - at <= ECHO), 0)),
        spoken=messages.spoken(tail.kept, number),
        ordinary=messages.ordinary(tail.kept, number, line_of),
        begun=0 if words is not None and 0 < words[2] < again else again,
    )
