"""``make interruptions``, second part: Ctrl-C at each step of `up` and `down`, with the seconds that each takes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.provider.interruptions import too_slow
from tests.support.running import ended_with_us
from tests.support.stack.interruptions import STACK, STEPS, Interrupted, Interruptions


def main() -> int:
    """Plays all steps and prints a row for each; fails on one that ends wrongly, or not within the bound."""
    out = sys.stdout
    out.write("| Ctrl-C at | the request in flight | seconds to the end |\n| --- | --- | --- |\n")
    bad: list[str] = []
    with tempfile.TemporaryDirectory(prefix="amlstack-interruptions-") as name:
        ground = Interruptions.made(Path(name))
        with ended_with_us(ground.clone.home):
            try:
                for step in STEPS:
                    bad += [f"{step.name}: {words}" for words in row(ground.play(step))]
                again = ground.clone.run("down", "--stack", STACK, "--sandbox", "--yes")
                if again.code:
                    bad.append(f"a plain re-run of `down` fails: {again.text}")
            finally:
                ground.clone.close()
    slowest = max(ground.played, key=lambda one: one.seconds)
    out.write(f"\n{len(ground.played)} steps; slowest {slowest.seconds:.2f} s ({slowest.step.name}); {len(bad)} bad\n")
    out.writelines(f"{line}\n" for line in bad)
    return 1 if bad else 0


def row(one: Interrupted) -> list[str]:
    """Prints one row; what is wrong with it."""
    what = "answered" if one.step.awaited else "left" if one.step.method else "none"
    sys.stdout.write(f"| {one.step.name} | {what} | {one.seconds:.2f} |\n")
    sys.stdout.flush()
    return [*one.wrong, *too_slow(one.seconds)]


if __name__ == "__main__":
    sys.exit(main())
