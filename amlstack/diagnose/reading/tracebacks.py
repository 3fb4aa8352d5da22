"""Python tracebacks, line by line: several at a time when ranks write into one log, chains, and those of workers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from amlstack.diagnose.events import Frame

HEADER = "Traceback (most recent call last):"
BOXED = "Traceback (most recent call last) ─"
"""Rich draws its tracebacks in a box; the exception's line comes below."""
_IN_CELL = re.compile(r"([\w.]+) {2,}Traceback \(most recent call last\)$")
"""IPython's header: the exception's class, and no colon at the end."""
_CELL_FRAME = re.compile(
    r"^(?:File )?(?P<file>(?:Cell|Input) In ?\[\d+\]|<ipython-input[^>]*>|[~/\w][\w./\\:@+-]*\.\w+)"
    r"(?:(?:, line |:)(?P<line>\d+))?(?:,? in (?P<function>[\w.<>: ]+?)(?:\(.*\))?)?$"
)
_ARROW = re.compile(r"^-+> ?(?P<line>\d+)\b *(?P<code>.*)")
_OF_NOTEBOOK = re.compile(
    r"^(?:File )?(?:~|/|[A-Z]:\\)[^\s:]+\.py(?::\d+,)? in [\w.<>]+\(.*\)$|^(?:Cell|Input) In ?\[\d+\],? "
)
"""A frame in IPython's form."""
NO_CLASS = " "
"""Stands for the exception's class where IPython's header was cut off."""
_CLASS = re.compile(r"\s*[\w.]*(?:Error|Exception|\w\.error): $")
_NUMBERED = re.compile(r"^\d+ +(?=\S)")
"""Begins a line of source code as IPython shows it."""
_BOX = "│╭╰"
_BOX_FRAME = re.compile(r"^│ (?P<file>[^\s│]+\.\w+):(?P<line>\d+) in *(?P<function>[\w<>.]+)?")
_TORN = re.compile(r"(?P<type>[A-Za-z_][\w.]*(?:Error|Exception))(?P<frame> +File \".+\", line \d+, in \S+)$")
"""An exception's class and, in its line, another process's frame: the message follows in a line of its own."""
_ESCAPED = re.compile(r"\\+n")
_ORIGINALS = re.compile(r"(?:Original |Remote )?Traceback \(most recent call last\):")
LIVED = re.compile(r"\b(?:retry|retrying|retries|ignor\w+|skipp\w+|continuing|going on|falling back)\b", re.IGNORECASE)
"""Words of a program that goes on, in what it logs or in an exception's message."""
GIVES_UP = re.compile(
    r"\b(?:stopping (?:the )?training|exiting|giving up)\W*$|\bterminating due to (?:an )?exception\b"
    r"|, ending [\w ]{1,20}run\. ",
    re.IGNORECASE,
)
"""Words with which a program ends itself."""
DONE_WITHOUT = re.compile(
    r"\b(?:falling back|falls? back|(?:using|going to) .{1,40} instead"
    r"|using (?:the )?(?:slow|default|fallback|python)|disabling"
    r"|(?<!behavior )will (?:use|fall back|(?:not )?be (?:disabled|enabled|skipped|ignored|used))"
    r"|continuing without|proceeding without|disabled$)\b",
    re.IGNORECASE,
)
"""Says of what failed that the program does without it. Stricter than `LIVED`: it also overrides a known cause."""
_MEASURED = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=\s*%|e))(?:e[-+]?\d+)?\s*%?$", re.IGNORECASE)
"""A message that is only a measured number: a metric whose name reads like an exception's."""
_DIGIT = re.compile(r"\d")
_DUMPED = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$')
_ORIGINAL = re.compile(r"^(?:Original|The above|Remote)? ?Traceback \(most recent call last\):\s*$")
_FRAME = re.compile(r'^\s*(?:\| )?File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_CHAINED = re.compile(
    r"^(?:(?P<handled>During handling of the above exception, another exception occurred)"
    r"|The above exception was the direct cause of the following exception):"
)
CAUSED, HANDLED = "caused", "handled"
"""The next exception of a chain was raised because of the one before it, or while that was handled."""
_EXCEPTION = re.compile(
    r"^(?P<type>[A-Za-z_][\w.]*(?:\.[A-Za-z_]\w*)*)(?: \(see above for traceback\))?(?::(?: (?P<message>.*))?)?$"
)
"""With TensorFlow's words between the two."""
_CLOSE = re.compile(r"^([\w.]*(?:Error|Exception)):(?=[^\s:])")
"""An exception's class with its message right behind the colon, as some programs print it."""
_LOWER = frozenset({"error", "timeout", "gaierror", "herror"})
"""Exceptions of modules, such as `cv2.error`, that begin with a small letter."""
_QUOTES = frozenset({"RayTaskError", "RemoteTraceback", "_RemoteTraceback"})
"""Announce an exception of another process, whose frames and last line follow."""
_LEVELS = frozenset({"INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL", "NOTE", "WARN", "FATAL"})
_NAMED = re.compile(
    r"(?:Error|Exception|Exit|Interrupt|Warning|Timeout|StopIteration|Failure|Failed|Fault|Abort|Full|Empty)\w*$"
)
_PACKAGE = re.compile(r"(?:site|dist)-packages[/\\](?P<name>\w+)")
_LAYER = re.compile(r"[/\\]environment-\d+[/\\]")
"""The folder in which a job's own pip installs in a rehearsal: no package of the environment."""
COMMUNICATION = re.compile(
    r"torch[/\\](?:distributed|nn[/\\]parallel[/\\]distributed)|horovod|mpi4py|deepspeed[/\\]comm\b|apex[/\\]parallel"
    r"|p2p_communication|ray[/\\]util[/\\]collective|c10d"
)
"""Files of libraries in which ranks wait for each other."""
_MEETS = frozenset({"init_process_group", "init_distributed", "_init_process_group"})
"""Functions in which a rank meets the others for the first time."""
_TOP = ("<module>", "_run_module_as_main")
_BEGINS = ("_bootstrap", "_bootstrap_inner", "_worker_loop", "worker", "_process_worker", "_wrap")
"""Functions in which the code of threads and of worker processes begins."""
_OWN_COMMAND = "cmd=process.args"
_RAISES = re.compile(r"raise (?!ChildFailedError|CalledProcessError|SystemExit|ProcessRaised)[A-Z]\w*\(")
"""Source code of a frame that raises an exception which says something; a launcher's only reports another one."""
MOST_FOREIGN = 40
"""Lines of others that may come inside a traceback before it is given up."""
MOST_LINES = 4000
LONGEST_SOURCE = 300
_SLIPPED = re.compile(r" [A-Za-z][\w.]*(?:Error|Exception):")
"""Begins a last line whose poster moved it by one character."""
_STARTS_PROGRAMS = re.compile(
    r"torch[/\\]distributed|accelerate[/\\]commands|deepspeed[/\\]launcher|horovod[/\\]runner|ray[/\\]_private|runpy|subprocess"
    r"|multiprocessing|concurrent[/\\]|threading|asyncio|[/\\](?:click|typer|hydra|bin|scripts)[/\\]|__main__|<",
    re.IGNORECASE,
)
"""Files whose functions start a program, or wait for one."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception as a traceback shows it.

    Attributes:
        line: The number of its last line.
        text: That line.
        frame: The innermost line of the user's own code, else the innermost of all.
        cause_of: It came while, or because, the previous one of the chain was handled.
        original: It is the exception that a worker process sent to this one: the previous one is its wrapper.
        bare: There was no header: only the last line was seen.
        inner: The file of the innermost frame of all.
        own_command: The source shows that the command in the message is the failed process's own. Some versions of
            torch's launcher show the one that they started last instead.
        meets: It came while the rank met the others for the first time.
        main: The file in whose top level it came through: it ends the process, unless it was caught there.
        caught: Whose function caught it, ``own`` or ``library``: no line above that one, which begins no process.
        says: A traceback that was cut off shows more than how a program was started.
        packages: Packages of the environment that it came through below the user's own code, the innermost first.
        instead: It came deeper, through the very function that had raised and caught the one before it.
    """

    line: int
    text: str
    frame: Frame | None = None
    chained: str = ""
    original: bool = False
    bare: bool = False
    inner: str = ""
    packages: tuple[str, ...] = ()
    own_command: bool = False
    meets: bool = False
    main: str = ""
    caught: str = ""
    says: bool = False
    instead: bool = False


@dataclass(slots=True)
class TracebackReader:
    """Reads the tracebacks of one writer.

    Attributes:
        open: A traceback has begun and its last line has not come.
        cell: The exception's class, in the header of a notebook's traceback.
        before: The text before the last header in its line.
        headless: The traceback that is open has no header.
    """

    open: bool = False
    cell: str = ""
    _torn: str = ""
    _frames: list[Frame] = field(default_factory=list)
    _foreign: int = 0
    _lines: int = 0
    _last: int = 0
    _chained: str = ""
    _original: bool = False
    _own_command: bool = False
    _main: str = ""
    _caught: str = ""
    _code: str = ""
    _frame_count: int = 0
    _asker: tuple[str, str] | None = None
    _below_asker: int | None = None
    before: str = ""
    headless: bool = False

    def bare(self, text: str) -> str:
        """A line without the text in front of this writer's last header: a quote's mark, a logger's time and name."""
        if found := _TORN.match(text):
            self._torn, text = found["type"], found["frame"]
        elif self._torn and text.startswith(": "):
            text, self._torn = f"{self._torn}{text}", ""
        begin = self.before
        if not begin or HEADER in text:
            return text
        if text.startswith(begin) or _form(text[: len(begin)]) == _form(begin):
            return text[len(begin) :]
        if text == begin.rstrip():
            return ""
        at = text.find('  File "') if self.open and not self._frames else -1
        if at > 0 and _form(begin).startswith(_form(text[:at])):  # words of its own stand behind the logger's
            self.before = text[:at]
            return text[at:]
        margin = begin[: len(begin) - len(begin.lstrip())]  # of all lines, where the words behind it stand once
        return text.removeprefix(margin) if self.open else text

    def feed(self, text: str, number: int) -> Raised | None:
        """Takes one line, its prefix stripped; the exception when this is its last line."""
        bare = text.strip().removeprefix("| ")  # before each line of a group of exceptions
        bare = bare.strip("*") if bare.startswith("**") else bare.removesuffix("```")  # marks of Markdown
        cell = _IN_CELL.match(bare)
        if cell or HEADER in text or BOXED in text:
            self._begin(original=bare.startswith("Original"))
            self.cell, self._last = cell[1] if cell and cell[1] not in _QUOTES else "", number
            self.before = _ORIGINALS.split(text)[0] if HEADER in text else text[: len(text) - len(text.lstrip())]
            if _CLASS.match(self.before):  # a message that is a traceback itself
                self.before = ""
            return None
        if not self.open:
            if found := _CHAINED.match(bare):
                self._chained = HANDLED if found["handled"] else CAUSED
            return None
        self._lines += 1
        if self._lines > MOST_LINES:
            self.open = False
            return None
        return self._inside(text, bare, number)

    def begin_within(self, text: str, *, plain: bool, flat: bool) -> str:
        """Takes a line of a log's begin, which may be a frame of a traceback whose header was cut off; its own text."""
        at = text.find('   File "', 0, LONGEST_SOURCE) + 1  # behind what a logger puts before each line, and a space
        flat = flat and text.startswith('File "')  # a collector of logs took the margin off
        if plain and not self.open and (flat or text[at : at + 1].isspace()) and _FRAME.match(text[at:]):
            self._begin(original=False)
            self.before, self.headless = text[:at], True
        elif not self.open and _OF_NOTEBOOK.match(text):
            self._begin(original=False)
            self.cell = NO_CLASS
        return text.removeprefix(self.before)

    def cut_short(self) -> Raised | None:
        """The known part of a traceback whose end is missing: its innermost frame, and IPython's class."""
        frame = self._frame() if self.open else None
        if frame is None:
            return Raised(self._last, self.cell) if self.open and self.cell.strip() else None
        inner = self._frames[-1]
        shown = [f"at {frame}", f"in {inner}"][: 1 + (inner is not frame)]
        text = ": ".join(filter(None, (self.cell.strip(), ", ".join(shown), self._code)))
        says = bool(_RAISES.match(self._code)) or not _STARTS_PROGRAMS.search(inner.file)
        raised = Raised(self._last, text, frame, self._chained, inner=inner.file, says=frame.own or says)
        return replace(raised, packages=self._packages())

    def _inside(self, text: str, bare: str, number: int) -> Raised | None:
        if self.cell and self._frames and not self._frames[-1].line and (found := _ARROW.match(bare)):
            self._frames[-1] = replace(self._frames[-1], line=int(found["line"]))
        if found := _FRAME.match(text) or _BOX_FRAME.match(text) or (_CELL_FRAME.match(bare) if self.cell else None):
            frame = Frame(found["file"], int(found["line"] or 0), (found["function"] or "").strip())
            if not self._frames and frame.function in _TOP and frame.file != "<string>":
                self._main = frame.file
            if not (self._frames or self._main or self.cell or self._original or frame.function in _BEGINS):
                self._caught = "own" if frame.own else "library"
            self._frame_count += 1
            if self._asker == (frame.file, frame.function):
                self._below_asker = 0
            elif self._below_asker is not None:
                self._below_asker += 1
            # Only the innermost frames matter; a runaway recursion has thousands.
            self._frames = [*self._frames[-40:], frame] if not frame.own else [*self._own_frames()[-40:], frame]
            self._foreign, self._last, self._code = 0, number, ""
            return None
        if not bare or (quoted(text) and not _SLIPPED.match(text)) or (self.cell and _ARROW.match(bare)):
            self._own_command |= _OWN_COMMAND in text
            self._source(bare)
            return None
        if exception(bare) or (self.cell and f"{bare}:".startswith(f"{self.cell}:")):
            raised = Raised(number, bare, self._frame(), self._chained, self._original, packages=self._packages())
            inner = self._frames[-1].file if self._frames else ""
            meets = any(frame.function in _MEETS for frame in self._frames)
            raised = replace(raised, inner=inner, own_command=self._own_command, meets=meets, main=self._main)
            raised = replace(raised, caught=self._caught, instead=bool(self._chained == HANDLED and self._below_asker))
            only = self._frames[-1] if self._frame_count == 1 else None
            self._asker = (only.file, only.function) if only is not None and only.function not in _TOP else None
            self._end()
            return raised
        self._foreign += 1
        if self._foreign > MOST_FOREIGN:
            self._end()
        return None

    def _source(self, bare: str) -> None:
        """Takes a line of the innermost frame's source code; in a notebook, those from the arrow on."""
        if self.cell:
            found = _ARROW.match(bare)
            if found is None and not _RAISES.match(self._code):
                return
            bare = found["code"] if found is not None else _NUMBERED.sub("", bare)
        if bare.strip("^~ ") and (not self._code or _RAISES.match(self._code)):
            self._code = f"{self._code} {bare}".strip()[:LONGEST_SOURCE]

    def _begin(self, *, original: bool) -> None:
        self.open, self.headless, self._frames, self._foreign, self._lines = True, False, [], 0, 0
        self._original, self._own_command, self._main, self._caught = original, False, "", ""
        self._frame_count, self._below_asker = 0, None

    def _end(self) -> None:
        self.open, self._chained, self._original = False, "", False

    def _packages(self) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for frame in reversed(self._frames):
            if frame.own:
                break
            if (found := _PACKAGE.search(frame.file)) and not _LAYER.search(frame.file):
                names[found["name"]] = None
        return tuple(names)

    def _own_frames(self) -> list[Frame]:
        return [frame for frame in self._frames if frame.own]

    def _frame(self) -> Frame | None:
        own = self._own_frames()
        return own[-1] if own else (self._frames[-1] if self._frames else None)


def inline(text: str, number: int) -> list[Raised]:
    """The exceptions of a traceback quoted in one line, its line ends escaped, as services do; the root first."""
    _, header, rest = text.partition(HEADER)
    lines = _ESCAPED.split(rest)
    if not header or len(lines) < 3:
        return []
    reader = TracebackReader()
    reader.feed(HEADER, number)
    fed = [reader.feed(line.replace("\\", "").removesuffix('",'), number) for line in lines[1:]]
    return [raised for at, raised in enumerate(filter(None, fed)) if not at or raised.chained]


def quoted(text: str) -> bool:
    """True where a line within a traceback quotes source code or is part of its frame: it is no message."""
    return text[:1] in " \t" or text[:1] in _BOX or _ARROW.match(text) is not None


def dumped(text: str) -> Frame | None:
    """A frame of the user's own in a dump that the interpreter writes when it dies; the innermost comes first."""
    found = _DUMPED.match(text)
    frame = None if found is None else Frame(found["file"], int(found["line"]), found["function"].strip())
    return frame if frame is not None and frame.own else None


def _form(text: str) -> str:
    return _DIGIT.sub("0", text)


def exception(text: str) -> bool:
    """True where a line reads like the last one of a traceback: an exception's class, and perhaps its message."""
    found = _EXCEPTION.match(_CLOSE.sub(r"\1: ", text[:400]))
    if found is None:
        return False
    name = found["type"].rsplit(".", 1)[-1]
    if name in _LEVELS or found["type"].split(".")[0] in _LEVELS:
        return False
    said = found["message"]
    bar = name == found["type"] and (said is None or said.lstrip()[:1].isdigit())  # or the name of a progress bar
    if name in _LOWER:
        return name != found["type"]
    if name in _QUOTES:
        return False
    return bool(_NAMED.search(name)) or (name.lstrip("_")[:1].isupper() and not bar and "=" not in name)


def definite(text: str, *, lived: bool = False) -> bool:
    """The same without a traceback before it: only a class whose name is an exception's.

    Args:
        text: The line.
        lived: Also one whose words say that the program goes on, and one without words.
    """
    found = _EXCEPTION.match(_CLOSE.sub(r"\1: ", text[:400]))
    if found is None or (not lived and (not found["message"] or LIVED.search(found["message"]))):
        return False
    if _MEASURED.match((found["message"] or "").strip()):
        return False
    return bool(re.search(r"(?:Error|Exception)$", found["type"]))


def same_class(first: str, later: str) -> bool:
    """True where a line names the exception of another one, and says more: its message was a traceback."""
    name = first.partition(":")[0]
    return later.startswith(f"{name}: ") and definite(later)


def frame_in(text: str) -> Frame | None:
    """The innermost line of the user's code in a complete traceback."""
    reader = TracebackReader(open=True)
    for number, line in enumerate(text.splitlines()):
        reader.feed(line if line.startswith(" ") else line.strip(), number)
    return reader._frame()  # noqa: SLF001 - the same module
