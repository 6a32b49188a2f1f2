"""The gallery of examples: the docstring, the picture and the code of each script."""

import ast
import re
from pathlib import Path

_EXAMPLES = Path(__file__).parents[2] / "examples"
_PLACE = re.compile(r"<!-- example: (\w+) -->")


def on_page_markdown(markdown: str, **_) -> str:
    return _PLACE.sub(lambda match: _shown(match[1]), markdown)


def _shown(name: str) -> str:
    source = (_EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    module = ast.parse(source)
    title, _, text = (ast.get_docstring(module) or "").partition("\n\n")
    start = module.body[1].lineno  # what follows the docstring
    code = "\n".join(source.splitlines()[start - 1 :])
    indented = "\n".join(f"    {line}".rstrip() for line in code.splitlines())
    return "\n\n".join(
        [
            f"## {title.rstrip('.')}",
            text,
            f"![{title}](examples/{name}.png)",
            f'??? example "examples/{name}.py"\n\n    ```python\n{indented}\n    ```',
        ]
    )
