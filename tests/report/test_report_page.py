from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from amlstack.report import jobs
from amlstack.report.logs import ChildJob, OutputFile, Phase, RankOutcome, Report, Series
from amlstack.report.page import GENERATOR, render
from tests.support.report.pages import HOSTILE, parse
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000.0
NAN = float("nan")
RAISED = """Traceback (most recent call last):
  File "/code/train.py", line 4, in main
    step()
ValueError: shard 7 is bad
"""
CLOSED = "RuntimeError: Connection closed by peer [10.0.0.5]:41712\n"


def job(root: Path, *logs: str) -> Path:
    """A folder as the sandbox leaves it after rank 1 of as many as there are logs has failed."""
    (root / "user_logs").mkdir(parents=True)
    (root / "outputs").mkdir()
    (root / "outputs" / "model.pt").write_bytes(b"x" * 2048)
    ranks = []
    for rank, text in enumerate(logs):
        (root / "user_logs" / f"std_log_process_{rank:02d}.txt").write_text(text)
        code, ended = (1, 5.0) if rank == 1 else (-15, 9.0)
        ranks.append(
            {
                "rank": rank,
                "node": rank // 2,
                "local_rank": rank % 2,
                "code": code,
                "started": NOW,
                "ended": NOW + ended,
            }
        )
    record = {
        "job": "train-1",
        "status": "Failed",
        "created": NOW - 60,
        "started": NOW,
        "ended": NOW + 9,
        "ranks": ranks,
    }
    record["error"] = {"code": "UserError", "message": "Execution failed: rank 1 of 4 exited with code 1"}
    (root / "report.json").write_text(json.dumps(record))
    return root


@pytest.fixture
def page(tmp_path: Path) -> str:
    steps = "".join(f"step {each} loss {2 - each / 10}\n" for each in range(10))
    return render(jobs.folder_report(job(tmp_path / "train", steps + CLOSED, RAISED, CLOSED, CLOSED), NOW + 10))


def test_the_verdict_comes_first_and_links_to_its_line(page: str) -> None:
    tree = parse(page)
    sections = [section.all("h2")[0].text for section in tree.all("section")]
    assert sections == ["What ended it", "Declared", "Phases", "Ranks", "Loss", "Logs", "Outputs"]
    verdict = tree.all("section", class_="verdict")[0]
    assert verdict.all("p", class_="cause")[0].text == "python-exception"
    assert verdict.all("pre")[0].text == "ValueError: shard 7 is bad"
    facts = dict(
        zip(
            [each.text for each in verdict.all("dt")],
            [each.text for each in verdict.all("dd")],
            strict=True,
        )
    )
    assert facts["rank"] == "1"
    assert facts["victims"] == "rank 0, rank 2, rank 3"
    assert facts["how sure"].startswith("high")
    (link,) = verdict.all("a")
    (marked,) = tree.all("mark", id="cause")
    assert link.attributes["href"] == "#cause"
    assert marked.text.endswith("ValueError: shard 7 is bad")


def test_the_log_of_the_cause_alone_is_open(page: str) -> None:
    logs = parse(page).all("details", class_="log")
    assert [(each.all("span", class_="name")[0].text[-6:-4], "open" in each.attributes) for each in logs] == [
        ("00", False),
        ("01", True),
        ("02", False),
        ("03", False),
    ]
    assert [each.all("span", class_="tag")[0].text for each in logs] == [
        "ended by another",
        "cause",
        "ended by another",
        "ended by another",
    ]


def test_ranks_are_bars_on_one_axis_by_node(page: str) -> None:
    section = next(each for each in parse(page).all("section") if each.attributes["aria-labelledby"] == "ranks")
    assert [each.text for each in section.all("h3")] == ["node 0", "node 1"]
    rows = [
        (row.all("span", class_="label")[0].text, row.all("span", class_="outcome")[0].text)
        for row in section.all("li")
    ]
    assert rows == [
        ("rank 0 · local 0", "stopped after 9 s"),
        ("rank 1 · local 1", "exit 1 after 5 s · first cause"),
        ("rank 2 · local 0", "stopped after 9 s"),
        ("rank 3 · local 1", "stopped after 9 s"),
    ]
    assert [each.attributes["style"] for each in section.all("span", class_="bar")] == [
        "left:0.00%;width:100.00%",
        "left:0.00%;width:55.56%",
        "left:0.00%;width:100.00%",
        "left:0.00%;width:100.00%",
    ]


def rows(page: str, name: str) -> list[str]:
    section = next(each for each in parse(page).all("section") if each.attributes["aria-labelledby"] == name)
    return [row.all("span", class_="outcome")[0].text for row in section.all("li")]


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("step {step} loss 1.0 step_time {time:.2f}s", "times that each rank prints"),
        (
            "iteration {step}/100 | elapsed time per iteration (ms): {milli:.1f} | lm loss: 1.0",
            "times that each rank prints",
        ),
        ("{step}/100 [{time:.2f}s/it]", "times that each rank prints"),
        ("2026-11-20 10:00:{stamp:09.6f} step {step} loss 1.0", "times of each rank's lines"),
    ],
)
def test_a_straggler_is_named_by_the_time_of_its_steps(tmp_path: Path, line: str, source: str) -> None:
    def log(time: float) -> str:
        values = ({"step": step, "time": time, "milli": time * 1000, "stamp": step * time} for step in range(5))
        return "".join(line.format(**each) + "\n" for each in values)

    page = render(jobs.folder_report(job(tmp_path / "job", log(0.2), log(0.2), log(0.5)), NOW))
    took = rows(page, "steps")
    assert [each.split(" s,")[0] for each in took] == ["0.2", "0.2", "0.5"]
    assert [each.partition(" · ")[2] for each in took] == ["", "", "straggler: 2.5 times the median rank"]
    assert f"From {source}; 0.2 s on the median rank." in parse(page).text


def test_what_nodes_used_is_drawn_and_bandwidth_stands_beside_what_was_expected(tmp_path: Path) -> None:
    folder = job(tmp_path / "job", "step 1\n")
    lines = [f"{NOW + at},{node},{1 + node},{2**30 * (at + 1)}," for at in (0, 2) for node in range(9)]
    (folder / "usage.csv").write_text("\n".join(lines) + "\n1,0,cut of")
    verdict = {"state": "bad", "text": "12 GB/s of busbw is 12.0% of the 100 GB/s expected"}
    (folder / "outputs" / "bandwidth.json").write_text(json.dumps({"verdict": verdict, "slow": {"text": "node 1"}}))
    tree = parse(render(jobs.folder_report(folder, NOW)))
    (section,) = (each for each in tree.all("section") if each.attributes["aria-labelledby"] == "nodes")
    assert [str(each.attributes["aria-label"])[:38] for each in section.all("svg")] == [
        "CPU, cores over seconds: node 8: 9 → 9", "memory, GiB over seconds: node 0: 1 → ",
    ]  # fmt: skip
    assert [cell.text for cell in section.all("table")[-1].all("tr")[9].all("td")] == ["node 8", "9 · 9", "2 · 3"]
    assert "bad: 12 GB/s of busbw is 12.0% of the 100 GB/s expected; node 1" in tree.text


def test_loss_is_drawn_and_written_as_text(page: str) -> None:
    tree = parse(page)
    (picture,) = tree.all("svg")
    assert picture.attributes["role"] == "img"
    assert picture.attributes["aria-label"] == "loss over steps: loss: 2 → 1.1 (10 points)"
    (line,) = tree.all("polyline")
    points = [tuple(map(float, pair.split(","))) for pair in str(line.attributes["points"]).split()]
    assert points[0] == (0.0, 0.0)
    assert points[-1] == (1000.0, 300.0)
    assert [up for _, up in points] == sorted(up for _, up in points)
    assert "from lines of user_logs/std_log_process_00.txt" in tree.text


def test_nothing_is_fetched_and_nothing_runs(page: str) -> None:
    tree = parse(page)
    for node in tree.every():
        assert node.tag not in {"script", "iframe", "img", "link", "object", "embed", "base", "form", "video", "audio"}
        for name, value in node.attributes.items():
            assert not name.startswith("on")
            assert name not in {"src", "srcset", "action", "data", "xlink:href"}
            assert name != "href" or str(value).startswith("#")
    (style,) = tree.all("style")
    assert not re.search(r"url\(|@import|https?:|//", style.text)
    policy = next(each for each in tree.all("meta") if each.attributes.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in str(policy.attributes["content"])


def test_hostile_texts_are_inert_in_every_part_of_the_page(tmp_path: Path) -> None:
    lines = "".join(f"{line}\n" for line in HOSTILE)
    raised = f"{RAISED.replace('shard 7 is bad', HOSTILE[0] + HOSTILE[1])}{lines}"
    report = jobs.folder_report(job(tmp_path / "job", lines, raised), NOW)
    bad = HOSTILE[1]
    report = replace(
        report,
        title=bad,
        facts=((bad, bad), ("command", bad)),
        error=bad,
        phases=(Phase(bad, NOW, None),),
        ranks=(RankOutcome(0, bad, 0, 1, NOW, NOW + 1),),
        series=(Series(f"{bad} loss", ((0, 1.0), (1, 2.0)), bad, bad),),
        numbers=((bad, bad),),
        outputs=(OutputFile(bad, 1),),
        children=(ChildJob(bad, bad, bad),),
        notes=(bad,),
        status=bad,
    )
    tree = parse(render(report))
    tags = {node.tag for node in tree.every()}
    assert tags <= {
        *(
            "",
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "header",
            "main",
            "footer",
            "section",
            "h1",
            "h2",
            "h3",
        ),
        *(
            "p",
            "b",
            "a",
            "span",
            "code",
            "pre",
            "mark",
            "dl",
            "dt",
            "dd",
            "ol",
            "ul",
            "li",
            "details",
            "summary",
            "figure",
        ),
        *("figcaption", "div", "svg", "line", "polyline", "table", "thead", "tbody", "tr", "th", "td"),
    }
    assert not [name for node in tree.every() for name in node.attributes if name.startswith("on") or name == "src"]
    shown = [span.text for part in tree.all("pre", class_="lines") for span in part.all("span", class_="l")]
    assert any(text.endswith(HOSTILE[0]) for text in shown)
    assert "c2VjcmV0" not in tree.text


LONE = RankOutcome(0, None)
MANY = tuple(RankOutcome(each, str(each // 8)) for each in range(2000))


@for_each("report", [
        Report("empty", "", active=False, made=NOW),
        Report("queued", "Queued", active=True, made=NOW, phases=(Phase("Queued", NOW - 5, None),)),
        Report("runs", "Running", active=True, made=NOW, ranks=(RankOutcome(0, "0", 0, None, NOW - 3),)),
        Report("at once", "", active=False, made=NOW, phases=(Phase("Running", NOW, NOW),), ranks=(LONE,)),
        Report("nan", "", active=False, made=NOW, series=(Series("loss", ((0, NAN), (1, NAN)), "step", "x"),)),
        Report("flat", "", active=False, made=NOW, series=(Series("loss", ((0, 1.0), (1, 1.0)), "step", "x"),)),
        Report("dot", "", active=False, made=NOW, series=(Series("loss", ((0, 1.0), (1, float("inf"))), "step", "x"),)),
        Report("many", "", active=False, made=NOW, ranks=MANY),
])  # fmt: skip
def test_a_report_of_little_is_a_page_too(report: Report) -> None:
    tree = parse(render(report))
    assert tree.all("h1")[0].text == report.title
    assert ("has not ended" in tree.text) is report.active
    assert tree.all("meta", name="generator")[0].attributes["content"] == GENERATOR


def test_a_job_that_completed_has_no_verdict(tmp_path: Path) -> None:
    root = job(tmp_path / "job", "gpu1:55:90 [0] NCCL INFO NET/IB : No device found.\nstep 1\n")
    record = json.loads((root / "report.json").read_text())
    (root / "report.json").write_text(json.dumps({**record, "status": "Completed", "error": None}))
    tree = parse(render(jobs.folder_report(root, NOW)))
    assert not tree.all("section", class_="verdict")
    assert "no-infiniband" in tree.all("header")[0].text


def test_ranks_of_a_folder_differ_by_outcome_when_times_are_unknown(tmp_path: Path) -> None:
    logs = tmp_path / "run" / "user_logs"
    logs.mkdir(parents=True)
    for rank, text in enumerate((CLOSED, RAISED, "step 1\n")):
        (logs / f"std_log_process_{rank:02d}.txt").write_text(text)
    tree = parse(render(jobs.folder_report(tmp_path / "run", NOW)))
    section = next(each for each in tree.all("section") if each.attributes["aria-labelledby"] == "ranks")
    outcomes = [row.all("span", class_="outcome")[0].text for row in section.all("li")]
    assert outcomes == ["ended by another", "end unknown · first cause", "end unknown"]
    assert not section.all("span", class_="bar")
