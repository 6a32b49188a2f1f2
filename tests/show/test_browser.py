"""The page in a real browser: it opens offline, moves, listens to mouse, keys and small screens."""

import io
import os
import shutil
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from page_kinds import KINDS, million

from retrax.show.page import write_page

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
NEEDED = bool(os.environ.get("RETRAX_NEED_BROWSER"))
if CHROMIUM is None and not NEEDED:
    pytest.skip("no Chromium is installed (apt install chromium)", allow_module_level=True)

ORANGE, SKY, AMBER = (213, 94, 0), (86, 180, 233), (230, 159, 0)
# The clear colour of the canvas is that of its panel.
GROUND, DARK_GROUND = (247, 248, 250), (25, 31, 37)
# Kinds with an arrow (momentum or force) in the second colour of the palette.
ARROWS = ("body", "top", "ball", "string", "rods", "strings", "momentum", "torus", "plane")


@pytest.fixture(scope="session")
def browser():
    assert CHROMIUM is not None, "RETRAX_NEED_BROWSER is set, but no Chromium was found"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Files by kind, written when first asked for."""
    folder = tmp_path_factory.mktemp("pages")

    def file(kind: str) -> Path:
        path = folder / f"{kind}.html"
        return path if path.exists() else write_page(KINDS[kind](), path)

    return file


@pytest.fixture
def show(browser, pages):
    """Opens the page of a kind; at the end nothing must have gone wrong or over a network."""
    wrong, contexts = [], []

    def watch(message):
        # A picture of the canvas is read back from the graphics card, which drivers remark upon.
        if "ReadPixels" not in message.text:
            wrong.append(f"{message.type}: {message.text}")

    def open_page(kind: str, **settings):
        still = {"reduced_motion": "reduce"}  # or it plays by itself
        settings = {"viewport": {"width": 1000, "height": 600}, **still, **settings}
        contexts.append(browser.new_context(**settings))
        tab = contexts[-1].new_page()
        tab.on("console", watch)
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("request", lambda request: wrong.append(request.url) if outside(request) else None)
        tab.goto(pages(kind).as_uri())
        tab.wait_for_function("performance.getEntriesByName('retrax-ready').length")
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong


def outside(request) -> bool:
    return not request.url.startswith(("file:", "data:", "blob:"))


def picture(tab) -> np.ndarray:
    """The canvas as it is seen, in 8-bit colours."""
    tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    shot = matplotlib.image.imread(io.BytesIO(tab.locator("#scene").screenshot()), format="png")
    return np.round(255 * shot[..., :3]).astype(int)


def differing(one: np.ndarray, other: np.ndarray) -> float:
    """The part of the picture that is not the same."""
    return float(np.mean(np.max(np.abs(one - other), axis=2) > 24))


def like(image: np.ndarray, colour: tuple[int, int, int]) -> int:
    """How many points have the hue of a colour, in light or in shade."""
    shade = np.linalg.norm(image, axis=2)
    direction = image / np.maximum(shade, 1)[..., None]
    wanted = np.array(colour) / np.linalg.norm(colour)
    return int(np.sum((direction @ wanted > 0.995) & (shade > 80)))


def scrub(tab, part: float) -> None:
    tab.evaluate(
        """(part) => {
          const slider = document.getElementById("time");
          slider.value = Number(slider.min) + part * (slider.max - slider.min);
          slider.dispatchEvent(new Event("input"));
        }""",
        part,
    )


def clock(tab) -> float:
    return float(tab.locator("#clock").inner_text().split()[0])


def marks(tab) -> list[float]:
    """Where the lines of the time stand in the plots, in pixels."""
    places = tab.evaluate(
        "[...document.querySelectorAll('.mark')].map((m) => m.getBoundingClientRect().x)"
    )
    return [float(x) for x in places]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_and_moves(show, kind):
    tab = show(kind)
    first = picture(tab)
    drawn = np.mean(np.max(np.abs(first - GROUND), axis=2) > 24)
    assert 0.005 < drawn < 0.8, f"{drawn:.1%} of the canvas is drawn"
    if kind in ARROWS:
        scrub(tab, 0.4)
        assert like(picture(tab), ORANGE) > 40
    scrub(tab, 0.6)
    assert differing(first, picture(tab)) > 0.001
    assert tab.locator(".plot canvas").count() > 1


def test_a_page_of_a_million_states_opens_at_once(browser, tmp_path):
    """By processor time of the page, for the machine may be busy with other tests."""
    path = write_page(million(), tmp_path / "million.html")
    context = browser.new_context(viewport={"width": 1000, "height": 600})
    tab = context.new_page()
    meter = context.new_cdp_session(tab)
    meter.send("Performance.enable", {"timeDomain": "threadTicks"})
    tab.goto(path.as_uri())
    tab.wait_for_function("performance.getEntriesByName('retrax-ready').length")
    spent = {m["name"]: m["value"] for m in meter.send("Performance.getMetrics")["metrics"]}
    first = picture(tab)
    scrub(tab, 0.9)
    assert spent["TaskDuration"] < 3 and differing(first, picture(tab)) > 0.001
    context.close()


def test_a_page_plays_by_itself_unless_less_motion_is_asked_for(show):
    moving = show("top", reduced_motion="no-preference")
    moving.wait_for_function("parseFloat(document.getElementById('clock').textContent) > 0.3")
    assert moving.inner_text("#play") == "Pause"
    still = show("top")
    still.wait_for_timeout(150)
    assert clock(still) == 0 and still.inner_text("#play") == "Play"


def test_plots_say_what_their_axis_is(show):
    drawn = """() => { const seen = [];
      const write = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (...words) {
        seen.push(words[0]); return write.apply(this, words); };
      document.getElementById("theme").click();
      return new Promise((done) => setTimeout(() => done(seen), 300)); }"""
    words = show("top").evaluate(drawn)
    assert "time (s)" in words


def test_bodies_throw_shadows_on_what_lies_below(show):
    """Pixels of the ground that are darker than the panel, and as grey as it."""
    seen = picture(show("disk")).reshape(-1, 3).astype(int)
    grey = np.ptp(seen - np.array(GROUND), axis=1) < 8
    shaded = grey & (seen[:, 0] > 180) & (seen[:, 0] < 205)
    assert np.sum(shaded) > 400  # 1165 measured, and 49 without shadows


def test_play_goes_on_in_time_and_pause_stops_it(show):
    tab = show("rods")
    before = picture(tab)
    tab.click("#play")
    tab.wait_for_function("parseFloat(document.getElementById('clock').textContent) > 0.5")
    tab.click("#play")
    stopped, placed = clock(tab), marks(tab)
    assert stopped > 0.5 and differing(before, picture(tab)) > 0.001
    tab.wait_for_timeout(150)
    assert clock(tab) == stopped and marks(tab) == placed


def test_a_click_in_a_plot_moves_the_time_of_all(show):
    tab = show("disk")
    start = marks(tab)
    area = tab.locator(".plot .u-over").nth(1).bounding_box()
    tab.mouse.click(area["x"] + 0.75 * area["width"], area["y"] + area["height"] / 2)
    assert abs(clock(tab) - 3.0) < 0.05
    assert all(new > old + 100 for new, old in zip(marks(tab), start, strict=True))
    values = tab.locator(".values b").all_inner_texts()
    assert values and all(text != "" for text in values)


def test_keys_do_all_that_the_mouse_does(show):
    tab = show("body")
    before = picture(tab)
    tab.focus("#scene")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("+")
    turned = picture(tab)
    assert differing(before, turned) > 0.01
    tab.keyboard.press("0")
    assert differing(before, picture(tab)) < 0.001
    tab.keyboard.press(".")
    assert abs(clock(tab) - 0.1) < 1e-6
    tab.keyboard.press(",")
    tab.keyboard.press("Space")
    tab.wait_for_function("document.getElementById('play').textContent === 'Pause'")
    tab.keyboard.press("Space")
    tab.focus("#time")
    was = clock(tab)
    tab.keyboard.press("ArrowRight")
    assert clock(tab) > was
    tab.locator(".area").first.focus()
    was = clock(tab)
    tab.keyboard.press("ArrowLeft")
    assert clock(tab) < was


def test_the_mouse_turns_the_view_and_the_wheel_comes_nearer(show):
    tab = show("disk")
    before = picture(tab)
    box = tab.locator("#scene").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + 120, y + 30, steps=4)
    tab.mouse.up()
    turned = picture(tab)
    assert differing(before, turned) > 0.01
    tab.mouse.wheel(0, -600)
    assert differing(turned, picture(tab)) > 0.01
    tab.click("#reset")
    assert differing(before, picture(tab)) < 0.001


def test_a_phone_shows_all_of_it_without_scrolling_sideways(show):
    phone = {"width": 360, "height": 740}
    tab = show("string", viewport=phone, has_touch=True, is_mobile=True, device_scale_factor=2)
    wide = tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide[0] <= wide[1] == 360
    small = tab.evaluate(
        """[...document.querySelectorAll("button, select, #time")]
          .filter((e) => e.offsetParent && Math.min(e.offsetWidth, e.offsetHeight) < 24).length"""
    )
    assert small == 0
    before = picture(tab)
    tab.tap("#on")
    assert clock(tab) > 0 and before.shape[1] > 300


CONTRAST = """() => {
  const channel = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (text) => {
    const [r, g, b] = numbers(text).map((v) => channel(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const paint = getComputedStyle(e).backgroundColor;
      if (paint !== "rgba(0, 0, 0, 0)") return paint;
    }
    return "rgb(255, 255, 255)";
  };
  const worst = [21, ""];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.offsetParent || e.closest("script, style, noscript")) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((p, q) => q - p);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < worst[0]) worst.splice(0, 2, ratio, e.outerHTML.slice(0, 80));
  }
  return worst;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_in_light_and_dark(show, scheme):
    tab = show("failed", color_scheme=scheme, reduced_motion="reduce")
    ratio, where = tab.evaluate(CONTRAST)
    assert ratio >= 4.5, where
    ground = DARK_GROUND if scheme == "dark" else GROUND
    image = picture(tab)
    assert tuple(image[2, 2]) == ground
    tab.click("#theme")
    assert tuple(picture(tab)[2, 2]) == (GROUND if scheme == "dark" else DARK_GROUND)
    assert tab.evaluate(CONTRAST)[0] >= 4.5
    scrub(tab, 0.4)
    assert like(picture(tab), AMBER if scheme == "light" else ORANGE) > 40


def test_everything_that_can_be_used_has_a_name(show):
    tab = show("body")
    nameless = tab.evaluate(
        """[...document.querySelectorAll("button, input, select, canvas#scene, [role=slider]")]
          .filter((e) => !e.getAttribute("aria-label") && !e.textContent.trim())
          .filter((e) => !e.labels?.length)
          .map((e) => e.outerHTML)"""
    )
    assert nameless == []
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    width = tab.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert width == "3px"


def test_how_to_run_it_again_is_copied(show):
    tab = show("body", permissions=["clipboard-read", "clipboard-write"])
    tab.click(".copy >> nth=0")
    tab.wait_for_function("document.querySelector('.copy').textContent === 'Copied'")
    assert "rx.simulate(system" in tab.evaluate("navigator.clipboard.readText()")


def test_a_run_that_stopped_says_so_first(show):
    tab = show("failed")
    said = tab.locator("[role=alert]").inner_text()
    assert "stopped after 40 of 100 steps, at t = 4 s" in said and "did not converge" in said
