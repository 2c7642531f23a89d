"""Headless Chromium that knows no name of a host: what is not on this machine cannot be reached."""

import json
import shutil
from pathlib import Path

import pytest

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
WAIT = 60

_ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--window-size=1280,1000",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)  # fmt: skip


def start(profile: Path):
    """Starts a browser; whoever starts it quits it. Where there is none, the test is skipped."""
    if not (BROWSER and DRIVER):
        pytest.skip("there is no chromium and chromedriver on the PATH to click with")
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed: the extra 'browser' has it"
    )
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (*_ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


def until(browser, script: str, *arguments):
    """Waits for what a script returns to be true, and returns it."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, WAIT).until(lambda driver: driver.execute_script(script, *arguments))


def asked_elsewhere(browser) -> list[str]:
    """Addresses beyond this machine that pages have asked for since the last call."""
    messages = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    urls = [
        one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"
    ]
    return [url for url in urls if url.startswith(("http", "ws")) and "://127.0.0.1" not in url]


def narrow(browser, width: int) -> None:
    """Gives pages the width of a phone."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": True},
    )
