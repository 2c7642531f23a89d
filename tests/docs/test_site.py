"""The site that `sphinx-build -W -b html docs docs/_build/html` has built: links, pictures, names, a search, a phone.

Where none was built there is nothing to look at; `.ci/run` builds it first.
"""

import ast
import functools
import re
import threading
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import chromium
import pytest
from tree import FILES, ROOT, installed_name

from fedbandit_envs import REGISTRY
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.wrappers import WRAPPERS

SITE = ROOT / "docs" / "_build" / "html"
pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").exists(),
    reason="no site was built: sphinx-build -W -b html docs docs/_build/html",
)
ELSEWHERE = ("http:", "https:", "mailto:", "data:", "javascript:")


class Page(HTMLParser):
    """What a page refers to, and what can be referred to in it."""

    def __init__(self, text):
        super().__init__()
        self.references, self.anchors, self.loaded = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        for name in ("href", "src"):
            if found.get(name):
                self.references.append(found[name])
                # A link may lead out of the site; what a browser loads by itself may not.
                if name == "src" or (tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload")):
                    self.loaded.append(found[name])


@functools.cache
def pages():
    return {path: Page(path.read_text(encoding="utf-8")) for path in SITE.rglob("*.html")}


def test_no_link_is_broken_and_no_picture_is_missing():
    broken = []
    for path, page in pages().items():
        for reference in page.references:
            if reference.startswith(ELSEWHERE):
                continue
            parts = urlsplit(reference)
            place, anchor = unquote(parts.path), unquote(parts.fragment)
            target = (path.parent / place).resolve() if place else path
            named = not anchor or target.suffix != ".html" or anchor in pages()[target].anchors
            if not (target.exists() and named):
                broken.append((path.relative_to(SITE), reference))
    assert broken == []


def test_nothing_is_loaded_from_a_network():
    outside = {one for page in pages().values() for one in page.loaded if one.startswith(("http", "//"))}
    assert outside == set()
    for sheet in SITE.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", sheet.read_text()), sheet


def public_names():
    """Public classes and functions of all modules, as their files say."""
    for path in FILES:
        if path.relative_to(ROOT).parts[0] not in ("fedbandit_envs", "wrappers", "baselines", "leaderboard"):
            continue
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
                continue
            # Instructions of kernels are no functions of Python.
            if "_instruction" not in map(ast.unparse, node.decorator_list):
                yield f"{installed_name(path)}.{node.name}"


def test_every_public_name_is_in_the_reference():
    names = set(public_names())
    assert len(names) > 500
    reference = (SITE / "generated/reference").glob("*.html")
    assert names - set().union(*(pages()[page].anchors for page in reference)) == set()


def test_everything_registered_has_a_page_that_the_index_names():
    entry = re.compile(r'<a href="generated/(?:wrappers|baselines|environments)/[^"]*">(?:<strong>)?([^<]+)<')
    named = set(entry.findall((SITE / "genindex.html").read_text()))
    assert {*WRAPPERS, *BASELINES, *REGISTRY, *(one.pettingzoo for one in REGISTRY.values())} <= named


@pytest.fixture(scope="module")
def url():
    """The site on a port of the loopback address: browsers search no site of files."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = chromium.start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.mark.parametrize(("words", "expected"), [
    ("GaussianPrivatizer", "generated/wrappers/gaussianprivatizer.html"),
    ("FedProcurementHomogeneous-v0", "generated/environments/procurement.html"),
    ("P-FCB", "generated/baselines/p-fcb.html"),
    ("MOSS-weighted", "generated/baselines/moss-weighted.html"),
])  # fmt: skip
def test_search_finds_the_page_of_a_name_first(browser, url, words, expected):
    browser.get(f"{url}/search.html?q={words}")
    # Results come one after another.
    found = chromium.until(
        browser,
        "return /finished/.test(document.querySelector('#search-results .search-summary')?.textContent) &&"
        "[...document.querySelectorAll('#search-results li a')].map(link => link.href)",
    )
    assert expected in found[0], found[:3]
    assert browser.get_log("browser") == []


def test_the_leaderboard_begins_with_its_ranking():
    _, _, page = (SITE / "leaderboard.html").read_text().partition("<article")
    assert page.index("generated/baselines/") < page.index("<img")


CUT_OFF = """
const scrolls = one => one && one.tagName !== 'ARTICLE' && (
    ['auto', 'scroll'].includes(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
return [...document.querySelectorAll('article *')]
    .filter(one => one.getBoundingClientRect().right > 391 && !scrolls(one)).map(one => one.textContent.slice(0, 60));
"""
"""What reaches over a phone's right edge where nothing scrolls."""
FONT_SIZE = "return parseFloat(getComputedStyle(document.querySelector('article p, article a')).fontSize)"
UNSEEN = "return [...document.images].filter(one => one.complete && !one.naturalWidth).map(one => one.src)"


@pytest.mark.parametrize(
    "page",
    [
        "index", "architecture", "tutorials/epsilon", "generated/environments/procurement", "generated/baselines/index",
        "reproductions/index", "reproductions/claims", "generated/pictures", "generated/baselines/p-fcb", "versions",
        "lab", "leaderboard", "leaderboard/leaderboard", "genindex", "py-modindex",
    ],
)  # fmt: skip
def test_pages_can_be_read_on_a_phone(browser, url, page):
    chromium.narrow(browser, 390)
    browser.get(f"{url}/{page}.html")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    assert browser.execute_script(CUT_OFF) == []
    assert browser.execute_script(FONT_SIZE) >= 15
    assert browser.execute_script(UNSEEN) == []
    assert browser.get_log("browser") == []
