"""`make contract` ends with how many checks each mechanism passed, and with how many it failed."""

import re
from collections import Counter


def pytest_terminal_summary(terminalreporter):
    """Count the tests of the contract by the mechanism in their names."""
    counted = {
        outcome: Counter(
            found[1]
            for report in terminalreporter.stats.get(outcome, ())
            if "test_contract.py" in report.nodeid
            and (found := re.search(r"[\[-]([a-z]+(?:-[a-z]+)*)-m\d-k\d", report.nodeid))
        )
        for outcome in ("passed", "failed")
    }
    for name in sorted(counted["passed"] | counted["failed"]):
        passed, failed = counted["passed"][name], counted["failed"][name]
        terminalreporter.write_line(f"{name}: {passed} checks passed, {failed} failed")
