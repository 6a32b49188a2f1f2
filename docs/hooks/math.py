"""Formulas as MathML, written when the pages are built: no script, no font, no network."""

import html
import re
import unicodedata

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.exceptions import PluginError

# What pymdownx.arithmatex leaves behind with `generic: true`.
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)

# Browsers ignore `mathvariant`; the letters themselves exist in Unicode.
_VARIANT = re.compile(r'<mi mathvariant="(fraktur|double-struck)">([A-Za-z])</mi>')
_LETTERS = {
    "fraktur": ("MATHEMATICAL FRAKTUR", "BLACK-LETTER"),
    "double-struck": ("MATHEMATICAL DOUBLE-STRUCK", "DOUBLE-STRUCK"),
}


class _OwnParagraph(Preprocessor):
    """A displayed formula may follow its sentence without an empty line, as in LaTeX."""

    def run(self, lines: list[str]) -> list[str]:
        spaced, inside = [], False
        for line in lines:
            opens = not inside and line.startswith("$$")
            inside = opens or inside
            closes = inside and line.rstrip().endswith("$$") and line.strip() != "$$" * opens
            spaced += ["", line] if opens else [line]
            if closes:
                spaced.append("")
                inside = False
        return spaced


class _DisplayedFormulas(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.register(_OwnParagraph(md), "displayed-formulas", 20)


def on_config(config):
    config.markdown_extensions.append(_DisplayedFormulas())
    return config


def on_page_content(content: str, **_) -> str:
    content = _DISPLAY.sub(lambda match: _mathml(match[1], "block"), content)
    return _INLINE.sub(lambda match: _mathml(match[1], "inline"), content)


def _mathml(latex: str, display: str) -> str:
    latex = html.unescape(latex).strip()
    latex = latex.replace("{aligned}", "{align*}")  # the same thing inside a display
    latex = re.sub(r"\\tag\{(.*?)\}", r"\\qquad\\text{(\1)}", latex)
    latex = re.sub(r"(\\begin\{[^}]*\}\s*)\[", r"\1{}[", latex)  # a bracket, not an option
    try:
        mathml = convert(latex, display=display)
    except Exception as cause:
        raise PluginError(f"A formula cannot be converted to MathML: {latex}") from cause
    return _VARIANT.sub(_letter, mathml)


def _letter(match: re.Match) -> str:
    variant, letter = match[1], match[2]
    case = "CAPITAL" if letter.isupper() else "SMALL"
    for alphabet in _LETTERS[variant]:
        try:
            return f"<mi>{unicodedata.lookup(f'{alphabet} {case} {letter.upper()}')}</mi>"
        except KeyError:
            continue
    return match[0]
