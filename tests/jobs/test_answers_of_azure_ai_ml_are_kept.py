"""An answer of azure-ai-ml is kept while nothing that it depends on changes, and asked anew otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.jobs import answers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def asked() -> list[Path]:
    return []


@pytest.fixture
def question(asked: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Path], Any]:
    """A question whose answer names the file's folder, and says how often it was asked."""
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))

    def count(path: Path) -> Any:
        asked.append(path)
        if "refused" in path.read_text():
            raise answers.RefusedError(f"{path} is refused")
        return {"code": f"{path.parent}/src", "times": len(asked)}

    return answers.kept(count)


def written(folder: Path, text: str = "code: src\n") -> Path:
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "conda.yml").write_text("name: x\n")
    place = folder / "job.yml"
    place.write_text(text)
    return place


def test_the_same_files_are_asked_about_once_and_the_answer_names_their_folder(
    question: Callable[[Path], Any], asked: list[Path], tmp_path: Path
) -> None:
    first, second = written(tmp_path / "a"), written(tmp_path / "b")
    assert question(first) == {"code": f"{first.parent}/src", "times": 1}
    assert question(second) == {"code": f"{second.parent}/src", "times": 1}
    assert asked == [first]


def test_a_refusal_is_kept_too(question: Callable[[Path], Any], asked: list[Path], tmp_path: Path) -> None:
    place = written(tmp_path / "a", "refused: true\n")
    for _ in range(2):
        with pytest.raises(answers.RefusedError, match=f"^{place} is refused$"):
            question(place)
    assert asked == [place]


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], Any]] = {
    "its text": lambda place, _: place.write_text("code: src \n"),
    "a file beside it": lambda place, _: (place.parent / "src" / "conda.yml").write_text("name: y\n"),
    "a new file": lambda place, _: (place.parent / "src" / "more.py").write_text(""),
    "a new folder": lambda place, _: (place.parent / "data").mkdir(),
    "a file's name": lambda place, _: (place.parent / "src" / "conda.yml").rename(place.parent / "src" / "c.yml"),
    "a package": lambda _, patch: patch.setattr(answers, "packages", lambda: ("azure_ai_ml-0.0.1.dist-info",)),
    "the questions": lambda _, patch: patch.setattr(answers, "sources", lambda: ("another", "text")),
    "Python": lambda _, patch: patch.setattr("sys.version", "3.0"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_an_answer_depends_on_has_it_asked_anew(
    change: str,
    question: Callable[[Path], Any],
    asked: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = written(tmp_path / "a")
    question(place)
    CHANGES[change](place, monkeypatch)
    assert question(place)["times"] == 2
    assert asked == [place, place]


def test_an_installed_package_is_known_by_its_version() -> None:
    assert any(name.startswith("azure_ai_ml-1.") for name in answers.packages())


@pytest.mark.parametrize("text", ["code: ../other\n", "code: file:{OTHER}\n", "- src/../../other/\n", "data: ~/\n"])
def test_a_path_to_something_outside_is_never_kept(
    text: str, question: Callable[[Path], Any], asked: list[Path], tmp_path: Path
) -> None:
    place = written(tmp_path / "a", text.replace("{OTHER}", str(tmp_path / "other")))
    (tmp_path / "other").mkdir()
    question(place)
    question(place)
    assert len(asked) == 2


def test_a_link_is_never_kept(question: Callable[[Path], Any], asked: list[Path], tmp_path: Path) -> None:
    place = written(tmp_path / "a")
    (place.parent / "link").symlink_to(tmp_path)
    question(place)
    question(place)
    assert len(asked) == 2
