"""The mathematics font of the site and of the gallery: STIX Two Math, cut to what formulas use.

    npm pack @fontsource/stix-two-math@5.3.0 && tar xzf fontsource-stix-two-math-5.3.0.tgz
    python tools/math_font.py package docs/assets/math-font

It needs fonttools and brotli. Letters, Greek, the alphabets of mathematics, operators and arrows
stay, and with them what the MATH table stretches.
"""

import shutil
import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

_KEPT = (
    (0x20, 0x7E),  # Latin
    (0xA0, 0xFF),
    (0x131, 0x131),
    (0x237, 0x237),
    (0x2C6, 0x2DD),  # accents
    (0x300, 0x338),
    (0x391, 0x3F6),  # Greek
    (0x2010, 0x2057),  # dashes, primes
    (0x2061, 0x2064),
    (0x20D0, 0x20DC),
    (0x2102, 0x2134),  # letterlike
    (0x2190, 0x21FF),  # arrows
    (0x2200, 0x22FF),  # operators
    (0x2308, 0x230B),
    (0x23B4, 0x23B5),
    (0x23DC, 0x23E1),
    (0x25A1, 0x25CB),
    (0x27C2, 0x27C2),
    (0x27E8, 0x27EB),
    (0x27F5, 0x27FF),
    (0x2A00, 0x2A06),
    (0x2A7D, 0x2A7E),
    (0x1D400, 0x1D59F),  # bold, italic, script, fraktur, double-struck
    (0x1D6A4, 0x1D755),  # Greek, bold and italic
)


def main(package: Path, folder: Path) -> None:
    """Write the font and its licence."""
    font = TTFont(package / "files" / "stix-two-math-latin-400-normal.woff")
    options = Options()
    options.layout_features = ["ssty", "kern", "mark", "mkmk"]
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=[code for a, b in _KEPT for code in range(a, b + 1)])
    subsetter.subset(font)
    font.flavor = "woff2"
    folder.mkdir(parents=True, exist_ok=True)
    font.save(folder / "stix-two-math.woff2")
    shutil.copyfile(package / "LICENSE", folder / "LICENSE.txt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
