"""Symbols and numbers in plain text, set as mathematics: MathML that browsers draw themselves."""

import html
import re

_GREEK = {
    **dict(alpha="α", beta="β", gamma="γ", delta="δ", epsilon="ε", theta="θ", kappa="κ"),
    **{"lambda": "λ", "mu": "μ", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ"},
    **dict(phi="φ", omega="ω", Gamma="Γ", Lambda="Λ", Omega="Ω", Pi="Π", Theta="Θ"),
}
_NAMES = "|".join(_GREEK)
_CODE = re.compile(r"`([^`]+)`")
_TOKEN = re.compile(
    rf"(?P<number>(?<![\w.])[-+]?\d[\d.]*)e(?P<power>[-+]?\d+)\b"
    rf"|(?P<unit>(?<=[\d /])(?:kg|m|s|N|J))\^(?P<square>[23])\b"
    rf"|(?<![\w.])(?P<letter>{_NAMES}|[A-Za-z])(?:_(?P<below>\w+(?:\+1)?))?"
    rf"(?:\^(?P<above>-?\w+|\([^()]*\)))?(?![\w'])"
    rf"|(?P<root>\bsqrt\()|(?P<least><=)|(?P<most>>=)"
)


def set_as_mathematics(text: str) -> str:
    """HTML of a text: `code` marked, powers of ten, Greek letters, indices and powers as MathML."""
    parts = _CODE.split(text)
    return "".join(
        f"<code>{html.escape(part)}</code>" if k % 2 else _set(part) for k, part in enumerate(parts)
    )


def _set(text: str) -> str:
    out, at = [], 0
    for match in _TOKEN.finditer(text):
        out += [html.escape(text[at : match.start()]), _token(match)]
        at = match.end()
    return "".join([*out, html.escape(text[at:])])


def _token(match: re.Match[str]) -> str:
    if match["number"]:
        power = str(int(match["power"])).replace("-", "−")
        ten = f"<msup><mn>10</mn><mn>{power}</mn></msup>"
        return f"<math>{_number(match['number'])}<mo>·</mo>{ten}</math>"
    if match["unit"]:
        return match["unit"] + "²³"[int(match["square"]) - 2]
    if match["root"]:
        return "√("
    if match["least"] or match["most"]:
        return "≤" if match["least"] else "≥"
    letter, below, above = match["letter"], match["below"], match["above"]
    if letter not in _GREEK and not below and not above:
        return html.escape(match[0])  # a letter alone may be a word
    base = f"<mi>{_GREEK.get(letter, letter)}</mi>"
    under, over = (_script(below), _script(above))
    if below and above:
        return f"<math><msubsup>{base}{under}{over}</msubsup></math>"
    if below or above:
        kind = "msub" if below else "msup"
        return f"<math><{kind}>{base}{under or over}</{kind}></math>"
    return f"<math>{base}</math>"


def _script(text: str | None) -> str:
    if not text:
        return ""
    pieces = re.findall(r"\d+|[A-Za-z]+|[-+]|\S", text.strip("()"))
    row = "".join(
        _number(p)
        if p.isdigit()
        else f"<mo>{p.replace('-', '−')}</mo>"
        if not p.isalpha()
        else f"<mi>{_GREEK.get(p, p)}</mi>"
        for p in pieces
    )
    return row if len(pieces) == 1 else f"<mrow>{row}</mrow>"


def _number(text: str) -> str:
    sign = {"-": "<mo>−</mo>", "+": "<mo>+</mo>"}.get(text[0], "")
    return f"{sign}<mn>{text.lstrip('+-')}</mn>"
