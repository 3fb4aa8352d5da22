from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from amlstack.images import building, standins

BASE = standins.resolve("minimal-py")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))


def test_a_stand_in_is_built_once_and_says_what_it_does() -> None:
    messages: list[str] = []
    place = building.build(BASE, messages.append)
    assert messages[0].startswith("base: building")
    assert messages[-1].startswith("base: built in")
    assert building.ready(BASE) == place
    done = subprocess.run(
        [place / "bin/python", "-c", "import sys; print(sys.prefix)"], check=True, capture_output=True, text=True
    )
    assert Path(done.stdout.strip()) == place
    messages.clear()
    assert building.build(BASE, messages.append) == place
    assert messages == []


def test_two_at_once_build_one() -> None:
    messages: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda _: building.build(BASE, messages.append), range(2))
    assert one == two
    assert len([line for line in messages if "built in" in line]) == 1
    assert [path.name for path in one.parent.iterdir() if ".part-" in path.name] == []


def test_what_an_interrupted_build_left_is_no_environment() -> None:
    place = building.folder(BASE)
    left = place.parent / f".{BASE.key}.part-1"
    left.mkdir(parents=True)
    assert building.ready(BASE) is None
    building.build(BASE)
    assert not left.exists()


def test_an_interruption_leaves_nothing() -> None:
    def stop(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        building.build(BASE, stop)
    assert building.ready(BASE) is None
    assert building.build(BASE).is_dir()


def test_a_requirement_that_does_not_exist_fails_with_uvs_own_words() -> None:
    wrong = replace(BASE, name="wrong", requirements=("./no-such-wheel-1.0-py3-none-any.whl",))
    with pytest.raises(building.ImageBuildError, match=r"wrong could not be built(.|\n)*no-such-wheel"):
        building.build(wrong)
    assert building.ready(wrong) is None


def test_a_program_that_compiling_needs_is_asked_for_before_the_long_part(monkeypatch: pytest.MonkeyPatch) -> None:
    horovod = standins.resolve("horovod/horovod:0.28.1")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        building.ImageBuildError, match=r"needs mpicxx, g\+\+, make(.*)apt-get install libopenmpi-dev g\+\+"
    ):
        building.build(horovod)
    assert building.ready(horovod) is None


def test_the_key_follows_what_is_installed() -> None:
    assert replace(BASE, requirements=("x==1",)).key != BASE.key
    assert replace(BASE, constraints="y==1").key != BASE.key
    assert BASE.key.startswith("base-")


def test_the_interpreter_is_the_projects() -> None:
    place = building.build(BASE)
    show = [place / "bin/python", "-c", "import sys; print(sys.version_info[:2])"]
    assert subprocess.run(show, check=True, capture_output=True, text=True).stdout.strip() == str(sys.version_info[:2])
