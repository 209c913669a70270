"""The page of a report: it stands by itself, says what `explain` says, takes no text for markup.

Pages are read by a parser, as a browser would, and held against the report they were made of.
"""

import hashlib
import html.parser
import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pate_cli as pate
import reports
from pate_cli.core.errors import printable
from pate_cli.disclosure.cost import shown
from pate_cli.disclosure.explain import explanation_of
from pate_cli.disclosure.report import LabelFile
from pate_cli.disclosure.runs import Spent
from pate_cli.disclosure.verification import FAILED, Check
from slices import some

EMPTY = {"meta"}
KNOWN = {
    "html", "head", "meta", "title", "style", "body", "main", "section", "div", "h1", "h2", "h3",
    "p", "ul", "li",
}  # fmt: skip
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class"}
HOSTILE = (
    "</title></style><script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "<!-- -->&lt;b&amp;<b>bold</b>",
    "{color:red}</style><link rel=stylesheet href=//evil>",
    "a\x00\x1b[2J\u202e\ud800\n\r\tb",
    "$title ${style} $$",
)
EXTERNAL = pate.Stated(epsilon=0.5, delta=1e-6, adjacency="replace-one", covers="a risk model")
UNCHECKED = "pate cannot check this"


class Read(html.parser.HTMLParser):
    """What a browser sees: tags with their attributes, and texts by the tag they are in."""

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

    def of(self, *tags):
        return [data for inside, data in self.inside if inside in tags]


def tracked(report, count, **changed):
    runs = [replace(run, **changed) for run in reports.made("kept")[0].spent.runs[:1]] * count
    spent = Spent(
        epsilon=0.25 * count, delta=1e-6 * count, method="joint", sum_epsilon=0.5 * count,
        sum_delta=1e-6 * count, runs=tuple(runs),
    )  # fmt: skip
    total = reports.made("kept")[0].statements[-2:]
    return replace(report, spent=spent, statements=(*report.statements, *total))


def made(kind="passed"):
    if kind == "external":
        return reports.total(EXTERNAL)
    return reports.made(kind)[0]


def read(report, *checks):
    return Read(explanation_of(report, checks).to_html())


# --- the page -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", some([*reports.KINDS, "external"], 4))
def test_a_page_stands_by_itself_and_has_every_sentence_of_explain_in_order(kind):
    found = explanation_of(replace(made(kind), labels=LabelFile("csv", 5310, "0" * 64)), ())
    content = found.to_html()
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
    titles = [section.title for section in found.sections]
    assert page.of("h2") == titles + ["Signed"] * found.promised
    for word in ("Signature", "Name", "Date"):
        assert (word in page.of("p")) is found.promised, word
    assert page.of("li") == [text for section in found.sections for text in section.texts]


@pytest.mark.parametrize("kind", some(reports.NO_PROMISE, 1))
def test_where_nothing_can_be_signed_the_page_says_so_first_and_shows_no_number(kind):
    report = made(kind)
    page = read(tracked(report, 3))
    assert page.of("h2")[0] == "Nothing is promised"
    assert ("main", (("class", "none"),)) in page.tags
    for word in ("Signature", "What is promised"):
        assert word not in page.text
    for number in (report.epsilon, report.data_independent.epsilon, report.delta):
        found = re.search(rf"\b(epsilon|delta|ε|δ)\W*{shown(number)}", page.text)
        # The published analysis says which number is no bound.
        assert found is None or "is not a bound" in page.text
    assert pate.verify(report, with_dp_accounting=False).verdict == "does not hold"


@pytest.mark.parametrize("kind", some([*reports.KINDS, "external"], 4))
def test_what_failed_a_check_has_nothing_to_sign_and_no_words_of_its_own(kind):
    report = replace(made(kind), private=True, sound=True, tool="audited", warnings=("audited",))
    page = read(report, Check("numbers and words", FAILED, "audited"))
    assert page.of("h2") == ["Nothing is promised"]
    assert len(page.of("li")) == 2
    for word in ("Signature", "audited", shown(report.epsilon), report.run):
        assert word not in page.text


@pytest.mark.parametrize("words", HOSTILE)
def test_words_of_the_reader_are_texts(words):
    """A title and a unit, on the page and in the terminal; the numbers stay what they are."""
    found = explanation_of(made(), (), title=words, unit=words)
    page, shown = Read(found.to_html()), printable(words)
    assert {tag for tag, _ in page.tags} <= KNOWN
    assert (page.of("h1"), page.of("title")) == ([shown], [shown])
    assert next(iter(found.said())).text == shown
    texts = [text for section in found.sections for text in section.texts]
    plain = [text for part in explanation_of(made(), ()).sections for text in part.texts]
    (own,) = (text for text in texts if text not in plain)
    says = f"Whoever made this explanation says that the release protects {shown}"
    assert own == f"{says}; {UNCHECKED}."


def test_a_page_names_the_report_by_its_hash(tmp_path):
    made().save(tmp_path / "report.json")
    content = (tmp_path / "report.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() in read(made()).text
    assert pate.explain(tmp_path / "report.json").to_html() == pate.explain(made()).to_html()


# --- the runs ------------------------------------------------------------------------------------


def test_a_total_that_is_not_claimed_is_not_shown():
    report = tracked(made(), 3)
    page = read(replace(report, statements=made().statements))
    assert page.of("h2")[0] == "What is promised"
    for word in ("0.75", "together they cost"):
        assert word not in page.text


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
    return tracked(report, 3, id=text, time=text)


@pytest.mark.parametrize("kind", some(["groups", "external", "several labels", "seeded"], 2))
@given(text=st.text(alphabet="<>&\"'/=-!;{}$a\x00\n\u202e\ud800é", min_size=1, max_size=60))
@example(HOSTILE[0])
@example(HOSTILE[1])
@example(HOSTILE[2])
@example(HOSTILE[3])
@example(HOSTILE[4])
@example(HOSTILE[5])
@settings(max_examples=12, deadline=None)
def test_no_text_is_markup(kind, text):
    content = explanation_of(strange(text, kind), ()).to_html()
    content.encode()
    page = Read(content)
    if kind != "seeded":  # whose warnings are left out if the summary has them
        plain = Read(explanation_of(strange("plain", kind), ()).to_html())
        assert page.shape == plain.shape
    assert all(char.isprintable() for char in content.replace("\n", ""))
    assert f"The report was written by pate {printable(text)}." in "".join(
        data for _, data in page.inside
    )
