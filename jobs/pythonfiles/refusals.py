"""A Python job file is refused the network, credentials, other processes and threads, as long as it is read.

The variables that hold credentials are withheld, and the files that keep them. Python tells an audit hook of each of
the other attempts before it happens. This holds for what a file does by mistake, and for plain Python of somebody
else's. It is no boundary: native code asks no hook, and a file that wants to can reach into this process.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import contextlib
import importlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NoReturn

from amlstack.base.credentials import form

_OF_SIGN_INS: Final = re.compile(
    r"(?:PULUMI|ARM|AZURE|AWS|GOOGLE|GCLOUD|IDENTITY|MSI|IMDS|ACTIONS_RUNTIME|ACTIONS_ID_TOKEN|ENDPOINT_AUTH)_"
    r"(?!(?:\w+_)?(?:STACK|PROJECT|ORGANIZATION|DRY_RUN|SUBSCRIPTION_ID|TENANT_ID|REGION|LOCATION|ENVIRONMENT|RESOURCE_GROUP|CA_BUNDLE)$)\w+"
    r"|GITHUB_(?:ENV|PATH|OUTPUT|STATE)|SSH_AUTH_SOCK|KUBECONFIG"
)
"""Variables of what signs in by them, but for those that only say where; files that steer a workflow's next steps."""
_OF_SECRETS: Final = re.compile(
    r"(?:\w*_)?(?:API|ACCESS|SECRET|SYSTEM_ACCESS)?"
    r"(?:TOKENS?|SECRETS?|PASSWORD|PASSWD|PWD|PASSPHRASE|KEYS?|CREDENTIALS?|PAT|SAS|CERTIFICATE|CONNECTION_?STRING)"
    r"(?:_(?:\w+_)?(?:FILE|PATH|VALUE|URL|BASE64|B64|\d+))?"
    r"|\w*(?:TOKEN|SECRET|PASSWORD)"
)
_NO_SECRETS: Final = frozenset({"PWD", "OLDPWD"})

_DIRECTORIES: Final = (
    (None, ".azure"),
    ("AZURE_CONFIG_DIR", ""),
    (None, ".IdentityService"),
    (None, ".local/share/.IdentityService"),
    (None, ".pulumi"),
    ("PULUMI_HOME", ""),
    (None, ".aws"),
    (None, ".ssh"),
    (None, ".gnupg"),
    (None, ".kube"),
    (None, ".docker"),
    ("DOCKER_CONFIG", ""),
    (None, ".config/gcloud"),
    (None, ".config/gh"),
    (None, ".netrc"),
    (None, ".git-credentials"),
    (None, ".config/git/credentials"),
    (None, ".gitconfig"),
    (None, ".pypirc"),
    (None, ".databrickscfg"),
    (None, ".huggingface/token"),
    (None, ".cache/huggingface/token"),
    (None, ".cache/huggingface/stored_tokens"),
)
"""Credential stores of tools: below the home folder, or at the path in a variable."""
_KEPT_OUTSIDE_HOME: Final = re.compile(
    r"/proc/[^/]+/(?:task/[^/]+/)?(?:environ|mem)|.*/\.git/(?:.*/)?config(?:\.worktree)?|.*/git-credentials-[^/]*"
    r"|.*/_runner_file_commands/.*"
)
"""The variables and memory of a process; a clone's configuration, into which a workflow's checkout writes its token."""


@lru_cache(maxsize=4096)  # an environment has few names, and each is asked for with every file
def _withheld(name: str, value: str) -> bool:
    """True for a variable that a job file does not see."""
    upper = name.upper()
    if upper in _NO_SECRETS:
        return False
    return bool(_OF_SIGN_INS.fullmatch(upper) or _OF_SECRETS.fullmatch(upper)) or form(value) is not None


class Stores:
    """The files that keep credentials, as they lie when a job file starts to be read."""

    def __init__(self, variables: dict[str, str]) -> None:
        """Take the variables of this process."""
        home = os.path.expanduser("~")  # noqa: PTH111 - text all along: each file that is opened is looked up
        below = [
            variables[name] if name else f"{home}/{rest}"
            for name, rest in _DIRECTORIES
            if not name or variables.get(name)
        ]
        named = [
            value
            for name, value in variables.items()
            if value.startswith("/") and _withheld(name, value) and not os.path.isdir(value)  # noqa: PTH112
        ]
        self._roots = tuple(dict.fromkeys(f"{os.path.realpath(path)}/" for path in (*below, *named)))
        # Folders of installed modules, whose thousands of files hold none.
        self._trusted = tuple({f"{prefix}/lib/" for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)})

    def holds(self, path: Any) -> str | None:
        """The path, as text, if it leads to credentials."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None  # a descriptor of what is open already
        text = os.fsdecode(path)
        if text.startswith(self._trusted) and "/../" not in text:
            return None
        with contextlib.suppress(OSError, ValueError):  # whoever opens it is told
            real = os.path.realpath(text)
            if _KEPT_OUTSIDE_HOME.fullmatch(real) or f"{real}/".startswith(self._roots):
                return text
        return None


@dataclass(frozen=True)
class Surroundings:
    """The surroundings of a job file, as they are before it is read.

    Attributes:
        variables: All of this process, as they are kept.
        hidden: Names of those that the file does not see.
        stores: Where credentials are kept.
        loader: What decides which program a name is, and what is loaded into it.
    """

    variables: dict[bytes, bytes]
    hidden: frozenset[str]
    stores: Stores
    loader: dict[bytes, bytes]


@lru_cache(maxsize=2)  # they are the same for each of a thousand files
def _surroundings(kept: tuple[tuple[bytes, bytes], ...]) -> Surroundings:
    variables = {os.fsdecode(name): os.fsdecode(value) for name, value in kept}
    hidden = frozenset(name for name, value in variables.items() if _withheld(name, value))
    return Surroundings(dict(kept), hidden, Stores(variables), _loader(dict(kept)))


def _loader(kept: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """The variables that decide which program a name is, and which libraries it loads."""
    return {name: value for name, value in kept.items() if name == b"PATH" or name.startswith(b"LD_")}


def _kept() -> dict[bytes, bytes]:
    environ: Any = os.environ
    return environ._data  # type: ignore[no-any-return]  # noqa: SLF001 - without decoding all for each file


@contextlib.contextmanager
def without_credentials(before: Surroundings, asked: Callable[[str], None]) -> Iterator[None]:
    """Take the variables with credentials out of this process's environment, and put back all of it at the end.

    Args:
        before: As it is before.
        asked: Told the name of each variable that is asked for.
    """
    environ, kept, hidden = os.environ, _kept(), before.hidden
    for name in hidden:
        del environ[name]
    kind: Any = type(environ)
    original = kind.__getitem__

    def getitem(self: Any, name: Any) -> Any:
        if isinstance(name, str | bytes) and os.fsdecode(name) in hidden and os.fsencode(name) not in self._data:
            asked(os.fsdecode(name))
        return original(self, name)

    kind.__getitem__ = getitem
    try:
        yield
    finally:
        kind.__getitem__ = original
        os.environ = environ  # noqa: B003 - the very object, should the file have put another there
        for key in kept.keys() - before.variables.keys():
            del environ[os.fsdecode(key)]
        for key, value in before.variables.items():
            if kept.get(key) != value:
                environ[os.fsdecode(key)] = os.fsdecode(value)


class StoppedError(BaseException):
    """The file tried what ends it. No library can mean to catch it, and to try again: it is no `Exception`."""


class RefusedCallError(PermissionError):
    """The file tried what it does not get. A library that only wants to know more can go on without."""


@dataclass(frozen=True)
class _Reading:
    thread: int
    refuse: Callable[[str, str], None]
    before: Surroundings


_reading: _Reading | None = None
"""The file that is being read. A hook cannot be taken away again, so it asks this first."""


def _address(address: Any) -> str:
    if isinstance(address, tuple) and len(address) > 1:
        return f"`{_text(address[0])}:{_text(address[1])}`"
    return f"`{_text(address)}`"


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else repr(value)


NETWORK, PROCESS, CREDENTIALS = "python-uses-network", "python-starts-process", "python-reads-credentials"
"""Codes of what is refused."""


def _connects(_: Any, address: Any = None, *__: Any) -> str | None:
    return None if address is None else f"connect to {_address(address)}"  # None: of a pair of sockets


def _looks_up(host: Any, *_: Any) -> str | None:
    return None if host is None else f"look up {_address(host)}"


def _listens(_: Any, address: Any) -> str | None:
    # urllib3 asks so, at its import, whether this machine has IPv6.
    harmless = isinstance(address, tuple) and address[:2] in (("::1", 0), ("127.0.0.1", 0))
    return None if harmless else f"listen at {_address(address)}"


_HARMLESS: Final = (["uname", "-p"], ["/sbin/ldconfig", "-p"])
"""Programs by which `platform` and `ctypes.util` of Python look at the machine, at the import of many a library."""


def _starts(executable: Any, args: Any = (), cwd: Any = None, *_: Any) -> str | None:
    words = [_text(each) for each in args] if isinstance(args, list | tuple) else [_text(args)]
    harmless = words in _HARMLESS and _text(executable) == words[0] and cwd is None
    if harmless and _reading is not None and _reading.before.loader == _loader(_kept()):
        return None
    # Arguments may hold secrets: the program is named alone.
    return f"start the process `{(words or [_text(executable)])[0].split(' ')[0]}`"


def _executes(executable: Any, *_: Any) -> str:
    return f"start the process `{_text(executable)}`"


def _opens(path: Any, *_: Any) -> str | None:
    found = _reading and _reading.before.stores.holds(path)
    return f"open `{found}`, where credentials are kept" if found else None


_NATIVE: Final = re.compile(
    "system|popen|v?fork|clone|exec[lv]p?e?|posix_spawnp?|socket|connect|sendto|getaddrinfo|gethostbyname"
    "|(?:secure_)?getenv|environ|syscall"
)


def _calls(_: Any, name: Any) -> str | None:
    return f"call `{name}` of the C library" if isinstance(name, str) and _NATIVE.fullmatch(name) else None


_ASKED: Final[dict[str, Callable[..., str | None]]] = {
    "socket.connect": _connects,
    "socket.sendto": _connects,
    "socket.sendmsg": _connects,
    "socket.getaddrinfo": _looks_up,
    "socket.gethostbyname": _looks_up,
    "socket.gethostbyaddr": _looks_up,
    "socket.getnameinfo": _looks_up,
    "socket.bind": _listens,
    "subprocess.Popen": _starts,
    "os.system": lambda command: f"start the process `{_text(command).split(' ')[0]}`",
    "os.exec": _executes,
    "os.posix_spawn": _executes,
    "os.fork": lambda: "fork this process",
    "os.forkpty": lambda: "fork this process",
    "pty.spawn": lambda args: _starts(None, args),
    "_thread.start_new_thread": lambda *_: "start a thread",
    "_thread.start_joinable_thread": lambda *_: "start a thread",
    "cpython.PyInterpreterState_New": lambda: "start an interpreter, which has no such refusals",
    "open": _opens,
    "os.link": _opens,
    "os.rename": _opens,
    "sqlite3.connect": _opens,
    "ctypes.dlsym": _calls,
}
"""Events of `sys.audit` that are refused, each with what it would do; None for what is harmless."""

_HOLDERS: Final = ("pulumi", "grpc", "infra")
"""Modules by which a program reaches the stack's settings, and the engine that has its credentials."""


def _hook(event: str, args: tuple[Any, ...]) -> None:
    reading = _reading
    if reading is None or (asked := _ASKED.get(event)) is None or reading.thread != threading.get_ident():
        return
    if (tried := asked(*args)) is not None:
        network, opened = event.startswith("socket."), asked is _opens
        reading.refuse(NETWORK if network else CREDENTIALS if opened else PROCESS, tried)


_hooked: list[bool] = []


@contextlib.contextmanager
def refusing(refuse: Callable[[str, str], None], asked: Callable[[str], None]) -> Iterator[None]:
    """Refuse what the thread that reads a file tries; a file gets no thread of its own.

    Args:
        refuse: Told the code and what was tried (`connect to HOST`); it raises.
        asked: Told the name of each variable that is asked for and not shown.
    """
    global _reading  # noqa: PLW0603 - a hook is there for the whole process
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_hook)
    before = _reading
    reading = _Reading(threading.get_ident(), refuse, _surroundings(tuple(_kept().items())))
    with replaced(_replacements()), without_credentials(reading.before, asked):
        _reading = reading
        try:
            yield
        finally:
            _reading = before


@contextlib.contextmanager
def replaced(replacements: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Replace functions of modules and classes, each by its owner, its name and what stands in its place."""
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in replacements]
    for owner, name, replacement in replacements:
        setattr(owner, name, replacement)
    try:
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


@lru_cache(maxsize=1)  # made once, for all files
def _replacements() -> tuple[tuple[Any, str, Callable[..., Any]], ...]:
    """The calls of which no audit hook is told, or is told too late."""
    import _posixsubprocess  # noqa: PLC0415 - multiprocessing starts its processes by it

    def asking(original: Callable[..., Any], tried: Callable[..., str | None]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            reading = _reading
            ours = reading is not None and reading.thread == threading.get_ident()
            if ours and reading is not None and (what := tried(*args, **named)) is not None:
                reading.refuse(CREDENTIALS if tried in (imports, opens_below) else PROCESS, what)
            return original(*args, **named)

        return call

    def opens_below(path: Any, *_: Any, dir_fd: int | None = None, **__: Any) -> str | None:
        # The hook is told the path alone, and not where it begins.
        if dir_fd is None or not isinstance(path, str | bytes | os.PathLike):
            return None
        return _opens(os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), os.fsdecode(path)))  # noqa: PTH115, PTH118

    def imports(name: Any, *_: Any, **__: Any) -> str | None:
        root = str(name).partition(".")[0]
        held = root in _HOLDERS or root.startswith("pulumi_")
        return f"import `{root}`, which leads to the stack's secrets" if held else None

    def at_exit(function: Any, *args: Any, **named: Any) -> Any:
        register(_later, function, args, named)
        return function

    def starts_thread(*_: Any, **__: Any) -> str:
        return "start a thread"

    register = atexit.register
    return (
        (builtins, "__import__", asking(builtins.__import__, imports)),
        (importlib, "import_module", asking(importlib.import_module, imports)),
        (threading.Thread, "start", asking(threading.Thread.start, starts_thread)),
        # Python tells the hook of these from 3.12 on.
        (_thread, "start_new_thread", asking(_thread.start_new_thread, starts_thread)),
        (_posixsubprocess, "fork_exec", asking(_posixsubprocess.fork_exec, lambda *_, **__: "start a process")),
        (os, "open", asking(os.open, opens_below)),
        (atexit, "register", at_exit),
    )


def raise_for(code: str, tried: str) -> NoReturn:
    """Leave a call that is refused."""
    if code == NETWORK:
        raise StoppedError(tried)
    raise RefusedCallError(f"refused while a job file is read: {tried}")


def _later(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Run what a file left for the end of the process under the same refusals."""
    with contextlib.suppress(StoppedError, RefusedCallError), refusing(raise_for, lambda _: None):
        function(*args, **named)
