"""The pages in Chromium, as people with eyes, keyboards and screen readers meet them.

Needs Playwright for Python (``pip install playwright``) and a Chromium: Debian's, or Playwright's own.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from app_example.site import create_app
from tests.app_example.served import served
from tests.app_example.visitor import PASSWORD
from throttle import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from app_example.settings import Settings

playwright_api = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")

ARGUMENTS = [
    "--no-sandbox",  # runs as root in a container
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PAGES = {
    "front": "/",
    "paper": "/paper/1",
    "long list of posters": "/paper/2900",
    "tag": "/tag/h-index",
    "tags": "/tags",
    "user": "/user/loet-leydesdorff",
    "users": "/users",
    "related": "/user/tom-barclay/related",
    "search": "/search?q=%22open+access%22",
    "nothing found": "/search?q=zzzzzz",
    "web api": "/web-api",
    "log in": "/log-in",
    "sign up": "/sign-up",
    "post": "/post?address=https://example.org/" + "long" * 40,
    "change": "/post?paper=2987",
    "account": "/account",
    "own page": "/user/ada",
    "own paper": "/paper/2987",
    "error": "/nothing",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with playwright_api.sync_playwright() as playwright:
        if path is None and not os.path.exists(playwright.chromium.executable_path):
            pytest.skip("no Chromium is installed (on Debian: apt install chromium)")
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def address(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    own = type(settings)(data=tmp_path_factory.mktemp("browser"), secret=settings.secret)
    own.database.write_bytes(settings.database.read_bytes())
    with served(create_app(own, throttled=False)) as address:
        yield address


@pytest.fixture(scope="module")
def logged_in(browser: Browser, address: str) -> Any:
    """Ada signs up, posts a paper and makes a token, by keyboard and mouse; the state of her browser."""
    context = browser.new_context(base_url=address)
    page = context.new_page()
    page.goto("/post")
    page.get_by_role("link", name="Sign up").click()
    page.get_by_label("User name").fill("ada")
    page.get_by_label("Full name").fill("Ada Lovelace")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_label("Address or DOI").fill("10.9999/" + "a-long-doi-" * 12)
    page.get_by_label("Title").fill("On the analytical engine")
    page.get_by_label("Tags").fill("looms, " + "y" * 60)
    page.get_by_label("Comment").fill("Worth reading.\nTwice.")
    page.get_by_role("button", name="Post").click()
    page.get_by_role("heading", name="On the analytical engine").wait_for()
    page.goto("/account")
    page.get_by_label("A token for").fill("w" * 60)
    page.get_by_role("button", name="Make a token").click()
    page.get_by_text("shown this once only").wait_for()
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def visit(browser: Browser, address: str, **context: Any) -> Page:
    page = browser.new_context(base_url=address, reduced_motion="reduce", **context).new_page()
    page.set_default_timeout(10_000)
    return page


def test_no_page_loads_from_elsewhere_or_breaks_its_own_policy(browser: Browser, address: str, logged_in: Any) -> None:
    page = visit(browser, address, storage_state=logged_in)
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: faults.append(request.url) if not request.url.startswith(address) else None)
    for name, path in PAGES.items():
        page.goto(path)
        if name != "error":  # a browser notes each 404 as an error
            assert not [fault for fault in faults if not fault.startswith("data:")], path
        faults.clear()
    page.context.close()


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_no_page_is_wider_than_the_window(browser: Browser, address: str, logged_in: Any, width: int) -> None:
    page = visit(browser, address, storage_state=logged_in, viewport={"width": width, "height": 800})
    for path in PAGES.values():
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    page.context.close()


# Contrast as WCAG 2.2 counts it (1.4.3): 4.5, or 3 for large or large bold text.
LOW_CONTRAST = """() => {
  const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const rgba = color => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const color = rgba(getComputedStyle(element).backgroundColor);
      if (color[3] === 255) return color;
    }
    return rgba(getComputedStyle(document.documentElement).colorScheme.includes('dark') ? 'black' : 'white');
  };
  const faults = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; text = texts.nextNode();) {
    const element = text.parentElement;
    if (!text.data.trim() || !element.checkVisibility() || element.closest('.unseen, .skip')) continue;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const [one, other] = [luminance(rgba(style.color)), luminance(behind(element))].sort((a, b) => b - a);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const contrast = (one + 0.05) / (other + 0.05);
    if (contrast < least) faults.push(`${contrast.toFixed(2)} ${element.tagName} ${text.data.trim().slice(0, 40)}`);
  }
  return faults;
}"""


def test_all_text_has_contrast_enough(browser: Browser, address: str, logged_in: Any, scheme: Any) -> None:
    page = visit(browser, address, storage_state=logged_in, color_scheme=scheme)
    for path in PAGES.values():
        page.goto(path)
        assert page.evaluate(LOW_CONTRAST) == [], path
    page.context.close()


# What a screen reader goes by: landmarks, headings without a gap, names for all that can be used, no id twice.
STRUCTURE_FAULTS = """() => {
  const faults = [], all = selector => [...document.querySelectorAll(selector)];
  const count = (selector, n) => { if (all(selector).length !== n) faults.push(`${all(selector).length} ${selector}`) };
  count('body > header', 1); count('main', 1); count('body > footer', 1); count('h1', 1); count('[role=search]', 1);
  let level = 0;
  for (const heading of all('h1, h2, h3, h4, h5, h6')) {
    const next = +heading.tagName[1];
    if (next > level + 1) faults.push(`h${level} is followed by h${next}: ${heading.innerText}`);
    level = next;
  }
  const ids = all('[id]').map(element => element.id);
  for (const id of ids.filter((id, place) => ids.indexOf(id) !== place)) faults.push(`twice: #${id}`);
  for (const attribute of ['aria-labelledby', 'aria-describedby', 'for'])
    for (const element of all(`[${attribute}]`))
      for (const id of element.getAttribute(attribute).split(' '))
        if (!document.getElementById(id)) faults.push(`${attribute} points nowhere: ${id}`);
  for (const field of all('input:not([type=hidden], [type=submit]), textarea, select'))
    if (!field.labels?.length && !field.ariaLabel) faults.push(`no label: ${field.name}`);
  for (const element of all('a, button')) if (!element.textContent.trim()) faults.push(`no name: ${element.outerHTML}`);
  for (const element of all('img:not([alt])')) faults.push(`no alt: ${element.src}`);
  for (const element of all('nav')) if (!element.ariaLabel) faults.push('a nav without a name');
  for (const element of all('th')) if (!element.scope) faults.push('a th without a scope');
  if (!document.documentElement.lang) faults.push('no language');
  if (!document.title.includes('Papers')) faults.push('no title');
  return faults;
}"""


def test_a_screen_reader_finds_landmarks_headings_and_names(browser: Browser, address: str, logged_in: Any) -> None:
    page = visit(browser, address, storage_state=logged_in)
    for path in PAGES.values():
        page.goto(path)
        assert page.evaluate(STRUCTURE_FAULTS) == [], path
    page.context.close()


def test_the_first_tab_leads_past_the_header(browser: Browser, address: str) -> None:
    page = visit(browser, address)
    page.goto("/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    assert skip.evaluate("element => element === document.activeElement")
    box = skip.bounding_box()
    assert box
    assert box["x"] >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    page.context.close()


FOCUS = """() => {
  const looks = element => {
    const style = getComputedStyle(element);
    const border = parseFloat(style.borderTopWidth) ? style.borderColor : '';
    const outline = style.outlineStyle === 'none' ? '' : [style.outlineStyle, style.outlineWidth, style.outlineColor];
    return [outline, style.boxShadow, border].join();
  };
  const element = document.activeElement, focused = looks(element);
  element.blur();
  const plain = looks(element);
  element.focus({focusVisible: true});
  return {name: element.outerHTML.slice(0, 80), isSeen: focused !== plain};
}"""


@pytest.mark.parametrize("path", ["/", "/log-in", "/account"])
def test_every_stop_of_the_tab_key_can_be_seen(
    browser: Browser, address: str, logged_in: Any, scheme: Any, path: str
) -> None:
    page = visit(browser, address, color_scheme=scheme, **({} if path == "/log-in" else {"storage_state": logged_in}))
    page.goto(path)
    for _ in range(14):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS)
        assert stop["isSeen"], stop["name"]
    page.context.close()


def test_a_fault_in_a_form_is_said_where_it_is(browser: Browser, address: str, logged_in: Any) -> None:
    page = visit(browser, address, storage_state=logged_in)
    page.goto("/post")
    page.get_by_label("Address or DOI").fill("nowhere")
    page.get_by_role("button", name="Post").click()
    page.get_by_role("alert").wait_for()
    field = page.get_by_label("Address or DOI")
    assert field.get_attribute("aria-invalid") == "true"
    described = (field.get_attribute("aria-describedby") or "").split()
    assert "begins with http" in page.locator(f"#{described[0]}").inner_text()
    assert field.input_value() == "nowhere"
    page.context.close()


def test_logging_out_by_keyboard(browser: Browser, address: str) -> None:
    page = visit(browser, address)
    page.goto("/sign-up")
    page.get_by_label("User name").fill("grace")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="grace").click()
    page.get_by_role("button", name="Log out", exact=True).press("Enter")
    page.get_by_role("link", name="Log in").wait_for()
    page.context.close()


def test_somebody_who_is_refused_is_served_by_the_same_page_a_moment_later(
    browser: Browser, own_settings: Settings
) -> None:
    with served(create_app(own_settings, limits=Limits(stack_seconds=2.0, stack_hits=1))) as address:
        page = visit(browser, address, viewport={"width": 360, "height": 640})
        status = 200
        for _ in range(40):
            answer = page.goto("/tags")
            assert answer
            if (status := answer.status) == 503:
                break
        assert status == 503
        page.get_by_role("heading", name="One moment, please").wait_for()
        assert page.evaluate(LOW_CONTRAST) == []
        page.get_by_role("heading", name="Tags").wait_for()  # nobody pressed anything
        page.context.close()
