"""Numbers as the pages of the documentation write them, and whether a page has them."""

from pathlib import Path

PAPERS = Path(__file__).parents[2] / "docs" / "papers"


def latex(value: float, digits: int) -> str:
    r"""`-2.60\times10^{-5}`; without the factor where it is 1."""
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa}\times{power}"


def number(text: str) -> float:
    """What `latex` wrote, or a plain number."""
    mantissa, _, power = text.partition("10^{")
    if not power:
        return float(text)
    return float(mantissa.removesuffix(r"\times") or 1) * 10.0 ** int(power.rstrip("}"))


def missing(page: str, numbers: list[str]) -> list[str]:
    """Those of the numbers that the page does not have."""
    text = (PAPERS / page).read_text()
    return [number for number in numbers if number not in text]
