"""The book in a headless browser: filters, keyboard, search, phone, dark mode, and no other host."""

import functools
import http.server
import json
import shutil
import threading
from urllib.parse import urlencode

import pytest

from compendium.frame.cells import published

pytestmark = pytest.mark.filterwarnings("ignore:.*sphinx_book_theme.*")  # it calls what Sphinx will remove


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


@pytest.fixture
def pages(built):
    """Every page of the book, relative to its root."""
    root = built.index.parent
    found = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.html"))
    return [page for page in found if not page.startswith("_static/")]


@pytest.fixture(scope="module")
def browser():
    chromium, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("no Chromium with chromedriver on this machine")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    alone = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"  # every other host is out of reach
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,1000", alone):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "SEVERE"})
    session = webdriver.Chrome(options=options, service=Service(driver))
    session.set_page_load_timeout(60)
    yield session
    session.quit()


# [how light the page is, the contrast of its text, the least contrast of a status mark] (WCAG's definitions)
CONTRASTS = """
    const linear = v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    const light = color => { const [r, g, b] = color.match(/[\\d.]+/g).map(Number).map(linear);
                             return .2126 * r + .7152 * g + .0722 * b; };
    const pair = element => { const style = getComputedStyle(element);
                              return [light(style.backgroundColor), light(style.color)]; };
    const contrast = ([a, b]) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const page = pair(document.body), marks = [...document.querySelectorAll('.s')];
    return [page[0], contrast(page), Math.min(...marks.map(mark => contrast(pair(mark))))];"""


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
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


def test_the_table_filters_and_searches(browser, site):
    browser.get(f"{site}/verification.html")
    total = len(published("alienbench"))
    assert one(browser, "#count").text == f"{total} of {total} printed numbers"
    one(browser, "#text").send_keys("table-7 total 0.913")
    assert len(rows(browser)) == 1 and "0.913" in rows(browser)[0].text
    assert "text=table-7+total+0.913" in browser.current_url, "a view can be linked"
    browser.get(f"{site}/verification.html#outcome=contradicts")
    browser.refresh()
    assert len(rows(browser)) == 1 and "contradicts" in rows(browser)[0].text
    browser.get(f"{site}/verification.html#exhibit=table-3")
    browser.refresh()
    assert len(rows(browser)) == (published("alienbench")["exhibit"] == "table-3").sum()


@pytest.mark.parametrize("said", ["0.913", ".913", "table 7 .913"])
def test_a_number_is_found_however_it_is_written(browser, site, said):
    browser.get(f"{site}/verification.html#{urlencode({'text': said})}")
    browser.refresh()
    assert rows(browser) and all("0.913" in row.text for row in rows(browser))


def test_a_table_is_found_by_its_number_alone(browser, site):
    browser.get(f"{site}/verification.html#text=table+1")
    browser.refresh()
    assert not rows(browser), "Table 10 is another table"
    browser.get(f"{site}/verification.html#text=table+12")
    browser.refresh()
    assert rows(browser) and all("table-12" in row.text for row in rows(browser))


def test_a_number_is_found_from_any_page(browser, site):
    from selenium.webdriver.common.keys import Keys

    browser.get(f"{site}/studies/alienbench.html")
    browser.execute_script(
        "const f = document.createElement('form'); f.innerHTML = '<input name=q id=try>'; document.body.prepend(f)"
    )
    one(browser, "#try").send_keys(".913" + Keys.ENTER)
    wait(browser, lambda: "verification.html#text=.913" in browser.current_url and rows(browser))


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
    wait(browser, lambda: "api/lib/agreement.html#krippendorff_alpha" in browser.current_url)
    browser.back()
    wait(browser, lambda: rows(browser))
    press(browser, "/")
    press(browser, Keys.ESCAPE)
    assert one(browser, "#text").get_attribute("value") == "" and len(rows(browser)) > 100


def test_search_finds_a_function(browser, site):
    browser.get(f"{site}/search.html?q=krippendorff_alpha")
    wait(browser, lambda: browser.find_elements("css selector", "#search-results li a"))
    assert any(
        "agreement" in found.get_attribute("href")
        for found in browser.find_elements("css selector", "#search-results li a")
    )


def test_solutions_are_folded(browser, site):
    browser.get(f"{site}/notebooks/alienbench/04_agreement.html")
    solution = next(
        each for each in browser.find_elements("css selector", "details") if "Solution" in each.text
    )
    assert solution.get_attribute("open") is None and "copies" not in solution.text
    solution.find_element("css selector", "summary").click()
    assert "copies agree" in solution.text


def test_a_phone_shows_every_page_without_scrolling_sideways(browser, site, pages):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        wide = {}
        for page in pages:
            browser.get(f"{site}/{page}")
            width = browser.execute_script("return document.documentElement.scrollWidth")
            if width > 390:
                wide[page] = width
        assert len(pages) > 50 and not wide
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_no_column_hides_at_the_width_of_a_laptop(browser, site, pages):
    hidden = {}
    for page in [page for page in pages if page.split("/")[0] in ("verification.html", "numbers", "studies")]:
        browser.get(f"{site}/{page}")
        found = browser.execute_script(
            "const cells = document.querySelectorAll('table.numbers td, table.numbers th, table.verdicts td');"
            "const hides = each => each.scrollWidth > each.clientWidth + 1"
            " || each.getBoundingClientRect().right > innerWidth;"
            "return [...cells].filter(hides)"
            ".map(each => each.textContent)"
        )
        if found:
            hidden[page] = found
    assert not hidden


def test_a_long_note_unfolds(browser, site):
    browser.get(f"{site}/verification.html#exhibit=table-3")
    browser.refresh()
    note = one(browser, "#rows details.note")
    folded = note.size["height"]
    note.find_element("css selector", "summary").click()
    assert note.size["height"] > folded


def test_the_dark_is_dark_and_marks_stay_readable(browser, site):
    seen = {}
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        browser.get(f"{site}/verification.html")
        browser.refresh()
        seen[scheme] = browser.execute_script(CONTRASTS)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert seen["dark"][0] < 0.1 < 0.8 < seen["light"][0]
    for _, text, marks in seen.values():
        assert text >= 7 and marks >= 4.5, seen


def test_the_browser_asked_no_other_host_and_no_script_failed(browser, site):
    for page in ("index", "verification", "notebooks/alienbench/04_agreement", "search"):
        browser.get(f"{site}/{page}.html")
    addresses = requested(browser)
    assert len(addresses) > 10
    assert {
        address
        for address in addresses
        if not address.startswith((site, "data:", "chrome", "blob:", "about:"))
    } == set()
    assert [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]] == []
