"""Tests in several processes after one collection: each process is a fork of the one that has collected them.

With pytest-xdist each process collects all tests, ten seconds of CPU, and words on a test cross three threads.
"""

from __future__ import annotations

import itertools
import multiprocessing
import selectors
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from multiprocessing.connection import Connection

FORK = multiprocessing.get_context("fork")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=0, metavar="N", help="run the tests in N forks of this process")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs the tests in ``--processes``, if that is given and all could be collected."""
    number = session.config.option.processes
    if not number or session.config.option.collectonly or session.testsfailed:
        return None
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # one for all, or none would remove it
    modules = [list(tests) for _, tests in itertools.groupby(session.items, key=lambda item: item.path)]
    bounds = [len(modules) * place // number for place in range(number + 1)]
    work = Work([modules[first:last] for first, last in itertools.pairwise(bounds)])
    children: dict[Any, Child] = {}
    ready = selectors.DefaultSelector()
    for place in range(number):
        heard, told = FORK.Pipe(duplex=False)
        children[heard] = Child(session, work, place, told)
        children[heard].start(children)
        ready.register(heard, selectors.EVENT_READ)
    while children:
        for key, _ in ready.select():
            spoken: Any = key.fileobj
            try:
                said = spoken.recv()
            except EOFError:
                ready.unregister(spoken)
                children.pop(spoken).end()
            else:
                _say(session.config, *said)
        if session.shouldfail or session.shouldstop:
            work.is_over.value = True
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


def _say(config: pytest.Config, reports: list[Any], warning: dict[str, Any] | None) -> None:
    """Tells the plugins of this process what another one has said: the reports of a test, or a warning."""
    if warning:
        config.hook.pytest_warning_recorded.call_historic(kwargs=warning)
        return
    from_data = config.hook.pytest_report_from_serializable
    for sent in reports:
        report = from_data(config=config, data=sent) if isinstance(sent, dict) else sent
        config.hook.pytest_runtest_logreport(report=report)
    config.hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)


def _sent(config: pytest.Config, report: pytest.TestReport) -> Any:
    """A report as it goes to another process: as it is, which is quickest, unless it holds what was raised."""
    if report.longrepr is None:
        return report
    return config.hook.pytest_report_to_serializable(config=config, report=report)


class Work:
    """Modules of tests in parts, of which each process has one to begin with: tests of a folder share a process."""

    def __init__(self, parts: list[list[list[pytest.Item]]]) -> None:
        self.parts = parts
        self.taken = FORK.Array("i", len(parts))
        self.is_over = FORK.Value("b", lock=False)

    def of(self, place: int) -> Iterator[pytest.Item]:
        """The tests for a process: a module at a time, when its own part is done, of the others' parts."""
        for part in (*range(place, len(self.parts)), *range(place)):
            while (number := self._next(part)) < len(self.parts[part]):
                for item in self.parts[part][number]:
                    if self.is_over.value:
                        return
                    yield item

    def _next(self, part: int) -> int:
        with self.taken.get_lock():
            number: int = self.taken[part]
            self.taken[part] = number + 1
        return number


class Child:
    """One of the processes."""

    def __init__(self, session: pytest.Session, work: Work, place: int, told: Connection) -> None:
        self.session, self.work, self.place, self.told = session, work, place, told
        self.test = FORK.Array("c", 1000, lock=False)

    def start(self, heard: Iterable[Connection]) -> None:
        self.process = FORK.Process(target=self.run, args=(list(heard),))
        self.process.start()
        self.told.close()  # so that it ends with the child

    def end(self) -> None:
        """A process that ends early is a failure of the test that ran in it."""
        self.process.join()
        if self.process.exitcode:
            test = self.test.value.decode(errors="replace")
            words = f"the process ended with {self.process.exitcode}, and what was left of the module has not run"
            report = pytest.TestReport(test, (test, None, test), {}, "failed", words, "call")
            self.session.config.hook.pytest_runtest_logreport(report=report)

    def run(self, heard: Iterable[Connection]) -> None:
        """Runs in the process itself."""
        for one in heard:
            one.close()
        config = self.session.config
        capture = config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()  # its files are one for all processes
        capture.start_global_capturing()
        capture.suspend_global_capture()
        factory = config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = factory.mktemp(f"process-{self.place}", numbered=False)
        config.pluginmanager.register(self)
        try:
            for item, following in itertools.pairwise(itertools.chain(self.work.of(self.place), [None])):
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        finally:
            self.session._setupstate.teardown_exact(None)
        config._ensure_unconfigure()  # pytest looks for errors in what was left open

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        self.test.value = item.nodeid.encode()[:999]
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        self.told.send(([_sent(item.config, report) for report in reports], None))
        return True

    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str, location: Any) -> None:
        said = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self.told.send(([], said))
