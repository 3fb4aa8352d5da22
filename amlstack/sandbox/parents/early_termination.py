"""Early termination: which running trials are not worth going on with.

A trial's intervals are counted by how often it logged the primary metric. A policy looks at a trial at every multiple
of its evaluation interval that is not below its delay, and compares what all trials had logged by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.arm.refusals import invalid, near
from amlstack.sandbox.parents.best_trial import better

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    Curves = Mapping[str, Sequence[float]]

KINDS = ("Bandit", "MedianStopping", "TruncationSelection")


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy.

    Attributes:
        kind: One of `KINDS`.
        interval: How many intervals lie between two looks.
        delay: Intervals before the first look.
        factor, amount: A bandit's slack: as a share of the best value, or absolute.
        percentage: Of trials that a truncation ends at each look.
        finished: A truncation counts trials that have ended too.
    """

    kind: str
    interval: int = 1
    delay: int = 0
    factor: float = 0.0
    amount: float = 0.0
    percentage: int = 0
    finished: bool = True

    def doomed(self, goal: str, curves: Curves, running: Collection[str]) -> tuple[str, ...]:
        """The running trials that the policy ends now.

        Args:
            goal: ``minimize`` or ``maximize``.
            curves: What each trial logged of the primary metric, in order.
            running: Those that have not ended.
        """
        # With the sign turned a smaller value is a better one, whatever the goal.
        sign = -1.0 if better(goal) is max else 1.0
        turned = {trial: [sign * value for value in values] for trial, values in curves.items()}
        return tuple(trial for trial in turned if trial in running and self._ends(trial, turned, running))

    def _ends(self, trial: str, curves: Curves, running: Collection[str]) -> bool:
        count = len(curves[trial])
        look = count - count % self.interval
        if look < max(1, self.delay):
            return False
        # Others may be late: what it has reached since its look counts for it, not against it.
        peers = {
            other: values if other == trial else values[:look]
            for other, values in curves.items()
            if len(values) >= look and (self.finished or other in running)
        }
        own = min(curves[trial])
        if self.kind == "Bandit":
            top = min(min(values) for values in peers.values())
            return own > top + self._slack(top)
        if self.kind == "MedianStopping":
            return own > median(fmean(values) for values in peers.values())
        worst = sorted(peers, key=lambda other: min(peers[other]), reverse=True)
        return trial in worst[: len(worst) * self.percentage // 100]

    def _slack(self, top: float) -> float:
        # Of a metric to be maximised the service takes best / (1 + factor), of one to be minimised best × (1 + factor).
        share = self.factor / (1 + self.factor) if top < 0 else self.factor
        return self.amount or abs(top) * share


def read(given: Mapping[str, Any] | None) -> Policy | None:
    """Reads ``earlyTermination``; None for none.

    Raises:
        Refused: It is no policy.
    """
    if not given:
        return None
    where = "properties.earlyTermination"
    word = str(given.get("policyType") or given.get("type") or "").replace("_", "").lower()
    kind = {name.lower(): name for name in KINDS}.get(word)
    if kind is None:
        raise invalid(where, f"'{word}' is no policy.{near(word, KINDS)}")
    interval, delay = int(given.get("evaluationInterval") or 1), int(given.get("delayEvaluation") or 0)
    if interval < 1 or delay < 0:
        raise invalid(where, "the evaluation interval is at least 1, the delay not below 0.")
    percentage = int(given.get("truncationPercentage") or 0)
    if kind == "TruncationSelection" and not 1 <= percentage <= 99:
        raise invalid(f"{where}.truncationPercentage", f"{percentage}: a percentage from 1 to 99 is needed.")
    factor, amount = float(given.get("slackFactor") or 0), float(given.get("slackAmount") or 0)
    if factor < 0 or amount < 0:
        raise invalid(where, "a slack is not below 0.")
    finished = not given.get("excludeFinishedJobs", False)
    return Policy(kind, interval, delay, factor, amount, percentage, finished)
