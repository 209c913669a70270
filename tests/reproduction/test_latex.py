"""What goes into a paper: figures, words and notes as LaTeX."""

from __future__ import annotations

import re

import pytest

from pate_cli.reproduction.latex import escaped, figure, in_words, tabular


@pytest.mark.parametrize(
    ("cell", "so"),
    {
        "2225": "$2{,}225$",
        "2225.3": "$2{,}225.3$",
        "12000": "$12{,}000$",
        "1234567.5": "$1{,}234{,}567.5$",
        "640": "$640$",
        "0.0329": "$0.0329$",
        "-0.5": "$-0.5$",
        "1e-05": "$10^{-5}$",
        "2.5e-06": r"$2.5 \cdot 10^{-6}$",
        "2.516 ± 0.385": r"$2.516 \pm 0.385$",
        "0.031 + 0.0205": "$0.031 + 0.0205$",
        "-": "--",
        "": "",
        "condition fails": "condition fails",
        "1e-05 or so": "1e-05 or so",
    }.items(),
)
def test_figures(cell, so):
    assert figure(cell) == so


def test_what_stands_for_itself():
    assert escaped(r"a_b {50%} #1 & $x^2 \~") == (
        r"a\_b \{50\%\} \#1 \& \$x\textasciicircum{}2 \textbackslash{}\textasciitilde{}"
    )
    # No dashes, and nothing that LaTeX would take for an argument of the line before.
    assert escaped("a---b [c] *") == "a-{}-{}-b {[}c{]} {*}"
    assert escaped("<x|y>") == "$<$x$|$y$>$"
    assert escaped('"`é\n\u6295\udcff') == r"''\`{}é\textbackslash{}n(U+6295)\textbackslash{}udcff"


def test_words_of_notes():
    told = {
        "(--release upper): delta/10": r"(\texttt{-{}-release upper}): $\delta$/10",
        "give --votes DIR": r"give \texttt{-{}-votes DIR}",
        "by --target-epsilon or `label`": r"by \texttt{-{}-target-epsilon} or \texttt{label}",
        "--order is fixed": r"\texttt{-{}-order} is fixed",
        "at delta 1e-05, sigma_SS": r"at $\delta$ $10^{-5}$, $\sigma_{\mathrm{SS}}$",
        "order * beta": r"order $\cdot$ $\beta$",
        # Years and names are no amounts.
        "the 2017 paper, 1500 rows": "the 2017 paper, $1{,}500$ rows",
        "2224.98 of 4000 queries": "$2{,}224.98$ of $4{,}000$ queries",
        "delta.npy, run1e-05.npy, a--b.npy": "delta.npy, run1e-05.npy, a-{}-b.npy",
        "a_delta_12000 and 12000": r"a\_delta\_12000 and $12{,}000$",
    }
    assert {note: in_words(note) for note in told} == told


def test_a_table():
    lines = [("[a]_1", "x: & y", "1e-05", "-"), ("", "z", "1000", "2 ± 3")]
    text = tabular(
        ("data", "way", "delta", "1.5"), [lines, lines[:1]], words=2, notes=["50% of it", "none"]
    )
    assert (
        text
        == r"""\begin{tabular}{llrr}
\toprule
data & way & $\delta$ & $1.5$ \\
\midrule
{[}a{]}\_1 & x: \& y & $10^{-5}$ & -- \\
 & z & $1{,}000$ & $2 \pm 3$ \\
\addlinespace
{[}a{]}\_1 & x: \& y & $10^{-5}$ & -- \\
\bottomrule
\end{tabular}
\par\medskip
{\footnotesize\raggedright\setlength{\parindent}{0pt}
50\% of it\par
none\par
}
"""
    )
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
    assert "\\par" not in tabular(("a", "b", "c"), [], words=2, notes=[])
