"""The analyses of the two PATE papers as they were published, and Tables 1 and 2 computed again.

2017: "Semi-supervised Knowledge Transfer for Deep Learning from Private Training Data", Papernot,
Abadi, Erlingsson, Goodfellow and Talwar (ICLR 2017, arXiv:1610.05755); the functions `laplace_…`.
2018: "Scalable Private Learning with PATE", Papernot, Song, Mironov, Raghunathan, Talwar and
Erlingsson (ICLR 2018, arXiv:1802.08908). Theorems, propositions, algorithms and conditions are
numbered as in the 2018 paper.

No number of this package is a bound that may be published. The 2018 paper takes the expectation of
the RDP cost of a query over the outcomes of the aggregator's threshold check. The expected RDP cost
of a query is smaller than its Rényi divergence. Theorem 23 of 2018 is false for many λ, β and σ.
The bound of 2017 on the RDP cost of LNMax is true in one direction of the divergence only. The
docstrings name the errors of the papers. Costs are in nats and have the shape [orders, queries].
The code that reads votes checks that they are whole numbers.

`python -m pate_cli.paper table1|table2` computes and prints a table. `python -m pate_cli.paper
votes` downloads the votes of the authors. The figures that the papers print are data
(printed_tables.json), and no computed number is adjusted to agree with them.
"""
