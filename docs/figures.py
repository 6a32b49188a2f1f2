"""Make the pictures of some pages again, by running the code that stands on them."""

import os
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent
# Pages, and the folders of their pictures.
PAGES = {
    "figures.md": "figures",
    "howto/spacecraft.md": "control",
    "tutorial/closing-a-loop.md": "control",
    "string.md": "control",
}


def main() -> None:
    for name, pictures in PAGES.items():
        page = (DOCS / name).read_text(encoding="utf-8")
        folder = DOCS / "assets" / pictures
        folder.mkdir(exist_ok=True)
        os.chdir(folder)
        namespace: dict = {"__name__": "page"}
        for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S):
            exec(compile(block, f"<{name}>", "exec"), namespace)
        print(f"The pictures of {name} are in {folder}.")


if __name__ == "__main__":
    main()
