"""Make the pictures of `figures.md` again, by running the code that stands on that page."""

import os
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent


def main() -> None:
    page = (DOCS / "figures.md").read_text(encoding="utf-8")
    folder = DOCS / "assets" / "figures"
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    namespace: dict = {"__name__": "page"}
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S):
        exec(compile(block, "<figures.md>", "exec"), namespace)
    print(f"The pictures are in {folder}.")


if __name__ == "__main__":
    main()
