"""Folders of logs as launchers leave them, with what is true of each."""

from __future__ import annotations

import exceptions_told
import launchers_told
import machines_told
import shapes_of_causes_told
import shapes_of_failures_told
import shapes_of_launchers_told
import shapes_of_quotes_told
import shapes_of_services_told
import shapes_of_several_told
import waiting_told

SCENARIOS = {
    **exceptions_told.SCENARIOS,
    **launchers_told.SCENARIOS,
    **machines_told.SCENARIOS,
    **shapes_of_causes_told.SCENARIOS,
    **shapes_of_failures_told.SCENARIOS,
    **shapes_of_launchers_told.SCENARIOS,
    **shapes_of_quotes_told.SCENARIOS,
    **shapes_of_services_told.SCENARIOS,
    **shapes_of_several_told.SCENARIOS,
    **waiting_told.SCENARIOS,
}
