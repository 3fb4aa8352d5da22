from __future__ import annotations

import re
import shutil
import subprocess
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

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="chromium is not installed here (apt-get install chromium): the page is not looked at"
)


def seen(page: Path, profile: Path, width: int) -> str:
    """The page as the browser has it after all of it was loaded and run."""
    assert BROWSER is not None
    words = [
        *(BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--disable-background-networking", f"--user-data-dir={profile}", f"--window-size={width},900", "--dump-dom"),
    ]
    done = subprocess.run([*words, page.as_uri()], capture_output=True, text=True, timeout=600, check=True)
    return done.stdout


@pytest.fixture
def page(tmp_path: Path) -> str:
    logs = tmp_path / "train" / "user_logs"
    logs.mkdir(parents=True)
    steps = "".join(f"epoch {each} loss {1 / (each + 1):.3f} {'x' * 300}\n" for each in range(40))
    (logs / "std_log_process_00.txt").write_text(steps + "\n".join(HOSTILE) + "\n")
    (logs / "std_log_process_01.txt").write_text(
        'Traceback (most recent call last):\n  File "train.py", line 1, in f\n    g()\nValueError: ' + HOSTILE[1] + "\n"
    )
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
