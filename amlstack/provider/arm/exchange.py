"""One exchange with the service: its connection, its typed answer, repetitions, waits that end with the engine."""

from __future__ import annotations

import contextvars
import email.utils
import functools
import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

from amlstack.base.credentials import scrub

if TYPE_CHECKING:
    import ssl

    from azure.core.pipeline.transport import RequestsTransport

_CONNECTIONS: Final = 32
"""Kept open for each host; the engine asks for this many operations at once on eight cores."""
LOADING = threading.RLock()
"""Held while modules of Azure's clients are loaded. They import each other in circles, and Python gives a second
thread that imports one of them meanwhile half a module, and with that an ImportError."""
_loaded = threading.Event()


def load_azure_core() -> None:
    """Load all of it that requests need; called before what imports parts of it, in any thread.

    It is not loaded with this package: a preview that asks Azure nothing should not pay for it.
    """
    if _loaded.is_set():
        return
    with LOADING:
        import azure.core.credentials  # noqa: PLC0415
        import azure.core.exceptions  # noqa: PLC0415
        import azure.core.pipeline.policies  # noqa: PLC0415
        import azure.core.pipeline.transport  # noqa: PLC0415
        import azure.core.rest  # noqa: F401, PLC0415

        _loaded.set()


def make_transport(ca: str | None = None) -> RequestsTransport:
    """azure-core's transport, over connections that are kept. Safe for use by several threads.

    Args:
        ca: PEM file of the authorities to trust, whose hosts are asked directly; when not given, authorities and
            proxies are those of the environment.
    """
    load_azure_core()
    from azure.core.pipeline.transport import RequestsTransport  # noqa: PLC0415

    return opened(RequestsTransport(connection_verify=ca or True, use_env_settings=ca is None))


def opened(transport: RequestsTransport) -> RequestsTransport:
    """A transport whose connections are kept and share what they trust; azure-core's has it read for each of them."""
    from requests import adapters, certs  # noqa: PLC0415

    class Connections(adapters.HTTPAdapter):  # type: ignore[misc]  # it is loaded late, and has no type then
        def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
            file = certs.where() if verify is True else verify
            if file and Path(file).is_file() and not conn.proxy:  # which is trusted by it in a way of its own
                with _TRUSTING:
                    conn.conn_kw["ssl_context"] = _trusting(file, Path(file).stat().st_mtime_ns)
                conn.cert_reqs, conn.ca_certs = "CERT_REQUIRED", None
            else:
                super().cert_verify(conn, url, verify, cert)

    transport.open()
    session: Any = transport.session
    session.auth = _unchanged
    session.mount("https://", Connections(pool_maxsize=_CONNECTIONS))
    return transport


_TRUSTING: Final = threading.Lock()


@functools.lru_cache(maxsize=8)
def _trusting(authorities: str, _written: int) -> ssl.SSLContext:
    """A context for a file as it was written then: to read a machine's hundred authorities takes 0.05 s of CPU."""
    from urllib3.util.ssl_ import create_urllib3_context  # noqa: PLC0415

    context = create_urllib3_context()
    context.load_verify_locations(authorities)
    return context


def _unchanged(request: Any) -> Any:
    """Keeps ``~/.netrc`` from taking the place of the token."""
    return request


LONGEST_DELAY: Final = 60.0
"""Seconds between two looks at an operation, at most."""


class ArmError(Exception):
    """The service refused, or could not be asked.

    Attributes:
        status: HTTP status; 0 when there was no answer at all.
        code: The service's error code, e.g. ``ResourceNotFound``; ours are ``ConnectionFailed`` and ``NoCredential``.
        message: The service's own words, without anything secret.
        waited: Seconds that the service itself asked to wait (``Retry-After``) before the request was given up.
    """

    def __init__(self, status: int, code: str, message: str, *, waited: float = 0.0) -> None:
        self.status = status
        self.code = code
        self.message = scrub(message)
        self.waited = waited
        super().__init__(f"{self.code} ({status}): {self.message}" if status else self.message)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer with a status below 400, or one of those that the caller allowed.

    Attributes:
        status: HTTP status.
        body: Parsed JSON; ``{}`` when there is none.
        headers: Names in lower case.
        url: The absolute URL that answered.
        waited: Seconds that the service asked to wait before it gave this answer, which is that of a fault.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    waited: float = 0.0

    @property
    def delay(self) -> float | None:
        """Seconds until the next look at an operation, a minute at most; ``None`` when the service does not say."""
        seconds = self.retry_after
        return None if seconds is None else min(seconds, LONGEST_DELAY)

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the service wants to be asked again; ``None`` when it does not say."""
        for name, unit in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
            seconds = _seconds(self.headers.get(name, "")) * unit
            if seconds > 0:
                return seconds
        return None


def no_answer(url: str, error: Exception) -> ArmError:
    """The typed error of a connection that could not be made, or broke."""
    return ArmError(0, "ConnectionFailed", f"no answer from {urlsplit(url).netloc}: {error}")


def error_of(response: Response, fallback: str = "") -> ArmError:
    """The typed error of an answer; ARM wraps it in ``error``, the data plane does not always."""
    body = response.body if isinstance(response.body, dict) else {}
    inner = body.get("error")
    error: dict[str, Any] = inner if isinstance(inner, dict) else body
    code = str(error.get("code") or f"Http{response.status}")
    message = str(error.get("message") or fallback.strip()[:500] or "the service gave no reason")
    details = [str(item.get("message")) for item in error.get("details") or () if isinstance(item, dict)]
    more = [text for text in details if text and text != "None" and text not in message]
    return ArmError(response.status, code, " ".join((message, *more)), waited=response.waited)


def parsed(text: str) -> Any:
    """The JSON of an answer; ``{}`` when there is none."""
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return {}


def _seconds(text: str) -> float:
    """A number, or a date as the seconds until then; 0 for neither."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


_Result = TypeVar("_Result")

_LOOK: Final = 0.2
"""Seconds between two looks at whether the engine wants to end."""


class InterruptedWaitError(Exception):
    """The engine asked for running operations to end while one was being waited for.

    Args:
        request: What was being asked, e.g. ``PUT jobs/a``; empty when nothing was.
        uncertain: Whether that request may have taken effect: it was sent and its answer has not been seen.
    """

    def __init__(self, request: str = "", *, uncertain: bool = False) -> None:
        self.request = request
        self.uncertain = uncertain
        super().__init__(f"interrupted at {request}" if request else "interrupted")


def pause(seconds: float, cancelled: threading.Event | None) -> None:
    """Waits, but no longer than until ``cancelled`` is set.

    Raises:
        InterruptedWaitError: It was set.
    """
    if cancelled is None:
        time.sleep(seconds)
    elif cancelled.wait(seconds):
        raise InterruptedWaitError


def attended(work: Callable[[], _Result], cancelled: threading.Event | None) -> _Result:
    """Does blocking work that may be left behind: a connection, a token, a slow answer cannot be interrupted.

    The work goes on in a daemon thread after an interruption; it must be one exchange, never a loop of them.

    Raises:
        InterruptedWaitError: ``cancelled`` was set before the work had ended.
    """
    if cancelled is None:
        return work()
    if cancelled.is_set():
        raise InterruptedWaitError
    task: _Task[_Result] = _Task(work)
    try:
        worker = _IDLE.pop()
    except IndexError:
        worker = _Worker()
    worker.tasks.put(task)
    while not task.done.acquire(timeout=_LOOK):
        if cancelled.is_set():
            raise InterruptedWaitError
    if task.error is not None:
        raise task.error
    return task.results[0]


class _Task(Generic[_Result]):
    """Work in the context of the thread that waits for it."""

    def __init__(self, work: Callable[[], _Result]) -> None:
        self._work = work
        self._context = contextvars.copy_context()
        self.results: list[_Result] = []
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        """Does the work and keeps its result or its error for the waiting thread."""
        try:
            self.results.append(self._context.run(self._work))
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting thread
            self.error = error


class _Worker:
    """A daemon thread that does one task after the other: a new thread for each request cost a third of its CPU."""

    def __init__(self) -> None:
        self.tasks: queue.SimpleQueue[_Task[Any]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            task = self.tasks.get()
            task.run()
            # Idle again before the waiting thread goes on, so that its next request finds this worker.
            _IDLE.append(self)
            task.done.release()
            del task  # an idle thread keeps no answer alive


_IDLE: Final[list[_Worker]] = []
"""Workers without a task; as many as requests were ever under way at once."""


THROTTLED: Final = 429
REPEATED: Final = frozenset({408, THROTTLED, 500, 502, 503, 504})

FAULTS: Final = 5
"""The number of times that a request is repeated after a fault: no connection, no answer, or a 5xx."""
BACKOFF: Final = (0.4, 0.8, 1.6, 3.2, 6.4)
"""Seconds before each repetition where the service names none."""
THROTTLED_SECONDS: Final = 3600.0
"""Seconds for which the service may put off one request (429) before it is given up."""
THROTTLED_PAUSE: Final = 10.0
"""Seconds before a throttled request is repeated where the service names none."""


@dataclass(slots=True)
class Attempts:
    """The repetitions of one request.

    All requests of this project may be repeated: a PUT carries the whole state, a POST or PATCH asks for an end or sets
    values. What a repetition finds done already is for the caller to recognise.

    Args:
        request: The request in words, e.g. ``PUT jobs/a``.
        changes: Whether it changes something.
        cancelled: Ends everything when it is set.
        announce: Takes progress messages.
    """

    request: str
    changes: bool
    cancelled: threading.Event | None
    announce: Callable[[str], None]
    faults: int = 0
    waited: float = 0.0
    throttled: float = 0.0
    uncertain: bool = False

    def run(self, once: Callable[[], tuple[Response, str]]) -> tuple[Response, str]:
        """The first answer that is none of a fault, else the last one.

        Raises:
            ArmError: No connection or no credential, also after repetitions.
            InterruptedWaitError: ``cancelled`` was set.
        """
        while True:
            failure: ArmError | None = None
            answer: tuple[Response, str] | None = None
            try:
                answer = attended(once, self.cancelled)
            except InterruptedWaitError:
                raise self._interrupted(in_flight=True) from None
            except ArmError as error:
                failure = error
                if error.code != "ConnectionFailed":
                    raise
            if answer is not None and answer[0].status not in REPEATED:
                return answer
            seconds = self._seconds(answer[0] if answer else None)
            if seconds is None:
                if failure is not None:
                    failure.waited = self.waited
                    raise failure
                assert answer is not None  # noqa: S101 - there is one where nothing failed
                return replace(answer[0], waited=self.waited), answer[1]
            self._report(answer[0] if answer else None, failure, seconds)
            try:
                pause(seconds, self.cancelled)
            except InterruptedWaitError:
                raise self._interrupted(in_flight=False) from None

    def _seconds(self, response: Response | None) -> float | None:
        """The seconds to wait before the next attempt; None when there is to be none."""
        asked = response.retry_after if response else None
        if response is not None and response.status == THROTTLED:
            seconds = asked or THROTTLED_PAUSE
            self.throttled += seconds
            self.waited += seconds
            return seconds if self.throttled <= THROTTLED_SECONDS else None
        # An answer of 5xx or none at all says nothing about whether the request took effect.
        self.uncertain |= self.changes
        if self.faults >= FAULTS:
            return None
        seconds = asked or BACKOFF[self.faults]
        self.faults += 1
        self.waited += asked or 0.0
        return seconds

    def _report(self, response: Response | None, failure: ArmError | None, seconds: float) -> None:
        if response is not None and response.status == THROTTLED:
            self.announce(f"the service asks to wait {_shown(seconds)} (429, too many requests): {self.request}")
        elif response is not None:
            self.announce(f"the service answered {response.status}; asking again in {_shown(seconds)}: {self.request}")
        elif failure is not None:
            self.announce(f"{failure.message}; asking again in {_shown(seconds)}")

    def _interrupted(self, *, in_flight: bool) -> InterruptedWaitError:
        uncertain = self.uncertain or (in_flight and self.changes)
        return InterruptedWaitError(self.request, uncertain=uncertain)


def _shown(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
