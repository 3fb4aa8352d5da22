from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from importlib import resources
from typing import TYPE_CHECKING

import pytest

from amlstack.report import jobs
from amlstack.report.page import render
from tests.support.report.pages import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)

pytestmark = [
    pytest.mark.tools,
    pytest.mark.skipif(
        BROWSER is None, reason="chromium is not installed here (apt-get install chromium): the page is not looked at"
    ),
]


AXE = resources.files("axe_playwright_python") / "axe.min.js"


def seen(page: Path, profile: Path, width: int, *more: str) -> str:
    """The page as the browser has it after all of it was loaded and run."""
    assert BROWSER is not None
    words = [
        *(BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *(
            "--disable-background-networking",
            f"--user-data-dir={profile}",
            f"--window-size={width},900",
            "--dump-dom",
            *more,
        ),
    ]
    done = subprocess.run([*words, page.as_uri()], capture_output=True, text=True, timeout=600, check=True)
    return done.stdout


@pytest.fixture
def page(tmp_path: Path) -> str:
    logs = tmp_path / "train" / "user_logs"
    logs.mkdir(parents=True)
    steps = "".join(f"epoch {each} loss {1 / (each + 1):.3f} {'x' * 300}\nstep_time 0.1\n" for each in range(40))
    (logs / "std_log_process_00.txt").write_text(steps + "\n".join(HOSTILE) + "\n")
    (logs / "std_log_process_01.txt").write_text(
        "step 1 step_time 1 s\n"
        'Traceback (most recent call last):\n  File "train.py", line 1, in f\n    g()\nValueError: ' + HOSTILE[1] + "\n"
    )
    samples = [f"{at}.0,{node},{node + 1},{2**30}," for at in range(9) for node in range(2)]
    (tmp_path / "train" / "usage.csv").write_text("\n".join(samples))
    return render(jobs.folder_report(tmp_path / "train", 1.8e9))


def test_no_line_of_a_log_runs(page: str, tmp_path: Path) -> None:
    # Even without the page's own policy: escaping alone must do.
    path = tmp_path / "page.html"
    path.write_text(re.sub(r"<meta http-equiv=[^>]*>", "", page))
    dom = seen(path, tmp_path / "profile", 1280)
    assert "<title>train · logs · run report</title>" in dom
    assert "owned'&lt;/script&gt;" in dom
    assert not re.search(r"<(?:script|img|iframe)\b", dom)


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window(page: str, tmp_path: Path, width: int) -> None:
    path = tmp_path / "page.html"
    probe = (
        "<script>for (const each of document.querySelectorAll('details')) each.open = true;"
        "const wide = [...document.querySelectorAll('main *')].filter(each => !each.closest('.wide') &&"
        " each.getBoundingClientRect().right > innerWidth + 1).map(each => each.className || each.tagName);"
        "document.documentElement.dataset.seen = innerWidth + ' ' + document.documentElement.scrollWidth"
        " + ' ' + wide.join()</script>"
    )
    path.write_text(re.sub(r"<meta http-equiv=[^>]*>", "", page).replace("</body>", f"{probe}</body>"))
    sizes = re.search(r'data-seen="(\d+) (\d+) ([^"]*)"', seen(path, tmp_path / "profile", width))
    assert sizes is not None
    inner, scroll, wide = sizes.groups()
    assert (int(scroll) <= int(inner), wide) == (True, "")


def test_the_page_s_own_policy_forbids_scripts(page: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", "<script>document.title = 'ran'</script></body>"))
    assert "<title>train · logs · run report</title>" in seen(path, tmp_path / "profile", 1280)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_axe_finds_nothing_serious(page: str, tmp_path: Path, width: int, scheme: str) -> None:
    path = tmp_path / "page.html"
    run = (
        "for (const each of document.querySelectorAll('details')) each.open = true;"
        "axe.run().then(found => { const seen = found.violations.map(each => [each.id, each.impact,"
        " each.nodes.map(node => node.html.slice(0, 200))]); document.documentElement.dataset.axe = JSON.stringify("
        "{seen, passed: found.passes.map(each => each.id), dark: matchMedia('(prefers-color-scheme: dark)').matches})})"
    )
    bare = re.sub(r"<meta http-equiv=[^>]*>", "", page)
    path.write_text(bare.replace("</body>", f"<script>{AXE.read_text('utf-8')}</script><script>{run}</script></body>"))
    preferred = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    dom = seen(path, tmp_path / "profile", width, preferred, "--virtual-time-budget=60000")
    (told,) = re.findall(r'data-axe="([^"]*)"', dom)
    found = json.loads(html.unescape(told))
    assert found["dark"] == (scheme == "dark")
    assert "color-contrast" in found["passed"]
    assert [each for each in found["seen"] if each[1] in ("serious", "critical")] == []
