"""Pictures of a gallery for the documentation: `python tools/screenshots.py GALLERY FOLDER`.

Needs Playwright and a Chromium; `CHROMIUM` names one that is installed elsewhere.
"""

import os
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

# Name, page, width and height of the window in pixels, light or dark.
PICTURES = (
    ("gallery-index", "index.html", 960, 900, "light"),
    ("gallery-paper", "string-pendulum/index.html", 1000, 1300, "light"),
    ("gallery-dark", "nonholonomic/index.html", 1000, 1150, "dark"),
    ("gallery-phone", "kahan/index.html", 390, 844, "light"),
)


def main(gallery: Path, folder: Path) -> None:
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=os.environ.get("CHROMIUM"), args=["--no-sandbox"]
        )
        for name, page, width, height, scheme in PICTURES:
            window = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            errors: list[str] = []
            window.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
            window.goto((gallery / page).resolve().as_uri())
            path = folder / f"{name}.png"
            window.screenshot(path=path)
            wide = window.evaluate("document.documentElement.scrollWidth")
            assert not errors and wide <= width, f"{page}: {errors}, {wide} > {width}"
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
