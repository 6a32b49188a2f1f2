"""Pictures of run pages for the documentation, taken in headless Chromium.

    python docs/screenshots.py [NAME ...]

simulates the cases below (or those named) for a short time, writes their pages to a temporary
folder and takes a picture of each into docs/assets/pages. It needs Chromium and Playwright.
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import retrax as rx
from retrax.systems.catalogue import CASES
from retrax.systems.integrators import INTEGRATORS, TOUCHING

FOLDER = Path(__file__).parent / "assets" / "pages"
WIDE, PHONE = {"width": 1180, "height": 760}, {"width": 390, "height": 844}
# The case of each picture, steps, steps between saved states, and the part of the time to show.
SHOTS = {
    "body": ("free-rigid-body", 2000, 4, 0.3),
    "top": ("heavy-top", 2000, 4, 0.3),
    "disk": ("rolling-disk", 700, 2, 0.6),
    "sleigh": ("chaplygin-sleigh", 600, 2, 0.35),
    "ball": ("chaplygin-ball", 400, 1, 0.6),
    "turntable": ("turntable", 1200, 4, 0.4),
    "string-pendulum": ("string-pendulum", 10_000, 20, 0.75),
    "rod": ("rod", 400, 2, 0.5),
    "rods-in-contact": ("rods-in-contact", 400, 1, 0.7),
    "strings-in-contact": ("strings-in-contact", 400, 1, 0.6),
    "momentum-sphere": ("euler-top", 600, 1, 0.4),
    "orbit": ("predator-prey", 300, 1, 0.4),
    "canonical": ("henon-heiles", 1000, 1, 0.4),
    "sphere": ("body-on-sphere", 600, 1, 0.4),
    "torus": ("kuramoto", 400, 1, 0.4),
    "plane": ("subspace-flow", 400, 1, 0.2),
    "matrix": ("toda", 300, 1, 0.3),
    "bricard": ("bricard", 800, 4, 0.3),
    "bicycle": ("bicycle", 800, 4, 0.3),
    "strandbeest-leg": ("strandbeest-leg", 800, 2, 0.3),
}
TO_TIME = """(part) => {
  const slider = document.getElementById("time");
  slider.value = Number(slider.min) + part * (slider.max - slider.min);
  slider.dispatchEvent(new Event("input"));
}"""


def simulated(case: str, steps: int, every: int) -> rx.Trajectory:
    """A short run of a case."""
    chosen = CASES[case]
    system, state, h, _ = chosen.make()
    method = (INTEGRATORS | TOUCHING)[chosen.integrator]
    run = rx.simulate(system, method, state, h=h, steps=steps, save_every=every, progress=False)
    run.provenance["case"] = case
    return run


def shoot(browser: Browser, page: Path, picture: Path, part: float, **settings) -> None:
    """A picture of a page at a part of its time."""
    context = browser.new_context(**settings)
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_function("performance.getEntriesByName('retrax-ready').length")
    tab.evaluate(TO_TIME, part)
    tab.wait_for_timeout(400)
    shot = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
    shot.quantize(128, method=Image.Quantize.MEDIANCUT).save(picture, optimize=True)
    context.close()
    print(f"{picture} {picture.stat().st_size:,} bytes")


def main(names: list[str]) -> None:
    """All pictures, or those named."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name in names or SHOTS:
            case, steps, every, part = SHOTS[name]
            page = simulated(case, steps, every).report(Path(folder) / f"{name}.html")
            shoot(browser, page, FOLDER / f"{name}.png", part, viewport=WIDE)
            if name in ("top", "bricard"):
                beside = "" if name == "top" else f"{name}-"
                shoot(
                    browser,
                    page,
                    FOLDER / f"{beside}dark.png",
                    part,
                    viewport=WIDE,
                    color_scheme="dark",
                )
                phone = {"viewport": PHONE, "is_mobile": True, "has_touch": True}
                shoot(browser, page, FOLDER / f"{beside}phone.png", part, **phone)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
