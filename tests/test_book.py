"""The book: its pages and their links, and the site in a browser."""

import functools
import http.server
import json
import re
import shutil
import threading
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import pandas as pd
import pytest

from lib.book.api import Library
from lib.book.gather import BookError, gather, study_facts
from lib.book.numbers import Numbers
from lib.book.site import Sources, build
from lib.cells import published
from lib.files import write_csv_atomic
from lib.paths import ROOT
from lib.tables import Table, write_table
from lib.verify import main as verify

pytestmark = pytest.mark.filterwarnings("ignore:.*sphinx_book_theme.*")  # the theme calls what Sphinx will remove
LIBRARY = ("agreement.py", "numeric.py", "resampling.py", "models/__init__.py", "models/request.py")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A few modules of the library, so that the book of the tests is small."""
    folder = tmp_path_factory.mktemp("code") / "lib"
    for name in LIBRARY:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "lib" / name, folder / name)
    return Library(folder)


SETUP = ("setup", "import numpy as np\nfrom lib import resampling\nfrom lib.agreement import cohen_kappa, krippendorff_alpha as alpha\n"
                  "from lib.page import Page\npage = Page('alienbench', 'x')\nratings = np.ones((2, 3))")


# a run, and its book -------------------------------------------------------------------------------------------------

def code(name, source, count, *outputs, tags=()):
    return {"cell_type": "code", "id": name, "metadata": {"tags": list(tags)}, "source": source, "execution_count": count,
            "outputs": list(outputs)}


def prose(name, source):
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def notebook(*cells, **meta):
    return {"cells": list(cells), "nbformat": 4, "nbformat_minor": 5,
            "metadata": {"compendium": meta, "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
                         "language_info": {"name": "python"}, "papermill": {}}}


def shown(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


FRAME = {"output_type": "execute_result", "execution_count": 4, "metadata": {},
         "data": {"text/html": "<table class='dataframe'><tr><th>alpha</th><td>0.9</td></tr></table>", "text/plain": "alpha 0.9"}}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A finished run of one study with two notebooks; numbers are those that the paper prints, or nearly."""
    folder = tmp_path_factory.mktemp("run")
    table = published("alienbench")
    table = table[(table["exhibit"] == "table-7") & (table["column"] == "alpha")]
    rows = table["row"].tolist()
    cell = f"for row, value in values.items():\n    page.cell('table-7', row, 'alpha', value)\nprint('{ROOT}/data')"
    books = {
        "04_agreement": notebook(
            prose("intro", "# 4 · Do they agree?\n\nFrom [the archive](../../data/published/alienbench.csv); then "
                           "[more](05_more.ipynb)."),
            code("parameters", "profile = 'demo'\nseed = 1", 1, tags=["parameters"]),
            code("given", f"# Parameters\nprofile = 'released'\nlabels = '{ROOT}/build/x.csv'", 2, tags=["injected-parameters"]),
            code("setup", SETUP[1], 3),
            prose("formula", "## Alpha\n\n$$ \\alpha = 1 - \\frac{D_o}{D_e} $$\n\nwhere $D_o$ is seen. [Back](#4-·-Do-they-agree?)"),
            code("alpha", "values = {'total': alpha(ratings)}\nvalues", 4, FRAME),
            code("put", cell, 5, shown(f"{ROOT}/data")),
            prose("exercise", "## Exercise\n\nWould a copy help?\n\n<details><summary>Solution</summary>\n\nNo: *copies* agree."
                              "\n</details>"), study="alienbench", section="4.3; Table 7"),
        "05_more": notebook(prose("intro", "# 5 · More"), code("setup", SETUP[1], 1),
                            code("kappa", "page.cell('beyond', 'a', 'b', cohen_kappa(*ratings))", 2), study="alienbench"),
    }
    for name, book in books.items():
        path = folder / "notebooks" / "alienbench" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(book), encoding="utf-8")
    columns = ["study", "exhibit", "row", "column", "value", "lo", "hi", "decimals", "note", "basis", "notebook", "execution"]
    made = [["alienbench", "table-7", row, "alpha", value + (0.2 if place == 1 else 0), lo, hi, None, "", "printed",
             "alienbench/04_agreement", 5]
            for place, (row, value, lo, hi) in enumerate(table[["row", "value", "lo", "hi"]].to_numpy().tolist())]
    beyond = [["alienbench", "beyond", "a", "b", 0.51234, None, None, None, "", "data", "alienbench/05_more", 2]]
    paths = []
    for name, lines in (("04_agreement", made), ("05_more", beyond)):
        paths.append(write_csv_atomic(folder / "cells" / "alienbench" / f"{name}.csv", pd.DataFrame(lines, columns=columns)))
    assert verify(["released", "alienbench", str(folder), *map(str, paths)]) == 0
    body = pd.DataFrame({"alpha": ["0.91"]}, index=["Total"])
    write_table(Table("Table 7", "Agreement.", body), folder / "tables" / "alienbench", "table-07")
    figure = folder / "figures" / "alienbench" / "figure_1_radar.png"
    figure.parent.mkdir(parents=True)
    figure.write_bytes(bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154"
                                     "78da63fcffff3f0300050001fe02fea53581e20000000049454e44ae426082"))
    assert len(rows) > 5
    return folder


@pytest.fixture(scope="module")
def built(out, library):
    return build(gather("released", out), library)


def test_sphinx_has_nothing_to_complain_of(built):
    assert built.warnings == []


class Page(HTMLParser):
    """The links, loaded resources and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.ids = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag in ("img", "script", "iframe", "source") and values.get("src"):
            self.loads.append(values["src"])
        if tag == "link" and values.get("href") and values.get("rel") != "canonical":
            self.loads.append(values["href"])


@pytest.fixture(scope="module")
def pages(built):
    root = built.index.parent
    return {path.relative_to(root).as_posix(): Page(path.read_text(encoding="utf-8")) for path in root.rglob("*.html")
            if "_static" not in path.parts}


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(built, pages):
    root = built.index.parent
    broken, abroad = [], []
    for name, page in pages.items():
        for target in [*page.links, *page.loads]:
            parts = urlsplit(urljoin(f"http://book/{name}", target))
            if urlsplit(target).scheme in ("http", "https", "mailto", "data"):
                abroad += [target] if target in page.loads and not target.startswith("data:") else []
                continue
            place = unquote(parts.path.lstrip("/")) or name
            anchor = unquote(parts.fragment)
            if not (root / place).is_file():
                broken.append((name, target))
            elif anchor and place in pages and "=" not in anchor and anchor not in pages[place].ids:
                broken.append((name, target))
    assert broken == [] and abroad == []
    for path in root.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:|@import ['\"]?https?:", path.read_text(encoding="utf-8")), path.name


def test_a_printed_number_leads_to_its_cell_and_function_and_they_lead_back(pages):
    exhibit = pages["numbers/alienbench/table-7.html"]
    assert "../../notebooks/alienbench/04_agreement.html#cell-put" in exhibit.links
    assert "../../api/agreement.html#krippendorff_alpha" in exhibit.links
    assert "total--alpha" in exhibit.ids
    assert any(link.startswith("../../numbers/alienbench/table-7.html") for link in pages["notebooks/alienbench/04_agreement.html"].links)
    api = pages["api/agreement.html"].links
    assert any(link.startswith("../numbers/alienbench/table-7.html") for link in api), "a function knows its numbers"
    assert "../notebooks/alienbench/04_agreement.html#cell-alpha" in api, "and the cells that call it"


def test_the_study_page_holds_question_figure_table_and_counts(built):
    text = (built.index.parent / "studies" / "alienbench.html").read_text(encoding="utf-8")
    facts = study_facts()["alienbench"]
    assert facts["question"].replace("'", "&#x27;") in text and "figure_1_radar.png" in text and "<b>Table 7.</b> Agreement." in text
    assert re.search(r"class='bar' role='img' aria-label='derived \d+, no data \d+'", text)
    assert "beyond" in text, "numbers that the paper does not print are listed too"


def test_no_path_of_the_machine_and_formulas_as_mathml(built):
    text = (built.index.parent / "notebooks/alienbench/04_agreement.html").read_text(encoding="utf-8")
    assert str(ROOT) not in text and "build/x.csv" in text
    assert text.count("<math") == 2 and "\\frac" not in text


def test_a_second_build_parses_only_what_changed(built, out, library):
    parsed = out / ".book" / "doctrees"
    before = {path: path.stat().st_mtime_ns for path in parsed.rglob("*.doctree")}
    path = out / "notebooks" / "alienbench" / "05_more.ipynb"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(' More"', ' More\\n\\nEven more."'), encoding="utf-8")
    try:
        again = build(gather("released", out), library)
    finally:
        path.write_text(text, encoding="utf-8")
    assert "Even more" in (again.index.parent / "notebooks/alienbench/05_more.html").read_text(encoding="utf-8")
    assert {path.relative_to(parsed).as_posix() for path in before if path.stat().st_mtime_ns != before[path]} == {
        "notebooks/alienbench/05_more.doctree"}


def test_the_exercises_are_gathered(out, library):
    source = Sources(gather("released", out), library).files()["exercises.md"]
    assert "04_agreement.html#cell-exercise" in source and "Would a copy help?" in source and "copies" not in source


def test_numbers_carry_their_verdicts(out, library):
    numbers = Numbers(gather("released", out), library)
    rows = {each.row: each for each in numbers.exhibits["alienbench"]["table-7"] if each.column == "alpha"}
    verdicts = [each.verdict for each in rows.values()]
    assert verdicts.count("contradicts") == 1 and verdicts.count("agrees") == len(rows) - 1
    assert rows["total"].makers == ("lib.agreement.krippendorff_alpha",)
    beyond = numbers.exhibits["alienbench"]["beyond"][0]
    assert (beyond.status, beyond.computed, beyond.makers) == ("", "0.5123", ("lib.agreement.cohen_kappa",))


def test_without_a_run_the_command_says_what_to_do(tmp_path):
    with pytest.raises(BookError, match="run `make tables PROFILE=demo` first"):
        gather("demo", tmp_path)


def test_an_unknown_key_of_the_studies_file_is_named(tmp_path):
    path = tmp_path / "studies.yaml"
    path.write_text("alienbench: {titel: x}\n")
    with pytest.raises(BookError, match="alienbench: unknown key 'titel'"):
        study_facts(path)


# in a browser --------------------------------------------------------------------------------------------------------

class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Nothing: the requests are read from the browser's own log."""


@pytest.fixture(scope="module")
def site(built):
    """The book, served on loopback."""
    handler = functools.partial(Quiet, directory=str(built.index.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    chromium, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("no Chromium with chromedriver on this machine")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "SEVERE"})
    session = webdriver.Chrome(options=options, service=Service(driver))
    session.set_page_load_timeout(60)
    yield session
    session.quit()


def one(browser, selector):
    return browser.find_element("css selector", selector)


def rows(browser):
    return browser.find_elements("css selector", "#rows tbody tr")


def press(browser, keys):
    from selenium.webdriver import ActionChains

    ActionChains(browser).send_keys(keys).perform()


def wait(browser, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 20).until(lambda _: condition())


def requested(browser):
    """Every address that the browser asked for since the last look."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


def test_the_table_filters_and_searches(browser, site):
    browser.get(f"{site}/verification.html")
    total = len(published("alienbench"))
    assert one(browser, "#count").text == f"{total} of {total} printed numbers"
    one(browser, "#text").send_keys("table-7 alpha total")
    assert len(rows(browser)) == 1 and "0.913" in rows(browser)[0].text
    assert "text=table-7+alpha+total" in browser.current_url, "a view can be linked"
    browser.get(f"{site}/verification.html#status=contradicts")
    browser.refresh()
    assert len(rows(browser)) == 1 and "contradicts" in rows(browser)[0].text
    browser.get(f"{site}/verification.html#exhibit=table-3")
    browser.refresh()
    assert len(rows(browser)) == (published("alienbench")["exhibit"] == "table-3").sum()


def test_the_keyboard_is_enough(browser, site):
    from selenium.webdriver.common.keys import Keys

    browser.get(f"{site}/verification.html")
    browser.refresh()
    press(browser, "/")
    press(browser, "table-7 total" + Keys.ENTER)
    assert one(browser, "#rows tr.at") == browser.switch_to.active_element
    press(browser, Keys.ENTER)
    wait(browser, lambda: "04_agreement.html#cell-put" in browser.current_url)
    assert one(browser, "#cell-put") is not None
    browser.back()
    wait(browser, lambda: rows(browser))
    press(browser, "j")
    press(browser, "f")
    wait(browser, lambda: "api/agreement.html#krippendorff_alpha" in browser.current_url)
    browser.back()
    wait(browser, lambda: rows(browser))
    press(browser, "/")
    press(browser, Keys.ESCAPE)
    assert one(browser, "#text").get_attribute("value") == "" and len(rows(browser)) > 100


def test_search_finds_a_function(browser, site):
    browser.get(f"{site}/search.html?q=krippendorff_alpha")
    wait(browser, lambda: browser.find_elements("css selector", "#search-results li a"))
    assert any("agreement" in found.get_attribute("href") for found in browser.find_elements("css selector", "#search-results li a"))


def test_solutions_are_folded(browser, site):
    browser.get(f"{site}/notebooks/alienbench/04_agreement.html")
    solution = next(each for each in browser.find_elements("css selector", "details") if "Solution" in each.text)
    assert solution.get_attribute("open") is None and "copies" not in solution.text
    solution.find_element("css selector", "summary").click()
    assert "copies agree" in solution.text


def test_a_phone_shows_every_page_without_scrolling_sideways(browser, site):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
    try:
        for page in ("index", "verification", "exercises", "studies/alienbench", "numbers/alienbench/table-3", "api/agreement",
                     "notebooks/alienbench/04_agreement", "about/readme"):
            browser.get(f"{site}/{page}.html")
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 390, page
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_dark_is_dark_and_marks_stay_readable(browser, site):
    luminance = """const parts = color => color.match(/[\\d.]+/g).map(Number), style = getComputedStyle;
        const light = color => { const [r, g, b] = parts(color).map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                                 return .2126 * r + .7152 * g + .0722 * b; };
        const contrast = (a, b) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        return [light(style(document.body).backgroundColor), contrast(light(style(document.body).backgroundColor), light(style(document.body).color)),
                Math.min(...[...document.querySelectorAll('.s')].map(s => contrast(light(style(s).backgroundColor), light(style(s).color))))];"""
    seen = {}
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        browser.get(f"{site}/verification.html")
        browser.refresh()
        seen[scheme] = browser.execute_script(luminance)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert seen["dark"][0] < 0.1 < 0.8 < seen["light"][0]
    for background, text, marks in seen.values():
        assert text >= 7 and marks >= 4.5, seen


def test_the_browser_asked_no_other_host_and_no_script_failed(browser, site):
    for page in ("index", "verification", "notebooks/alienbench/04_agreement", "search"):
        browser.get(f"{site}/{page}.html")
    addresses = requested(browser)
    assert len(addresses) > 10
    assert {address for address in addresses if not address.startswith((site, "data:", "chrome", "blob:", "about:"))} == set()
    assert [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]] == []
