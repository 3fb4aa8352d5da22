"""Last words of a log: the error that a program wrote before it ended, and words on a run that came to its end."""

from __future__ import annotations

import re
from itertools import chain, pairwise, takewhile
from typing import TYPE_CHECKING

from amlstack.diagnose.reading.tracebacks import DONE_WITHOUT, LIVED, definite
from amlstack.diagnose.reading.writers import soft
from amlstack.diagnose.signatures import EventRole, match

if TYPE_CHECKING:
    from collections.abc import Callable

    from amlstack.diagnose.reading.writers import Line

LAST = 12
"""Lines before a log's end in which a program says why it gives up."""
LONGEST = 500
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
REPORT = b"\nSender: LSF System <"
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
_QUOTED = re.compile(r"[\s\]|:][\^~]+$|\] {3,}\S|\bFile \".+\", line \d+|Traceback \(most recent")
"""Ends, or is, a line of a traceback that a logger writes line by line."""
_MEASURED = re.compile(r"^\W{0,4}[\w ()#]{0,30}[:=] *[-+]?[\d.]+(?:e[-+]?\d+)? *%?$", re.IGNORECASE)
"""A metric whose name is "error"."""
_CLOSED = re.compile(r"Job \d+ completed at ")
"""Begins the last line of a batch system's report, whatever became of the job."""
_SOURCE = re.compile(r"\s*(?:-+> ?)?\d+ {2,}\W?[A-Za-z_#].*\W$")
"""A line of source code as IPython shows it."""
_FAILED = re.compile(r"\b(?:not|but|un|fail\w*|error\w*|abort\w*)\b", re.IGNORECASE)
_SAME = re.compile(r"\d+(?:[.:,/-]\d+)*|0x[0-9a-f]+")


def form(raw: bytes) -> str:
    """The begin of a line without its numbers."""
    return _SAME.sub("", raw[:LONGEST].decode(errors="replace")).strip()


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
    printed, _, report = tail.rpartition(REPORT)
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
    alike = [form(each)[:ALIKE] == form(row)[:ALIKE] for each in rows]
    return sum(one and not before for before, one in pairwise([False, *alike]))


def _passed_on(rows: list[bytes], row: bytes) -> bool:
    """True where a program passes on what another one logs, its notes too, and calls all of it errors."""
    return any(b" INFO " in each and form(each).startswith(form(row)[:ALIKE]) for each in rows[-LAST:])


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
