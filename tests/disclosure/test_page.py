"""The page of a report: it stands by itself, says what `explain` says, takes no text for markup.

Pages are read by a parser, as a browser would, and held against the report they were made of.
"""

from __future__ import annotations

import datetime
import hashlib
import html.parser
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pate_cli as pate
import reports
from pate_cli.core.errors import printable
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.explain import explain
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.record import Outcome, Run, RunKind
from pate_cli.disclosure.report import LabelFile
from pate_cli.disclosure.settings import RowsAsked
from pate_cli.disclosure.total import Spent
from pate_cli.disclosure.verdict import percent_right
from slices import some

EMPTY = {"meta"}
KNOWN = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "section", "div", "h1",
    "h2", "h3", "p", "ul", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr",
    "th", "td", "pre", "code", "span", "figure", "figcaption", "svg", "desc", "path", "circle",
    "text",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "id", "scope", "colspan",
    "viewbox", "role", "aria-labelledby", "d", "cx", "cy", "r", "x", "y", "text-anchor",
}  # fmt: skip
HOSTILE = (
    "</title></style><script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "<!-- -->&lt;b&amp;<b>bold</b>",
    "{color:red}</style><link rel=stylesheet href=//evil>",
    "a\x00\x1b[2J\u202e\ud800\n\r\tb",
    "]]></svg><svg onload=alert(1)>",
)
EXTERNAL = pate.Stated(epsilon=0.5, delta=1e-6, adjacency="replace-one", covers="a risk model")
SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


class Read(html.parser.HTMLParser):
    """What a browser sees: tags with their attributes, texts, and texts by the tag they are in."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.inside = [], [], []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.inside.append((self.open[-1], data))

    def handle_comment(self, data):
        raise AssertionError(data)

    def handle_pi(self, data):
        raise AssertionError(data)

    @property
    def text(self):
        return " ".join("".join(data for _, data in self.inside).split())

    @property
    def shape(self):
        """Tags and the names of their attributes, but not what stands in them."""
        return [(tag, [name for name, _ in attrs]) for tag, attrs in self.tags]

    def of(self, tag):
        return [data for inside, data in self.inside if inside == tag]


def run_of(place, **changed):
    """A run of a record; every fifth is what others stated."""
    began = datetime.datetime(2026, 3, 1, 9) + place * datetime.timedelta(days=3)
    facts = {
        "id": f"{place:032x}", "time": f"{began:%Y-%m-%dT%H:%M:%SZ}", "kind": RunKind.TARGET,
        "outcome": Outcome.LABELLED,
        "asked": RowsAsked(mechanism={"name": "confident"}, queries=40, max_answers=40),
        "answers": 30, "epsilon": 0.5, "delta": 1e-6, "refusal_epsilon": 0.25,
        "total_epsilon": 0.25 + 0.25 * place, "total_delta": 1e-6 * (place + 1),
    }  # fmt: skip
    if place % 5 == 1:
        stated = Stated("replace-one", covers="a risk model", epsilon=0.5, delta=1e-6)
        facts |= {"kind": RunKind.EXTERNAL, "outcome": Outcome.STATED, "external": stated}
        facts |= {"asked": None, "answers": None, "refusal_epsilon": None, "time": None}
    return Run(**(facts | changed))


def tracked(report, count, *, here=-1, budget=None, dated=True, **changed):
    """The report with a record of so many runs, of which it is the one at `here`."""
    undated = {} if dated else {"time": None}
    runs = [run_of(place, budget=budget and Budget(budget), **undated) for place in range(count)]
    runs[here] = replace(run_of(0), **vars(runs[here]) | {"id": report.run} | changed)
    spent = Spent(
        epsilon=0.25 * count, delta=1e-6 * count, method="joint", sum_epsilon=0.5 * count,
        sum_delta=1e-6 * count, runs=tuple(runs),
    )  # fmt: skip
    return replace(report, spent=spent)


def made(kind="passed"):
    if kind == "external":
        return reports.total(EXTERNAL)
    return reports.made(kind)[0]


def read(report):
    return Read(explain(report).to_html())


def texts(report):
    return {section.title: section.texts for section in explain(report).sections}


# --- the page -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", some([*reports.KINDS, "external"], 5))
def test_a_page_stands_by_itself(kind):
    content = explain(made(kind)).to_html()
    page = Read(content)
    assert content.startswith("<!DOCTYPE html>\n")
    assert page.tags[0] == ("html", (("lang", "en"),))
    assert {tag for tag, _ in page.tags} <= KNOWN
    assert {name for _, attrs in page.tags for name, _ in attrs} <= ATTRIBUTES
    assert ("meta", (("charset", "utf-8"),)) in page.tags
    policy = (("http-equiv", "Content-Security-Policy"),)
    assert any(tag == "meta" and attrs[:1] == policy for tag, attrs in page.tags)
    for word in ("url(", "@import", "http:", "https:", "//", "javascript", "src=", "href="):
        assert word not in content.lower()


@pytest.mark.parametrize("kind", some([*reports.KINDS, "external"], 6))
def test_a_page_is_in_order_for_whoever_hears_it(kind):
    page = read(made(kind))
    heads = [tag for tag, _ in page.tags if tag in ("h1", "h2", "h3")]
    assert heads.count("h1") == 1
    assert heads[0] == "h1"
    assert all(attrs for tag, attrs in page.tags if tag == "th")  # each has a scope
    names = [value for _, attrs in page.tags for name, value in attrs if name == "id"]
    assert len(names) == len(set(names))
    for tag, attrs in page.tags:
        if tag == "svg":
            assert dict(attrs)["role"] == "img"
            assert set(dict(attrs)["aria-labelledby"].split()) <= set(names)


@pytest.mark.parametrize(
    "kind", some([*sorted(set(reports.KINDS) - set(reports.NO_PROMISE)), "external"], 3)
)
def test_a_promise_is_told_in_the_words_of_explain(kind):
    report = replace(made(kind), labels=LabelFile("csv", 5310, SHA256))
    page = read(report)
    assert page.of("h1") == ["Privacy statement"]
    for title, told in texts(report).items():
        for text in told:
            assert text.partition(", SHA-256 ")[0].rstrip(".") in page.text, title
    assert page.of("dt")[:2] == ["ε", "δ"]
    assert page.of("span")[0:4:2] == [shown(report.epsilon), shown(report.delta)]
    assert f"{percent_right(report.epsilon, report.delta):.1f}%" in page.text or (
        "practically every time" in page.text
    )
    for text in (
        SHA256, "pate verify report.json labels.csv", "NIST SP 800-226", "Unit of privacy",
        "Neighbouring relation", "Privacy parameter ε", "Data dependence", "Mechanism",
        "Composition", "Trust model", "Signature", "Name", "Date", report.run,
    ):  # fmt: skip
        assert text in page.text, text
    assert ("Earlier runsnot tracked" in page.text) is (report.spent is None)


@pytest.mark.parametrize("kind", some(reports.NO_PROMISE, 2))
def test_where_nothing_can_be_signed_the_page_says_so_first(kind):
    report = made(kind)
    page = read(tracked(report, 3, budget=8.0))
    assert page.of("h1")[0] == "Nothing is promised"
    assert ("h1", (("class", "none"),)) in page.tags
    for word in ("Signature", "Privacy statement", "a guess", "This run"):
        assert word not in page.text
    assert "pate verify will say of this report that it does not hold" in page.text
    assert not any(tag == "svg" for tag, _ in page.tags)
    for number in (report.epsilon, report.data_independent.epsilon, report.delta):
        assert f"{number:.4f}" not in page.text
        assert re.search(rf"\b(epsilon|delta|ε|δ)\W*{shown(number)}", page.text) is None
    assert pate.verify(report, with_dp_accounting=False).verdict == "does not hold"


def test_a_page_with_another_part_that_bounds_nothing_is_no_statement():
    """What an external part presupposes is claimed even then; nothing is promised of the labels."""
    report = replace(made("external"), sound=False, statements=tuple(
        replace(one, holds=one.id == "external") for one in made("external").statements
    ))  # fmt: skip
    drawn = replace(report.sanitized, release="upper", epsilon=0.1, order=6.0, beta=0.05,
                    sigma_release=8.0, delta_failure=1e-6, release_rdp=0.1)  # fmt: skip
    page = read(replace(report, analysis="paper", epsilon=0.1, epsilon_kind="upper",
                        sanitized=drawn))  # fmt: skip
    assert page.of("h1") == ["Nothing is promised"]
    assert "no bound" in page.text


def test_the_same_report_gives_the_same_page():
    report = tracked(made(), 4)
    assert explain(report).to_html() == explain(report).to_html()


def test_a_page_names_the_report_by_its_hash(tmp_path):
    made().save(tmp_path / "report.json")
    content = (tmp_path / "report.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() in read(made()).text
    assert explain(tmp_path / "report.json").to_html() == explain(made()).to_html()


def test_a_page_is_saved_by_its_suffix(tmp_path):
    found = explain(made())
    for name in ("page.html", "page.HTM"):
        found.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == found.to_html()
    found.save(tmp_path / "page.json")
    assert (tmp_path / "page.json").read_text().startswith("{")


def test_letters_stand_out_from_the_paper():
    """WCAG's contrast of at least 4.5, light and dark."""
    style = Path(pate.__file__).parent.joinpath("disclosure", "page.css").read_text()

    def light(colour):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    palettes = [
        dict(re.findall(r"--([a-z]+): (#[0-9a-f]{3,6})[;\s]", block))
        for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    ]
    assert len(palettes) == 3
    for palette in palettes:
        whole = {
            name: value if len(value) == 7 else "#" + "".join(2 * letter for letter in value[1:])
            for name, value in palette.items()
        }
        for letters in ("ink", "soft", "mark", "alarm", "limit"):
            for paper in ("paper", "faint"):
                dark, bright = sorted((light(whole[letters]), light(whole[paper])))
                assert (bright + 0.05) / (dark + 0.05) >= 4.5, (letters, whole[letters])


# --- the total ------------------------------------------------------------------------------------


def test_all_runs_beside_this_one():
    page = read(tracked(made(), 4, here=2, budget=3.0))
    for text in ("All runs1", "Plain sum2", "Budget of the record3", "this run: 0.75", "budget 3"):
        assert text in page.text
    assert "if no settings followed from what earlier runs released" in page.text
    assert "this run is number 3, after which it was 0.75; the budget is 3." in page.text
    (mine,) = (data for data in page.of("th") if data.endswith(": this run"))
    assert mine == "target, labelled, confident, 30 of 40: this run"
    assert sum(("class", "ours") in attrs for _, attrs in page.tags) == 1
    assert "2026-03-01" in page.of("text")
    assert "2026-03-10" in page.of("text")


@pytest.mark.parametrize("count", some([1, 2, 3, 7, 500], 2))
@pytest.mark.parametrize("dated", [True, False])
@pytest.mark.parametrize("budget", [None, 2.0])
def test_any_number_of_runs(count, dated, budget):
    for here in {0, count // 2, count - 1}:
        page = read(tracked(made(), count, here=here, budget=budget, dated=dated))
        assert sum(tag == "svg" for tag, _ in page.tags) == 2
        assert len(page.tags) < 420
        (line,) = (dict(a)["d"] for t, a in page.tags if ("class", "steps") in a)
        assert line.count("V") == count
        assert f"this run: {shown(0.25 + 0.25 * here)}" in page.of("text")
        numbers = [float(number) for number in re.findall(r"[\d.]+", line)]
        assert min(numbers) >= 0.0
        assert max(numbers) <= 480.0
        if count > 20:
            assert f"… {count - 6 - (here < count - 6)} more" in page.text or here not in (0, 499)


def test_what_a_clock_says_may_go_back():
    page = read(tracked(made(), 4, here=0, time="2027-01-01T00:00:00Z"))
    assert "run 1" in page.of("text")
    assert "run 4" in page.of("text")


def test_totals_that_nobody_noted_are_not_drawn():
    spent = tracked(made(), 3).spent
    runs = tuple(replace(run, total_epsilon=None) for run in spent.runs)
    page = read(replace(made(), spent=replace(spent, runs=runs)))
    assert sum(tag == "svg" for tag, _ in page.tags) == 1
    assert "–" in page.text
    # Those that were entered together have one.
    runs = (spent.runs[0], replace(spent.runs[1], total_epsilon=None), spent.runs[2])
    page = read(replace(made(), spent=replace(spent, runs=runs)))
    (line,) = (dict(a)["d"] for t, a in page.tags if ("class", "steps") in a)
    assert line.count("V") == 2


def test_a_total_that_is_not_claimed_is_not_shown():
    """Another run that promises nothing leaves nothing to say of all together."""
    spent = tracked(made(), 3).spent
    runs = (replace(spent.runs[0], claimed=False), *spent.runs[1:])
    page = read(replace(made(), spent=replace(spent, runs=runs)))
    assert page.of("h1") == ["Privacy statement"]
    assert "nothing is claimed of all together" in page.text
    assert sum(tag == "svg" for tag, _ in page.tags) == 1
    for word in ("0.75", "Plain sum", "Runs in the record", "3 runs"):
        assert word not in page.text


@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-12, 1e-3, 9.99, 1e300])
def test_a_scale_for_every_total(epsilon):
    report = tracked(made(), 1)
    page = read(replace(report, spent=replace(report.spent, epsilon=epsilon)))
    assert sum(tag == "svg" for tag, _ in page.tags) == 2
    ticks = [dict(attrs)["class"] for tag, attrs in page.tags if tag == "path"].count("grid")
    assert 1 <= ticks <= 6


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5])
def test_a_sum_whose_delta_is_no_chance(delta):
    report = tracked(made(), 3)
    page = read(replace(report, spent=replace(report.spent, sum_delta=delta)))
    said = "practically every time" if delta else f"{percent_right(1.5, 5e-324):.1f}%"
    assert f"Plain sum: {said}" in page.of("text")


def test_an_account_is_its_total():
    """A report of all runs has no run of its own beside them."""
    report = made("account")
    page = read(report)
    assert "This run" not in "".join(page.of("th"))
    assert f"All runs{shown(report.spent.epsilon)}" in page.text
    assert f"Plain sum{shown(report.spent.sum_epsilon)}" in page.text
    assert sum(tag == "svg" for tag, _ in page.tags) == 2


def test_a_run_beside_those_before_it():
    report = made("kept")
    page = read(report)
    assert page.of("span")[:6] == [
        shown(report.epsilon), "whatever the votes", shown(report.delta), "added to every chance",
        shown(report.spent.epsilon), "all 3 runs together",
    ]  # fmt: skip
    assert f"this run: {shown(report.spent.epsilon)}" in page.of("text")
    assert len([data for data in page.of("th") if data.endswith(": this run")]) == 1


def test_a_run_of_another_name_is_not_this_one():
    report = tracked(made(), 3)
    for run in (None, "f" * 32):
        page = read(replace(report, run=run))
        assert "this run:" not in page.text


# --- texts of strangers ---------------------------------------------------------------------------


def strange(text, kind):
    """A report of this kind with the text wherever a file could have one."""
    report = replace(
        made(kind), tool=text, run=text, time=text, warnings=(text, f"{text} again"),
        summary=text, adjacency=text, covers=text,
        labels=LabelFile("csv", 1, text),
    )  # fmt: skip
    report = replace(report, statements=tuple(
        replace(one, text=text) for one in report.statements
    ))  # fmt: skip
    if report.groups:
        report = replace(report, groups=tuple(
            replace(group, group=f"{place}{text}") for place, group in enumerate(report.groups)
        ))  # fmt: skip
    if report.external:
        report = replace(report, external=tuple(
            {**part, "covers": text} for part in report.external
        ))  # fmt: skip
    if report.label_names:
        report = replace(report, label_names=tuple(f"{place}{text}" for place in range(3)))
    if report.label_set is not None:
        names = tuple(f"{place}{text}" for place in range(report.label_set.count))
        report = replace(report, label_set=replace(report.label_set, names=names))
    stated = Stated("replace-one", name=text, covers=text, epsilon=0.5, delta=1e-6)
    asked = RowsAsked(mechanism={"name": text}, queries=40, max_answers=40)
    return tracked(
        report, 3, here=1, budget=2.0, time=text, external=stated, asked=asked, answers=30
    )


@pytest.mark.parametrize(
    "kind", some(["groups", "external", "names", "several labels", "seeded"], 2)
)
@given(text=st.text(alphabet="<>&\"'/=-!;{}a\x00\n\u202e\ud800é", min_size=1, max_size=60))
@example(HOSTILE[0])
@example(HOSTILE[1])
@example(HOSTILE[2])
@example(HOSTILE[3])
@example(HOSTILE[4])
@example(HOSTILE[5])
@settings(max_examples=12, deadline=None)
def test_no_text_is_markup(kind, text):
    content = explain(strange(text, kind)).to_html()
    content.encode()
    page = Read(content)
    plain = Read(explain(strange("plain", kind)).to_html())
    assert page.shape == plain.shape
    assert all(char.isprintable() for char in content.replace("\n", ""))
    if kind != "seeded":
        assert f"Written by pate {printable(text)}." in "".join(data for _, data in page.inside)


def test_what_a_file_says_is_no_markup(tmp_path):
    whole = made("groups").to_json().replace('"group": "a"', '"group": "<script>alert(1)</script>"')
    (tmp_path / "r.json").write_text(whole.replace('"version": "', '"version": "<b onclick=x>'))
    content = explain(tmp_path / "r.json").to_html()
    assert "<script>" not in content
    assert "<b " not in content
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in content
