from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from amlstack.base.findings import Level
from amlstack.snapshot import File, scan
from amlstack.snapshot import scan as scan_function
from amlstack.snapshot.content import secret_finding, secret_in
from tests.support.rows import for_each

if TYPE_CHECKING:
    from io import FileIO
    from pathlib import Path

SAS = "https://a.blob.core.windows.net/c?sv=2024&sig=" + "A" * 43 + "%3D"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    return folder


def codes(folder: Path) -> list[str]:
    return [finding.code for finding in scan(folder).findings]


def test_a_missing_folder_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    found = scan(tmp_path / "sorce")
    assert found.hash == ""
    (finding,) = found.findings
    assert finding.code == "code-folder-missing"
    assert "source" in finding.remedy


def test_a_file_is_no_folder(code: Path) -> None:
    (finding,) = scan(code / "train.py").findings
    assert finding.code == "code-folder-missing"
    assert str(code) in finding.remedy


def test_a_folder_without_any_file_is_refused(tmp_path: Path) -> None:
    assert codes(tmp_path) == ["code-folder-empty"]
    (tmp_path / ".amlignore").write_text("*\n")
    (finding,) = scan(tmp_path).findings
    assert ".amlignore" in finding.remedy


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_that_leaves_the_folder_is_refused_by_name(code: Path, kind: str) -> None:
    outside = code.parent / "outside"
    outside.mkdir()
    (outside / "data.txt").write_text("x")
    (code / "link").symlink_to(outside if kind == "folder" else outside / "data.txt")
    found = scan(code)
    (finding,) = found.findings
    assert (finding.code, finding.file) == ("link-leaves-folder", "link")
    assert found.hash == ""


def test_a_link_that_leaves_the_folder_may_be_ignored(code: Path) -> None:
    (code.parent / "data.txt").write_text("x")
    (code / "link").symlink_to("../data.txt")
    (code / ".amlignore").write_text("link\n")
    assert codes(code) == []


def test_a_chain_of_links_is_judged_by_its_end(code: Path) -> None:
    (code.parent / "data.txt").write_text("x")
    (code / "one").symlink_to("two")
    (code / "two").symlink_to("../data.txt")
    assert codes(code) == ["link-leaves-folder", "link-leaves-folder"]


def test_links_that_lead_nowhere_or_in_circles_are_refused(code: Path) -> None:
    (code / "broken").symlink_to("nowhere")
    (code / "loop").symlink_to("loop")
    (code / "sub").mkdir()
    (code / "sub/up").symlink_to("..")
    assert sorted(codes(code)) == ["link-broken", "link-broken", "link-circle"]


def test_pipes_and_sockets_are_refused_instead_of_read(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(code / "pipe")
    monkeypatch.chdir(code)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("door")
        assert codes(code) == ["file-special", "file-special"]


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "\x1b[2J", "a\x7f", "a\x85"])
def test_a_name_with_a_control_character_is_refused_before_the_upload(name: str, code: Path) -> None:
    (code / name).write_text("x")
    (finding,) = scan(code).findings
    assert finding.code == "file-name-control"
    assert name not in str(finding)
    (code / name).unlink()
    (code / name).mkdir()
    (code / name / "x").write_text("x")
    assert codes(code) == ["file-name-control"]


@pytest.mark.parametrize("name", ["-rf", "$(touch x)", "a b", "%2f", "'\"`", "é🙂", "a" * 255, "::error::x", "a\\b"])
def test_other_odd_names_are_taken(name: str, code: Path) -> None:
    (code / name).write_text("x")
    assert name in {file.relative for file in scan(code).files}


def test_a_file_that_cannot_be_opened_is_a_finding(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: File) -> FileIO:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(File, "open", refuse)
    found = scan(code)
    assert [finding.code for finding in found.findings] == ["file-unreadable"]
    assert found.hash == ""


def test_a_name_that_is_no_text_is_refused(code: Path) -> None:
    with open(os.fsencode(code) + b"/\xff.py", "wb"):  # noqa: PTH123  bytes on purpose
        pass
    assert codes(code) == ["file-name-no-text"]


def test_a_bad_line_of_the_ignore_file_has_its_line_number(code: Path) -> None:
    (code / ".gitignore").write_text("fine\n!\nalso fine\nlost\\\n")
    findings = scan(code).findings
    assert [(finding.code, finding.line) for finding in findings] == [
        ("ignore-pattern-invalid", 2),
        ("ignore-pattern-invalid", 4),
    ]


def test_an_ignore_file_that_is_no_text_is_a_finding(code: Path) -> None:
    (code / ".gitignore").write_bytes(b"\xff\xfe")
    assert codes(code) == ["ignore-file-unreadable"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".env", "A=1"),
        (".env.production", ""),
        ("id_rsa", ""),
        ("certs/server.pfx", "x"),
        (".ssh/known", "x"),
        ("key.pem", "-----BEGIN RSA PRIVATE KEY-----\nabc"),
        ("train.py", f"URL = '{SAS}'"),
        ("settings.txt", "AccountKey=" + "Q" * 86 + "=="),
        ("hub.py", "token = 'hf_" + "a" * 34 + "'"),
    ],
)
def test_what_looks_like_a_secret_is_a_warning_that_does_not_quote_it(code: Path, name: str, content: str) -> None:
    path = code / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    found = scan(code)
    (finding,) = found.findings
    assert (finding.code, finding.level, finding.file) == ("secret-in-code", Level.WARNING, name)
    assert len(found.hash) == 64, "a warning refuses nothing"
    assert "QQQQ" not in str(finding)
    assert "AAAA" not in str(finding)


@for_each(
    "name, content",
    [
        (".env.example", b"A="),
        ("key.pem", b"-----BEGIN PUBLIC KEY-----"),
        ("weights.bin", b"\0\0AKIA0123456789ABCDEF"),
        ("environment.py", b"import os"),
        ("url.py", b"https://example.org/?sig=short"),
    ],
)
def test_what_only_resembles_a_secret_is_left_alone(name: str, content: bytes) -> None:
    assert secret_finding(name, secret_in(content)) is None


def test_the_line_of_a_secret_is_given(code: Path) -> None:
    (code / "train.py").write_text(f"a\nb\n{SAS}\n")
    (finding,) = scan_function(code).findings
    assert finding.line == 3


def test_the_history_of_a_repository_is_warned_about_unless_it_is_ignored(code: Path) -> None:
    (code / ".git").mkdir()
    (code / ".git/HEAD").write_text("ref: refs/heads/main\n")
    assert codes(code) == ["git-folder-in-code"]
    (code / ".gitignore").write_text(".git/\n")
    assert codes(code) == []


def test_size_and_order_of_the_files(code: Path) -> None:
    (code / "B.py").write_text("22")
    (code / "a.py").write_text("1")
    found = scan(code)
    assert [file.relative for file in found.files] == ["a.py", "B.py", "train.py"]
    assert found.bytes == 1 + 2 + 9
