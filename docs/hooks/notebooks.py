"""A link to its notebook on every page of the tutorial; the notebooks go with the site."""

import shutil
from pathlib import Path

_NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def on_page_content(content: str, page, **_) -> str:
    notebook = _NOTEBOOKS / f"{Path(page.file.src_uri).stem}.ipynb"
    if not page.file.src_uri.startswith("tutorial/") or not notebook.exists():
        return content
    link = f'<a href="../notebooks/{notebook.name}" download>This page as a notebook</a>'
    return f'{content}<p class="notebook">{link}</p>'


def on_post_build(config, **_) -> None:
    shutil.copytree(_NOTEBOOKS, Path(config.site_dir) / "notebooks", dirs_exist_ok=True)
