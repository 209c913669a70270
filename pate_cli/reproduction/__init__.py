"""Tables 1 and 2 of "Scalable Private Learning with PATE" (ICLR 2018), computed again.

`python -m pate_cli.reproduction table1|table2|answers|votes`. The printed figures are data
(printed_tables.json); what is computed is never adjusted towards them.
"""

from __future__ import annotations
