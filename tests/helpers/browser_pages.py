"""Pages in Debian's Chromium, driven by Playwright."""

import shutil
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--autoplay-policy=no-user-gesture-required",
]
PATIENCE = 60_000  # milliseconds; only ever used up when something is broken
JOB_PATIENCE = 5 * PATIENCE  # a job lets other programs go first
WIDTHS = {"wide": (1440, 900), "narrow": (390, 844)}


def _with_place(said):
    """A message of the console, with the address that it is about."""
    return f"{said.text} {said.location.get('url', '')}"


@contextmanager
def opened_page(browser, width="wide", *, scheme="light", expected=()):
    """A page in a fresh profile; at the end, it must have had no error but the expected ones."""
    wide, high = WIDTHS[width]
    window = {"viewport": {"width": wide, "height": high}, "color_scheme": scheme}
    context = browser.new_context(**window, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    bad = ("error", "warning")
    page.on("console", lambda said: said.type in bad and errors.append(_with_place(said)))
    try:
        yield page
        scrolled = page.evaluate("document.documentElement.scrollWidth")
        assert scrolled <= wide, f"the page is {scrolled} pixels wide in a window of {wide}"
        unexpected = [error for error in errors if not any(word in error for word in expected)]
        assert not unexpected, unexpected
    finally:
        context.close()
