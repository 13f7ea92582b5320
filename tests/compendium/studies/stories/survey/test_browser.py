"""The form in a real browser (headless Chromium): by mouse, by keyboard, on a phone-sized screen, after a
reload.
"""

import re
import shutil
import socket
import threading
import time

import pandas as pd
import pytest
import uvicorn

from compendium.studies.stories.data import DIMENSIONS, TEXTS
from compendium.studies.stories.survey.app import create_app, open_store

webdriver = pytest.importorskip(
    "selenium.webdriver", reason="selenium is not installed: pip install selenium"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium with its chromedriver on this machine"
)

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--lang=en-US",
)


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """(address, store) of a running survey with three stories in both languages."""
    rows = [
        (
            n,
            language,
            "human" if n == 1 else "GPT-5.2",
            f"Prompt number {n}",
            "\n\n".join(
                f"{'Paragraph' if language == 'en' else 'Paragrafo'} {k} of story {n}. " * 12
                for k in range(3)
            ),
        )
        for n in (1, 2, 3)
        for language in ("en", "it")
    ]
    store = open_store(tmp_path_factory.mktemp("survey") / "survey.sqlite")
    store.add_texts(pd.DataFrame(rows, columns=TEXTS))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(create_app(store), port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    yield f"http://127.0.0.1:{port}", store
    server.should_exit = True
    thread.join(60)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        *ARGUMENTS,
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
        "--window-size=1200,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium, survey):
    """The browser as a new rater finds it: nothing kept, a desktop's window."""
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.get(survey[0])
    chromium.execute_script("localStorage.clear()")
    chromium.get_log("browser")
    return chromium


def until(check, seconds=60):
    """Wait for something to become true, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := check():
                return found
        except Exception as error:  # an element that is being replaced: look again
            problem = error
        time.sleep(0.05)
    raise AssertionError(f"did not happen within {seconds} s ({locals().get('problem', 'false')})")


def css(browser, selector):
    return browser.find_elements("css selector", selector)


def one(browser, selector):
    return until(lambda: css(browser, selector))[0]


def begin(browser, address, language="English"):
    browser.get(address)
    until(lambda: css(browser, "#begin"))
    next(b for b in css(browser, "nav button") if b.text == language).click()
    for name, value in (
        ("native_language", "English"),
        ("gender", "Female"),
        ("education", "PhD"),
        ("experience", "Often"),
    ):
        one(browser, f"select[name={name}] option[value='{value}']").click()
    one(browser, "input[name=age]").send_keys("34")
    one(browser, "input[name=consent]").click()
    one(browser, "#begin").click()
    until(lambda: css(browser, "#story p"))


def click(browser, element):
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def no_errors(browser):
    said = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert not said, said


def last(store):
    return store.sheet().iloc[-1]


def test_by_mouse_in_english(browser, survey):
    address, store = survey
    before = len(store.sheet())
    begin(browser, address)
    assert len(css(browser, "fieldset")) == 11 and len(css(browser, "#story p")) == 3
    assert not re.search(r"human|GPT", browser.page_source, re.I), "the page must not say who wrote the story"
    story = one(browser, "#story").text
    for number, name in enumerate(DIMENSIONS):
        click(browser, one(browser, f"input[name={name}][value='{1 + number % 5}']"))
    click(browser, one(browser, "#submit"))
    until(lambda: one(browser, "#story").text != story)
    until(lambda: "1" in one(browser, "#count").text)
    row = last(store)
    assert len(store.sheet()) == before + 1 and row["txt_language"] == "en" and row["age"] == 34
    assert [row[name] for name in DIMENSIONS] == [1 + number % 5 for number in range(11)]
    click(browser, one(browser, "#stop"))
    assert "Thank you" in one(browser, "#thanks").text
    no_errors(browser)


def test_by_keyboard_alone(browser, survey):
    address, store = survey
    begin(browser, address)
    story = one(browser, "#story").text
    keys = webdriver.ActionChains(browser)
    for digit in "54321543215":
        keys.send_keys(digit)
    keys.perform()
    assert browser.switch_to.active_element.get_attribute("id") == "submit"
    webdriver.ActionChains(browser).send_keys("\ue007").perform()  # Enter
    until(lambda: one(browser, "#story").text != story)
    assert [last(store)[name] for name in DIMENSIONS] == [int(digit) for digit in "54321543215"]
    first = one(browser, "input[name=authenticity]")
    first.send_keys(" ")
    first.send_keys("\ue014")  # the right arrow moves within a scale
    assert one(browser, "input[name=authenticity]:checked").get_attribute("value") == "2"
    no_errors(browser)


def test_what_is_missing_is_said_and_nothing_is_lost_by_a_reload(browser, survey):
    address, store = survey
    before = len(store.sheet())
    begin(browser, address)
    story = one(browser, "#story").text
    for name in DIMENSIONS[:9]:
        click(browser, one(browser, f"input[name={name}][value='4']"))
    click(browser, one(browser, "#submit"))
    until(lambda: "2 qualities" in one(browser, "#notice").text)
    assert [each.get_attribute("id") for each in css(browser, "fieldset.missing")] == [
        "q-value",
        "q-creativity",
    ]
    assert len(store.sheet()) == before
    browser.refresh()
    until(lambda: css(browser, "#story p"))
    assert one(browser, "#story").text == story
    assert [each.get_attribute("name") for each in css(browser, "input:checked")] == list(DIMENSIONS[:9])
    assert {each.get_attribute("value") for each in css(browser, "input:checked")} == {"4"}
    click(browser, one(browser, "#submit"))
    until(lambda: "2 qualities" in one(browser, "#notice").text)
    click(browser, one(browser, "#stop"))
    until(lambda: css(browser, "#thanks"))
    assert one(browser, "#notice").text == "", "what was missing is of no concern any more"
    no_errors(browser)


def test_on_a_phone_in_italian(browser, survey, tmp_path):
    address, store = survey
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True},
    )
    begin(browser, address, "Italiano")
    assert "Paragrafo" in one(browser, "#story").text and "Autenticità" in one(browser, "fieldset").text
    assert one(browser, "html").get_attribute("lang") == "it"
    wide = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1] == 360, "nothing sticks out sideways"
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('.scale label, main button')].map(e => {"
        "const r = e.getBoundingClientRect(); return [r.width, r.height]})"
    )
    assert len(sizes) == 57 and min(min(size) for size in sizes) >= 44, (
        "every target is large enough for a thumb"
    )
    for name in DIMENSIONS:
        click(browser, one(browser, f"input[name={name}][value='3']"))
    browser.get_screenshot_as_file(str(tmp_path / "phone.png"))
    click(browser, one(browser, "#submit"))
    until(lambda: "1" in one(browser, "#count").text)
    assert last(store)["txt_language"] == "it" and (tmp_path / "phone.png").stat().st_size > 10_000
    no_errors(browser)


def test_language_can_change_in_the_middle(browser, survey):
    address, _ = survey
    begin(browser, address)
    number = re.search(r"story (\d)", one(browser, "#story").text)[1]
    click(browser, one(browser, "input[name=novelty][value='5']"))
    next(b for b in css(browser, "nav button") if b.text == "Italiano").click()
    until(lambda: f"Paragrafo 0 of story {number}" in one(browser, "#story").text)
    assert one(browser, "input[name=novelty]:checked").get_attribute("value") == "5"
    no_errors(browser)


def test_a_server_that_is_away_is_told_and_the_ratings_wait(browser, survey):
    address, store = survey
    begin(browser, address)
    story = one(browser, "#story").text
    webdriver.ActionChains(browser).send_keys("2" * 11).perform()
    browser.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    one(browser, "#submit").click()
    until(lambda: "cannot be reached" in one(browser, "#notice").text)
    assert len(css(browser, "input:checked")) == 11
    before = len(store.sheet())
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {**offline, "offline": False})
    one(browser, "#submit").click()
    until(lambda: one(browser, "#story").text != story)
    assert len(store.sheet()) == before + 1
