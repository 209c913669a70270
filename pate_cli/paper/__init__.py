"""The analyses of the two PATE papers as they were published, and Tables 1 and 2 computed again.

2017: "Semi-supervised Knowledge Transfer for Deep Learning from Private Training Data", Papernot,
Abadi, Erlingsson, Goodfellow and Talwar (ICLR 2017, arXiv:1610.05755); module `laplace`.
2018: "Scalable Private Learning with PATE", Papernot, Song, Mironov, Raghunathan, Talwar and
Erlingsson (ICLR 2018, arXiv:1802.08908); all other modules, whose numbers of theorems,
propositions, algorithms and conditions are those of that paper.

Nothing here is a bound to publish. Costs are expectations over the first step of the aggregator,
which are below a Rényi divergence. Theorem 23 is false for most β. The 2017 bound holds in one
direction only. Each docstring names the errors. Numbers are in nats, arrays are [orders, queries],
and votes are whole numbers that are checked when they are read.

`python -m pate_cli.paper table1|table2|votes` prints the tables. The printed figures are data
(printed_tables.json); no computed number is adjusted to agree with them.
"""
