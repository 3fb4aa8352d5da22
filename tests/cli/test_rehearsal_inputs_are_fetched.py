"""`rehearse --fetch`: files at https addresses come into the cache whole, each once, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.base import paths
from amlstack.cli.main import main
from amlstack.cli.rehearsal import request
from tests.support.loopback import Loopback

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

ROWS = b"a,b\n1,2\n"
JOB = """\
command: python train.py --data ${{{{inputs.data}}}}
code: src
environment: azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/12
compute: azureml:gpu
limits: {{timeout: 60}}
inputs:
  data: {{type: {kind}, path: "{url}"}}
"""


class Files:
    """A service of files that counts what it was asked, and by which etag."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.lengths = {"/cut.csv": len(ROWS) + 5}
        self.service = Loopback(folder, self.answer)

    def answer(self, http: BaseHTTPRequestHandler, content: bytes) -> None:
        tag = http.headers.get("If-None-Match")
        self.asked.append((http.path, tag))
        assert http.headers.get("Authorization") is None
        status = 404 if http.path == "/none.csv" else 304 if tag == '"1"' else 302 if http.path == "/away.csv" else 200
        http.send_response(status)
        http.send_header("ETag", '"1"')
        if status == 302:
            http.send_header("Location", "http://127.0.0.1:9/plain.csv")
        http.send_header("Content-Length", str(self.lengths.get(http.path, len(ROWS)) if status == 200 else 0))
        http.send_header("Connection", "close")
        http.end_headers()
        if status == 200:
            http.wfile.write(ROWS)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    (tmp_path / "ca").mkdir()
    found = Files(tmp_path / "ca")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(found.service.ca))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("import sys\n")
    yield found
    found.service.close()


def rehearsed(folder: Path, url: str, *words: str, kind: str = "uri_file") -> int:
    (folder / "job.yml").write_text(JOB.format(url=url, kind=kind))
    return main(["rehearse", str(folder / "job.yml"), "--size", "Standard_ND96asr_v4", "--dry-run", *words])


def fetched() -> list[bytes]:
    return [path.read_bytes() for path in sorted((paths.cache() / "inputs").rglob("*")) if path.suffix == ".csv"]


def test_an_input_is_fetched_once_and_used(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"{files.service.url}/rows.csv?sig=1"
    assert rehearsed(tmp_path, url) == 2
    assert "Fetch it with `--fetch`" in capsys.readouterr().out
    assert rehearsed(tmp_path, url, "--fetch") == 0
    shown = capsys.readouterr()
    assert (fetched(), "fetched 0.0 MB in" in shown.err) == ([ROWS], True)
    assert "(fetched)" in shown.out
    assert rehearsed(tmp_path, url) == 0
    assert rehearsed(tmp_path, url, "--fetch") == 0
    assert "is as it was fetched" in capsys.readouterr().err
    assert files.asked == [("/rows.csv?sig=1", None), ("/rows.csv?sig=1", '"1"')]


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("none.csv", (), "the service answered 404"),
        ("cut.csv", (), "was not fetched"),
        ("away.csv", (), "was not fetched"),
        ("rows.csv", ("--input", f"data={__file__}"), ""),
    ],
)
def test_what_is_not_whole_is_not_used(
    name: str, words: tuple[str, ...], said: str, files: Files, tmp_path: Path, *, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rehearsed(tmp_path, f"{files.service.url}/{name}", "--fetch", *words) == (2 if said else 0)
    assert said in capsys.readouterr().out
    assert fetched() == []
    assert list((paths.cache() / "inputs").rglob(".part-*")) == []
    assert bool(files.asked) == bool(said)


def test_a_larger_file_than_allowed_is_not_fetched(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files.lengths["/large.csv"] = 3_000_000
    assert rehearsed(tmp_path, f"{files.service.url}/large.csv", "--fetch", "--fetch-at-most", "2") == 2
    assert "`--fetch-at-most` allows 2 MB" in capsys.readouterr().out
    assert fetched() == []


def test_a_folder_is_not_fetched(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rehearsed(tmp_path, f"{files.service.url}/rows", "--fetch", kind="uri_folder") == 2
    assert "--fetch" not in capsys.readouterr().out
    assert files.asked == []


@pytest.mark.parametrize(
    ("terminal", "answer", "brought"), [(True, True, [ROWS]), (True, False, []), (False, True, [])]
)
def test_a_person_on_a_terminal_is_asked_with_the_size(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, terminal: bool, answer: bool, brought: list[bytes]
) -> None:
    questions: list[str] = []
    monkeypatch.setattr(request, "on_a_terminal", lambda: terminal)
    monkeypatch.setattr(request, "confirmed", lambda question: questions.append(question) or answer)
    url = f"{files.service.url}/rows.csv"
    (tmp_path / "job.yml").write_text(JOB.format(url=url, kind="uri_file"))
    asked = request.RehearsalRequest(tmp_path / "job.yml", "Standard_ND96asr_v4", offer=10**6)
    for _ in range(2):
        found = [each.code for each in request.survey(asked).missing]
    assert fetched() == brought
    assert found == ([] if brought else ["input-elsewhere"])
    assert questions == [f"Fetch the input `data` from {url}: 0.0 MB?"] * (terminal * (1 if brought else 2))
    assert len(files.asked) == len(questions), "what is here is not asked for, and nobody asks without a terminal"
