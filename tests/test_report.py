"""The report: one page that stands alone, whose numbers are the trace's; looked at in a browser where there is one."""

import functools
import html
import os
import re
import shutil
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

import gpumem
from gpumem import listing
from gpumem.report import comparison_page, document, page, together
from gpumem.simulate import trace_stage
from gpumem.trace import Trace

VOID = {"meta", "br", "wbr", "hr", "input", "img", "link", "rect", "path", "use"}
STAGES = ["transpose/naive", "transpose/tiled", "transpose/swizzled", "layout/aos_fields", "reduce/strided"]


@functools.cache
def traced(stage):
    known = {str(each) for each in gpumem.stages(device="cuda")}
    name = stage if stage in known else next(each for each in sorted(known) if each.startswith(stage.split("/")[0]))
    return trace_stage(*name.split("/"))


@functools.cache
def wrong():
    """A kernel whose end is out of bounds."""
    kernel = gpumem.Kernel(gpumem.examples.COPY)
    return kernel.trace(8, 128, np.zeros(900, "f4"), np.zeros(1000, "f4"), 1000, machine_code=False)


class Page(HTMLParser):
    """Elements of a page, in order, with the text directly inside; ends that fit no beginning are errors."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", **dict(attributes)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append({"tag": tag, "text": "", **dict(attributes)})

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        if self.open:
            self.open[-1]["text"] += data

    def all(self, *tags):
        return [element for element in self.elements if element["tag"] in tags]


NAMES = [*STAGES, "hazards", "comparison"]


@functools.cache
def text_of(name):
    """A page by its name."""
    if name == "hazards":
        return page(wrong())
    if name == "comparison":
        return comparison_page(traced("transpose/tiled").compare(traced("transpose/swizzled")))
    return page(traced(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_stands_alone_and_is_well_formed(name):
    text = text_of(name)
    parsed = Page(text)
    assert not parsed.all("script", "link", "img", "iframe", "object", "embed")
    links = [element["href"] for element in parsed.elements if "href" in element]
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"https?:|@import|src=", text)
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {"#gm-hatch"}
    names = [element["id"] for element in parsed.elements if "id" in element]
    assert len(names) == len(set(names))
    assert {link[1:] for link in links} <= set(names)
    for element in parsed.elements:
        assert set(element.get("aria-labelledby", "").split()) <= set(names)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_can_be_heard(name):
    text = text_of(name)
    parsed = Page(text)
    assert parsed.all("html")[0]["lang"] == "en"
    assert len(parsed.all("main")) == len(parsed.all("h1")) == len(parsed.all("header")) == 1
    levels = [int(element["tag"][1]) for element in parsed.all("h1", "h2", "h3")]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(element.get("scope") or not element["text"] for element in parsed.all("th"))
    pictures = [element for element in parsed.all("svg") if element.get("aria-hidden") != "true"]
    assert all(element["role"] == "img" for element in pictures)
    assert len(parsed.all("desc")) == len(pictures)
    assert text.index('class="skip"') < text.index("<header>") < text.index("<main")


@pytest.mark.parametrize("stage", STAGES)
def test_the_pages_counts_are_the_traces(stage):
    trace = traced(stage)
    parsed = Page(page(trace))
    cells = [element["text"] for element in parsed.all("td")]
    for name, value in trace.counters.items():
        if value:
            assert cells[cells.index(name) + 1] == f"{value:,}"
    shown = [element for element in parsed.all("g") if "data-cost" in element]
    expected = []
    for site, _ in together(trace.sites):
        for space in site.spaces():
            worst, median = site.worst(space), site.median(space)
            expected += [worst] if worst == median else [worst, median]
    assert [(int(each["data-cost"]), int(each["data-times"])) for each in shown] == [
        (pattern.cost, pattern.times) for pattern in expected
    ]
    assert all(each["data-rows"] == each["data-cost"] for each in shown)


def test_instructions_of_an_unrolled_loop_are_shown_together():
    trace = traced("transpose/tiled")
    joined = together(trace.sites)
    assert sum(count for _, count in joined) == len(trace.sites)
    for count in ("executions", "sectors", "wavefronts", "conflicts"):
        assert sum(getattr(site, count) for site, _ in joined) == sum(getattr(site, count) for site in trace.sites)


def test_hazards_stand_beside_their_lines():
    text = page(wrong())
    (line,) = (found.ptx_line for found in wrong().findings)
    row = text.index(f'id="{listing.anchor("ptx", line)}"')
    assert "out-of-bounds" in text[row : row + 1500]
    assert f'href="#{listing.anchor("ptx", line)}"' in text


def test_advice_stands_beside_its_line():
    trace = traced("transpose/tiled")
    text = page(trace)
    item = next(item for item in trace.advice if item.rule == "conflicts")
    assert text.count(html.escape(item.text)) == 2
    for line in item.code:
        assert html.escape(line) in text


def test_names_are_escaped():
    assert "<b>" not in document("<b>", "", [("a", "<b>", "")])


def test_a_trace_that_was_read_back_gives_the_same_page():
    trace = traced("transpose/swizzled")
    assert page(Trace.from_dict(trace.to_dict())) == page(trace)


def test_a_profile_without_patterns_has_no_pictures():
    import dataclasses

    trace = traced("transpose/naive")
    bare = trace.with_sites([dataclasses.replace(site, patterns=(), distinct=()) for site in trace.sites])
    text = page(bare)
    assert "No picture was recorded" in text
    assert "data-cost" not in text


# --- in a browser ---------------------------------------------------------------------------------------------------


def absent(why):
    """Skips, or fails where a browser must be there."""
    if os.environ.get("GPUMEM_BROWSER", "0") != "0":
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="module")
def browser():
    """The system's Chromium, or playwright's own."""
    try:
        from playwright import sync_api
    except ImportError:
        absent("needs playwright: pip install playwright")
    system = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_api.sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=system, args=["--no-sandbox"])
        except sync_api.Error as error:
            absent(f"needs Chromium: playwright install --with-deps chromium ({str(error).splitlines()[0]})")
        yield opened
        opened.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page of a width and a colour scheme; nothing may be asked of the network, and nothing may fail."""
    opened = []

    def show(text, width=1200, scheme="light"):
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        view = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=True)
        opened.append(view)
        asked, said = [], []
        view.on("request", lambda request: asked.append(request.url))
        view.on("console", lambda message: said.append(message.text))
        view.goto(f"file://{tmp_path}/page.html")
        assert asked == [f"file://{tmp_path}/page.html"]
        assert not said
        return view

    yield show
    for view in opened:
        view.close()


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("name", ["transpose/tiled", "hazards", "comparison"])
def test_a_page_fits_its_width(show, width, name):
    view = show(text_of(name), width)
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    outside = view.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1"
        " && !e.closest('.gm-scroll, pre, svg')).map(e => e.outerHTML.slice(0, 99))"
    )
    assert outside == []


def test_counts_in_the_browser_are_the_traces(show):
    trace = traced("transpose/tiled")
    view = show(page(trace))
    rows = view.evaluate(
        "[...document.querySelectorAll('.gm-scroll tbody tr')].map(r => [...r.cells].map(c => c.innerText))"
    )
    shown = {row[0]: row[1] for row in rows}
    for name, value in trace.counters.items():
        assert shown.get(name, "0") == f"{value:,}"
    drawn = view.evaluate("[...document.querySelectorAll('g[data-cost]')].map(g => [g.dataset.cost, g.dataset.rows])")
    assert ["32", "32"] in drawn
    seen = view.evaluate(
        "[...document.querySelectorAll('details[open] g[data-cost]')].every(g => g.getBoundingClientRect().height > 20)"
    )
    assert seen


def test_light_and_dark(show):
    def luminance(colour):
        rgb = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        return np.dot(
            [0.2126, 0.7152, 0.0722], [(c / 12.92) if c < 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        )

    for scheme in ("light", "dark"):
        view = show(text_of("hazards"), scheme=scheme)
        ask = "s => {{const e = document.querySelector(s); return getComputedStyle(e).{}}}"
        paper = luminance(view.evaluate(ask.format("backgroundColor"), "body"))
        assert (paper > 0.5) == (scheme == "light")
        for selector in ("body", ".soft", ".bad", "nav a"):
            letters = luminance(view.evaluate(ask.format("color"), selector))
            contrast = (max(paper, letters) + 0.05) / (min(paper, letters) + 0.05)
            assert contrast >= 4.5, (scheme, selector, contrast)


def test_the_keyboard_reaches_everything_in_order(show):
    view = show(text_of("transpose/tiled"))
    stops = []
    for _ in range(60):
        view.keyboard.press("Tab")
        stops.append(view.evaluate("[document.activeElement.tagName, document.activeElement.innerText.slice(0, 20)]"))
        if stops[-1][0] == "BODY":
            break
    assert stops[0] == ["A", "To the report"]
    assert [text for _, text in stops[1:5]] == ["Advice", "Source", "Accesses", "Counts"]
    tags = [tag for tag, _ in stops]
    assert tags.count("SUMMARY") >= len(together(traced("transpose/tiled").sites))


def test_a_page_is_whole_without_scripts(browser, tmp_path):
    (tmp_path / "page.html").write_text(text_of("transpose/tiled"), encoding="utf-8")
    view = browser.new_page(java_script_enabled=False)
    view.goto(f"file://{tmp_path}/page.html")
    assert "32 wavefronts, 1 would do" in view.locator("main").text_content()
    view.close()
