"""The only door from a ledger (secret) to what may be published."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.sensitivity import smooth_sensitivity
from pate_cli.core.noise import Noise
from pate_cli.disclosure.external import Stated, stated_rdp
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.plan import Draw, ReleasePlan


def sanitized_epsilon(
    ledger: Ledger,
    plan: ReleasePlan,
    noise: Noise,
    *,
    earlier: Sequence[Draw] = (),
    external: Sequence[Stated] = (),
) -> float:
    """Spend the sanitizing noise once; return the ε that may be published, rounded up, nats.

    It is f + SS_β·(κ + σN) at the plan's order (accounting.sensitivity), converted to ε. Call it
    once for every draw that is charged: whoever draws twice and keeps one publishes more than was
    paid for.

    Args:
        ledger: what was spent, over all rounds.
        plan: fixed before any vote was seen, and never from the ledger's own numbers.
        noise: the source of the one draw.
        earlier: draws that were made from these rounds before; their cost is added.
        external: other mechanisms on the same records. Their cost is public: it is added after the
            draw, whose noise hides the votes' alone.

    Raises:
        LedgerError: the plan's order was not charged.
    """
    row, order = ledger.row(plan.order), np.array([plan.order])
    smooth = smooth_sensitivity(
        ledger.sensitivity[row], ceiling=float(ledger.ceiling[row]), beta=plan.beta
    )
    value = plan.value(float(ledger.rdp[row]), smooth, noise.fine_normal())
    value += sum(draw.rdp(plan.order) for draw in earlier) + float(stated_rdp(external, order)[0])
    return round_up(max(value, 0.0))
