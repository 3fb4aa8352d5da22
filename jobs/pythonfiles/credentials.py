"""Credentials are withheld from a Python job file: the variables that hold them, and the files that keep them."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.credential_patterns import form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
_ANYWHERE: Final = re.compile(
    r"/proc/[^/]+/(?:task/[^/]+/)?(?:environ|mem)|.*/\.git/(?:.*/)?config(?:\.worktree)?|.*/git-credentials-[^/]*"
    r"|.*/_runner_file_commands/.*"
)
"""The variables and memory of a process; a clone's configuration, into which a workflow's checkout writes its token."""


@lru_cache(maxsize=4096)  # an environment has few names, and each is asked for with every file
def _withheld(name: str, value: str) -> bool:
    """Whether a job file does not see a variable."""
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
        self._roots = _resolved((*below, *named))
        self._trusted = _trusted()

    def holds(self, path: Any) -> str | None:
        """The path, as text, if it leads to credentials."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None  # a descriptor of what is open already
        text = os.fsdecode(path)
        if text.startswith(self._trusted) and "/../" not in text:
            return None
        with contextlib.suppress(OSError, ValueError):  # whoever opens it is told
            real = os.path.realpath(text)
            if _ANYWHERE.fullmatch(real) or f"{real}/".startswith(self._roots):
                return text
        return None


@lru_cache(maxsize=8)
def _resolved(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{os.path.realpath(path)}/" for path in paths))


@lru_cache(maxsize=1)
def _trusted() -> tuple[str, ...]:
    """Folders of installed modules, whose thousands of files hold none."""
    return tuple({f"{prefix}/lib/" for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)})


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


def surroundings() -> Surroundings:
    """Those of this process."""
    return _surroundings(tuple(_kept().items()))


@lru_cache(maxsize=2)  # they are the same for each of a thousand files
def _surroundings(kept: tuple[tuple[bytes, bytes], ...]) -> Surroundings:
    variables = {os.fsdecode(name): os.fsdecode(value) for name, value in kept}
    hidden = frozenset(name for name, value in variables.items() if _withheld(name, value))
    return Surroundings(dict(kept), hidden, Stores(variables), _loader(dict(kept)))


def loader() -> dict[bytes, bytes]:
    """The variables that decide which program a name is, and which libraries it loads."""
    return _loader(_kept())


def _loader(kept: dict[bytes, bytes]) -> dict[bytes, bytes]:
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
