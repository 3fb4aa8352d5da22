"""Messages of a log: errors that a program logged, NCCL's watchdog, counters of steps."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise, takewhile
from typing import TYPE_CHECKING, Any

from amlstack.diagnose.reading.collector import MOST_EVENTS
from amlstack.diagnose.reading.tracebacks import DONE_WITHOUT, LIVED, definite
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


LAST = 12
"""Lines before a log's end in which a program says why it gives up."""
LONGEST = 500
NARROWEST = 16
"""Characters of a line that more than one program will hardly write."""
_LEVEL = re.compile(
    r"^(?:[\w.:/,\[\]() |-]{0,80}?[\[ (|-])?"  # a logger's level, with a word behind it
    r"(?:ERROR|CRITICAL|FATAL|Fatal|(?:(?<=\]\[)|(?<=\] \[))(?:error|critical|fatal)(?=\]))\b"
    r"[\])]?(?: *[|:-]|\s+\S|(?<=\])\[)(?=.*[^\W\d])"
    # a program's own last words, also behind a sign
    r"|^(?:[^\w\s\"'<([{]{1,3} )?(?:[\w./-]{1,80}: )?(?:fatal(?: error)?|[Ee]rror|ERROR)"
    r"(?:\[\w+\]| [#(]?\d+\)?)?: +\S"
    r"|^\[\w+=[^\]]{1,80}\] Error: +\S|^E\d{4} [\d:.]+ +\d+ \S+\.(?:go|py):\d+\] "
    r"|\blevel(?:\": ?\"|=\"?)(?i:fatal|critical|panic)\b"
    r"|\b(?i:not|n't|no|fail\w*|unable|cannot|invalid|missing|unsupported)\b.{0,120}\b(?i:exiting|aborting|giving up)\b"
    r"|^[\w./-]{1,80}(?:: Error response from daemon|/lua\w{0,9}: [\w./-]+:\d+): "
    r"|: (?:line \d+: )?syntax error\b|: [Ee]xec format error\b|: cannot execute\b|^In '[^']+': Could not find '"
    r"|^Failed to build [\w.-]+$|\b[Ee]ncountered an error:"
    # a shell, or a command of one, that could not do what it was told
    r"|(?:^(?:\S*/)?(?:ba|da|z|k|c|tc)?sh: |: line \d+: )(?:unexpected EOF .*"
    r"|.*: (?:No such file or directory|Permission denied|Is a directory|unbound variable))$"
    r"|^(?:curl: \(\d+\)|unzip: |npm (?:ERR!|error) |gyp ERR! stack |dpkg: error )"
    r"|^An error occurred \(\w+\) when calling |^Unable to locate credentials|^Cannot connect to the Docker daemon"
    # compilers and interpreters of other languages
    r"|^\s*\S+[:(]\d+(?:[:,]\d+)?\)?: (?:(?:fatal )?error|ERROR)\b|^\s*\S+ : (?:fatal )?error [A-Z]+\d+: "
    r"|^\s{1,8}error: \S"
    r"|\[E:onnxruntime:|^[\w.]+: \[ONNXRuntimeError\] : \d+ : |^\u2718 \S|(?:^|: )E tensorflow_serving/"
    r"|^[\d:. -]{0,30}\[FAIL *\] \S|^\(error\) \S|\[(?:Type|Shape)InferenceError\] |^\[ErrorCode:\w+\] "
    r"|\blevel(?:\": ?\"|=\"?)error\b|\bError Domain=\S+ Code=-?\d+ |^[A-Z]\w+ exception: \S"
    r"|^unknown location\(0\): fatal error|\(\d+,\d+\): error [A-Z]+\d+: |^Cannot uninstall '|^Error[.!] \S"
    r"|\d+ - \S+ \(Failed\)$|^This step is in (?:Failed|Error) state with this message: |^\S+:\d+: Failure$"
    r"|^\[(?:fail|error|fatal)\]: \S|:\d+:\d+ - error |^THCudaCheck FAIL |\bnot valid for use in process\b"
    r"|^Exception in main training loop: \S|^\[libprotobuf (?:ERROR|FATAL) "
    r"|: undefined reference to (?:symbol )?[`']|^OpenCV(?:\([\w.-]+\))? Error: |^\S*\bld: cannot find -l"
    r"|^\s*out of memory$|^nvcc fatal +: \S|^(?:\d+: )?C\+\+ exception with description "
    r"|^ld: library not found for |^Undefined symbols for architecture "
    r"|^CMake Error\b|^Error using \w|^[> ]*Error in (?:.{1,200}?(?: :|\(line \d+\)$)|(?:rule|routine) )"
    r"|^Un(?:defined|recognized) function or variable "
    r"|^make \(e=\d+\): |^forrtl: |^(?:Fortran runtime error|(?:PHP )?Fatal error|Error):"
    r"|^(?:Can(?:'t|not)|Could(?: not|n't)|Unable|Undefined|Died|syntax error)\b.* at \S+ line \d+\b"
    r"|^\S+:\d+:in [`'].+\(\S+\)$|^lua\w*: .+:\d+: "
    # workflows, tools and programs that print what they caught
    r"|^\w+: error (?:loading|reading|opening|creating|initiali[sz]ing) \w.*: \S"
    r"|\bFATAL (?:IO )?ERROR\b|\[error *\] \[\w|: Check failed: |^Error executing process\b"
    r"|\] \[E\] (?!.*\.cpp:\d+: (?:While parsing node|--- |input: ))\S"  # TensorRT quotes the node before it says why
    r"|\b(?:Database|Compilation|Runtime|Parsing|Internal|Dependency) Error in |^\w+(?:Error|Exception)(?: in .+)?:$"
    r"|^(?:An )?(?:[Ee]rror|[Ee]xception) (?:occurred|during|loading|running|reading)\b.*: *\S|^Exception raised:"
    r"|^Missing mandatory value: |^Something went wrong: +\S|^\w+NotFound: \S|^Unable to run job: "
    r"|^! [A-Z]\w+ \w|^License (?:checkout failed|Manager Error)|^=>> PBS: "
)
_OVER = re.compile(
    r"Execution halted$|(?:(?:mingw32-)?g?make|ninja|scons)(?:\[\d+\])?: (?:\*\*\* |build stopped)"
    r"|-- Configuring incomplete"
    r"|exit status [1-9]\d*$|Stacktrace:$|in expression starting at |error: (?:could not compile |called from$)"
    r"|[1-9]\d* errors? (?:detected|generated)\b|compilation (?:terminated|aborted)|BEGIN failed--compilation aborted"
    r"|\*\*\*Test Failed\*\*\*|time=\"[^\"]*\" level=fatal\b"
    r"|\[  FAILED  \] |Errors while running CTest$|A full log can be found at \S+meson-log|(?:\S+Z )?##\[error\]\S"
    r"|\*\*\* \d+ failures? (?:is|are) detected|.*\brun is terminating due to exception: \S"
    r"|(?:\[\d+\] )?Failed to execute script \S+$"
    r"|.*\b(?:exiting now$|exiting due to .{1,40}\berror$|(?i:error) termination\b)"
    r"|(?:FOAM exiting|&&&& FAILED|ERROR STOP)\b"
    r"|(?:forrtl: severe|Fatal error)\b"
    r"|Fortran runtime error\b|Died at \S+ line \d+|stopping \.\.\.$|npm (?:ERR!|error) |Command exit status:$"
    r"|Error in \S+ \(line \d+\)$|Last (?:input )?(?:command|line): |Set the environment variable HYDRA_FULL_ERROR"
    r"|object_type=\w+$|Pass --helpshort |For detailed information on this command|\w+(?:Error|Exception)(?: in .+)?:$"
    r"|.*\b(?:[Ee]ncountered an error:$|Completed with [1-9]\d* errors?\b)|Exiting because a job execution failed"
    r"|thrown in \S+ on line \d+$|! {1,2}==> Fatal error occurred|Tip: (?:you can|when you have)\b"
    r"|[Ss]tream closed EOF for "
    r"|(?:\W*|.*\W)(?i:training|pipeline|command|build|workflow|experiment|job|task|run)\b"
    r"[^:]{0,40}\b(?:failed|crashed)(?:: (?!\d+$)| at | with |, (?:log is in|see) |[.!]?$)"
    r"|.*\d failed, log is in |Cancelling \w+ on user request|r\(\d+\);$"
)
"""Words with which a program, or what started it, says that it is over: the reason stands above them, or is them."""
_TELLING = re.compile(r"fail|crash|error|abort|halted|build stopped|\*\*\*|died at", re.IGNORECASE)
"""The ones that say something without a reason above them."""
_RECORDED = re.compile(r"\[?(?:ERROR|FATAL|CRITICAL)\b")
"""Begins a record of an error, also an empty one."""
_CODE = re.compile(r"r\(\d+\);$")
"""The end of a program of Stata: what its number means stands above it."""
_BELOW = re.compile(r"Error in \S+ \(line \d+\)$")
"""MATLAB's frame: the message stands above the first one."""
_ABOVE = re.compile(r"Error using \w|FATAL CALLED FROM FILE")
"""Announces the message below it."""
_LAST_WORDS = re.compile(
    r"^\W{0,3}(?:Failed to|(?:Unable to|Could(?: not|n't)|Cannot|Can't) (?:open|load|read|connect|create|import|parse"
    r"|write|allocate|locate|access|start|download|initiali[sz]e|resolve|launch|execute|run|find))"
    r" (?!.*\b(?:using|use|default|fall)\b)"
    r"|^[\w' ./-]{3,80}\bnot found: \S|^\W{0,3}Command .* returned non-zero exit status \d+\.?$|^'\w+'$"
    r"|^(?:[\d/]+ [\d:]+ )?no matches for kind \"|^Internal compiler error\b|^download failed: "
    r"|^E: (?:Unable to|Sub-process) "
    r"|^qsub: \w|^libc\+\+abi: terminating |^dyld: |^Assertion failed: \("
    r"|^(?!Use of |Odd number |Deep rec|Subroutine |Name ).* at \S+ line \d+(?:, <\w*> \w+ \d+)?\.$"  # Perl's die
)
"""Words on a failure that are the end of a program as its very last line: a missing key is only its name in quotes."""
_TESTED = re.compile(r"(?:=+ )?(?:\d+ \w+, )*[1-9]\d* (?:failed|errors?)(?:, \d+ \w+)* in [\d.]+(?:s| seconds)\b")
"""The last line of pytest, where a test failed."""
_TEST_AT = re.compile(r"\S+\.pyx?:\d+: [A-Z]\w*(?:Error|Exception|Exit|Failed)$|E {3,}")
"""The last line of one test's report: the place, and the exception's class; or, cut off there, the exception itself."""
_TESTS = ("E  ", "FAILED ", "ERROR ")
"""Begin the lines of its report that say why."""
_REPORT = b"\nSender: LSF System <"
"""Begins what LSF writes below all that a job has printed."""
_PROMPT = re.compile(r"[$#>%] ?(?:\^C)+$")
INTERRUPTED = "^C"
GONE_ON = 4
"""Times that a program wrote an error before and went on."""
ALIKE = 24
"""Characters of an error that are the same though it names something else."""
REASON = 30
"""Lines above such words in which the reason stands."""
_SUCCEEDED = re.compile(
    r"\b(?:(?:fine-?)?tuning|training|run|job|evaluation|experiment|pipeline|execution|simulation|inference"
    r"|stage(?: \d+)?)\b.{0,20}"
    r"\b(?:finished|completed?|done|succeeded|success)\b|\bfinished server process\b"
    r"|\bprocess \d+ exits successfully\b|\bstatus\W{1,4}value\W{1,5}success\b"
    r"|\bend (?:of (?:the )?)?(?:training|run|job)\b"
    r"|\b(?:finished|completed) (?:training|successfully)\b|\bsuccessfully (?:finished|completed|saved)\b|\ball done\b"
    r"|\bexit(?:ed)?(?: with)?(?: code| status)?:? 0\b",
    re.IGNORECASE,
)
_WORTH = re.compile(rb"(?:finish|complet|succe|done|exit|end (?:of|train|run|job))", re.IGNORECASE)
_QUOTED = re.compile(r"[\s\]|:][\^~]+$|\] {3,}\S|\bFile \".+\", line \d+|Traceback \(most recent")
"""Ends, or is, a line of a traceback that a logger writes line by line."""
_MEASURED = re.compile(r"^\W{0,4}[\w ()#]{0,30}[:=] *[-+]?[\d.]+(?:e[-+]?\d+)? *%?$", re.IGNORECASE)
"""A metric whose name is "error"."""
_CLOSED = re.compile(r"Job \d+ completed at ")
"""Begins the last line of a batch system's report, whatever became of the job."""
_SOURCE = re.compile(r"\s*(?:-+> ?)?\d+ {2,}\W?[A-Za-z_#].*\W$")
"""A line of source code as IPython shows it."""
_FAILED = re.compile(r"\b(?:not|but|un|fail\w*|error\w*|abort\w*)\b", re.IGNORECASE)


def above(tail: bytes, lines: int, line_of: Callable[[str], Line], summary: int) -> tuple[int, Line, int] | None:
    """The same of what stands above a launcher's words, on a line ``summary``, that a process failed."""
    rows = tail.split(b"\n")
    rows = rows[: summary - 1 - lines + len(rows) - tail.endswith(b"\n")] if summary else []
    return last(b"\n".join([*rows, b""]), summary - 1, line_of, failed=True) if rows else None


def last(
    tail: bytes, lines: int, line_of: Callable[[str], Line], *, failed: bool = False
) -> tuple[int, Line, int] | None:
    """The first of the errors that stand among a log's last lines, and from where on its end says that it is one.

    None where there is none, or the run succeeded; 0 where no words say that the program is over. The text is empty
    where these words are all that stands there.

    Args:
        tail: The log's last bytes.
        lines: How many lines the log has.
        line_of: Tells who wrote a line.
        failed: What stands below says that it failed.
    """
    printed, _, report = tail.rpartition(_REPORT)
    if printed and b"\nExited with " in report and b"is above this job summary" in report:
        failed = True
        lines, tail = lines - report.count(b"\n") - (not tail.endswith(b"\n")), printed
    whole = _uncaptured(tail.rstrip(b"-\r\n " if failed else None))
    rows = whole.split(b"\n")
    end = lines - (tail.count(b"\n") - whole.count(b"\n")) + tail.endswith(b"\n")  # the last line that is not blank
    shown = [line_of(raw[:LONGEST].decode(errors="replace").rstrip("\r")) for raw in rows[-LAST - REASON :]]
    if _TESTED.match(shown[-1].text.strip()) or (len(rows) > 1 and _TEST_AT.match(shown[-1].text)):
        return _of_tests(rows, shown[-1], end, line_of)
    near = max(0, len(shown) - LAST)
    over = [at for at in range(near, len(shown)) if _over(shown[at].text, end=at == len(shown) - 1)]
    well = [at for at, line in enumerate(shown) if succeeded(line.text)]
    if any(at >= (over[-1] if over else near) for at in well):
        return None
    first = end - len(shown) + 1
    begin = max([0, over[-1] - REASON, *(at + 1 for at in well)]) if over else near
    # a terminal shows Ctrl-C so, also where nobody had a command to stop
    if shown[-1].text.endswith("^C") and not _PROMPT.search(shown[-1].text):
        return end, shown[-1]._replace(text=INTERRUPTED), first + begin
    errors = (at for at in range(begin, len(shown)) if logged_as_error(shown[at].text))
    telling = (at for at in reversed(over) if _TELLING.search(shown[at].text))
    coded = (at - 1 for at in over if at and _CODE.match(shown[at].text))
    quoted = (_quoted(shown, at) for at in range(begin, len(shown)) if over and shown[at].text == "Command error:")
    reason = next(chain(filter(None, quoted), errors, telling, coded), None)
    final, said = shown[-1].text, bool(over) or failed or _ended_by(shown)
    if reason is None and _LAST_WORDS.search(final) and not (soft(final) or _harmless(final)):
        over = [reason := len(shown) - 1]
    if reason is None:
        return (end, shown[-1]._replace(text=""), first + begin) if over else None
    if failed or (len(rows) > LAST and set(rows) <= set(rows[-LAST:])):  # a log that only repeats it
        over = over or [reason]
    elif not said and reason < len(shown) - 2 and _OF_LINKER.search(shown[reason].text):
        return None  # what was tried to be built is done without
    elif not said and (_times(rows, row := rows[reason - len(shown)]) > GONE_ON or _passed_on(rows, row)):
        return None
    if _BELOW.match(shown[reason].text):
        reason = next((at for at in reversed(range(reason)) if shown[at].text.strip()), reason)
    later = [each.text for each in shown[reason + 1 :] if each.text.strip()]
    if said or (later and all(_RECORDED.match(each) or logged_as_error(each) for each in later)):
        over = over or [reason]
    line = shown[reason]
    text, rest = line.text.rstrip(), [each.text for each in shown[reason + 1 : reason + 3]]
    indented = rest[:1] if over and rest and rest[0].startswith("  ") else []
    more = rest if text.endswith(":") or _ABOVE.match(text.strip()) else indented
    joined = " ".join(filter(None, (text, *(each.strip() for each in more))))
    return max(1, first + reason), line._replace(text=joined), max(1, first + begin) if over else 0


def _of_tests(rows: list[bytes], final: Line, end: int, line_of: Callable[[str], Line]) -> tuple[int, Line, int]:
    """The first exception of the last test that a report of pytest, which ends on a line, is about."""
    read = (line_of(raw[:LONGEST].decode(errors="replace")) for raw in rows)
    said = [(at, line) for at, line in enumerate(read, start=1) if _says_why(line.text)]
    raised = [each for each in said if definite(each[1].text.removeprefix("E").strip())]
    at, line = next(chain(raised[-1:], said), (len(rows), final))
    number = end - len(rows) + at
    return number, line._replace(text=line.text.removeprefix("E ")), number


_WAITS = re.compile(r"(?:\([\w.-]+\) )?[\w.-]+[@:]\S*(?: \S+)?[$#%>] *$")
"""A shell's prompt, without a command."""
_OF_BUILD = re.compile(r"(?:(?:mingw32-)?g?make|ninja)(?:\[\d+\])?: ")
_COMPILED = re.compile(rb"\s*\S+?[:(]\d+[:,)]\S*:? (?:fatal )?error\b")


def compiled(
    words: tuple[int, Line, int] | None, tail: bytes, lines: int, line_of: Callable[[str], Line]
) -> tuple[int, Line, int] | None:
    """The last words of a log; the first error of a compiler, where they are a build tool's and say nothing else.

    Compilers that run beside it may write hundreds of lines between the two.
    """
    if words is None or _OF_BUILD.match(words[1].text.strip()) is None:
        return words
    rows = tail.removesuffix(b"\n").split(b"\n")
    found = next(((at, raw) for at, raw in enumerate(rows, lines - len(rows) + 1) if _COMPILED.match(raw)), None)
    return words if found is None else (found[0], line_of(found[1][:LONGEST].decode(errors="replace")), found[0])


_CAPTURED = re.compile(rb"\n-{5,} Captured \w+(?: \w+)? -{5,}\n")
"""The heading of what one test printed, below its report."""


def _uncaptured(tail: bytes) -> bytes:
    """A log without what a test printed, where it ends with the report of one."""
    if _TESTED.match(tail.rpartition(b"\n")[2].decode(errors="replace").strip()):
        return tail
    reports = (tail[: found.start()].rstrip() for found in reversed([*_CAPTURED.finditer(tail)]))
    return next((each for each in reports if _TEST_AT.match(each.rpartition(b"\n")[2].decode(errors="replace"))), tail)


def _ended_by(shown: list[Line]) -> bool:
    """True where a log ends with two records of errors, of which the last one says that something failed."""
    said = [each.text for each in shown[-4:] if each.text.strip()]
    if len(said) < 2:
        return False
    several = logged_as_error(said[-2]) and logged_as_error(said[-1])
    if _WAITS.match(said[-1]):  # the command is over
        return logged_as_error(said[-2]) or (len(said) > 2 and logged_as_error(said[-3]) and said[-2][:1] == " ")
    return (several and _TELLING.search(said[-1]) is not None) or said[-1].startswith("collect2: error")


def _says_why(text: str) -> bool:
    bare = text.removeprefix("E").strip("- ")
    return text.startswith(_TESTS) and bool(bare) and not text.endswith("Traceback (most recent call last):")


def _times(rows: list[bytes], row: bytes) -> int:
    """The number of times that a log comes to lines that begin as one does, after others."""
    alike = [_form(each)[:ALIKE] == _form(row)[:ALIKE] for each in rows]
    return sum(one and not before for before, one in pairwise([False, *alike]))


def _passed_on(rows: list[bytes], row: bytes) -> bool:
    """True where a program passes on what another one logs, its notes too, and calls all of it errors."""
    return any(b" INFO " in each and _form(each).startswith(_form(row)[:ALIKE]) for each in rows[-LAST:])


def _quoted(shown: list[Line], at: int) -> int | None:
    """The line of what Nextflow quotes of a command's stderr that says why it failed: an error, else its last one."""
    rows = list(takewhile(lambda row: shown[row].text[:1] == " ", range(at + 1, len(shown))))
    return next((row for row in rows if logged_as_error(shown[row].text.strip())), rows[-1] if rows else None)


def _over(text: str, *, end: bool) -> bool:
    bare = text.strip()
    if _OVER.match(bare) is None or (bare.startswith("compilation ") and not end):  # a configuration tries compilers
        return False
    return LIVED.search(text) is None and (not soft(text) or "[debug" in text)


def tells_of_an_end(text: str) -> bool:
    """True where a program says that it is over, and something of the reason."""
    return _over(text, end=False) and _TELLING.search(text) is not None


def _harmless(text: str) -> bool:
    """True where a line is a metric, says that the program goes on, or is one that healthy runs are known to write."""
    found = match(text)
    return (
        _MEASURED.search(text) is not None
        or LIVED.search(text) is not None
        or DONE_WITHOUT.search(text) is not None
        or (found is not None and found[0].role is EventRole.NOISE)
    )


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


_OF_LINKER = re.compile(r"\bld: cannot find -l|^collect2: error")
"""A linker did not find a library: the end of a build, or only of an attempt at one."""


def logged_as_error(text: str) -> bool:
    """True where a program wrote a line as an error that it does not go on from."""
    said = bool(_LEVEL.search(text)) and not text.startswith("wandb: ") and not _QUOTED.search(text)
    return said and not soft(text) and (not _harmless(text) or _OF_LINKER.search(text) is not None)


def succeeded(text: str) -> bool:
    """True where a line says that a run came to its end as it should."""
    said = _SUCCEEDED.search(text) is not None and _FAILED.search(text) is None
    return said and _CLOSED.match(text) is None and _SOURCE.match(text) is None


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


BANNER = 60
"""Lines of a log's begin that a program may write whenever it starts."""
_SAME = re.compile(r"\d+(?:[.:,/-]\d+)*|0x[0-9a-f]+")


def _form(raw: bytes) -> str:
    return _SAME.sub("", raw[:LONGEST].decode(errors="replace")).strip()


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
    ends = (_REPORT[1:], b"Exception: ", b"Traceback (most", b'  File "')
    top = top[: next((at for at, raw in enumerate(top) if _FORWARD.search(raw) or any(w in raw for w in ends)), BANNER)]
    places = {form: at for at, form in reversed([*enumerate(map(_form, top))]) if len(form) >= NARROWEST}
    rows = tail.removesuffix(b"\n").split(b"\n")
    forms = enumerate(map(_form, rows), start=lines - len(rows) + 1)
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
