"""Figures of a gallery for the pages on the papers: `python tools/paper_pictures.py GALLERY`.

    retrax reproduce all -o gallery
    python tools/paper_pictures.py gallery

copies the figures that docs/papers shows, those of the papers that the gallery has, with fewer
colours. Make the gallery without `--quick`: the pages quote the numbers of the full runs.
"""

import sys
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).parents[1] / "docs" / "papers"
# The picture of the documentation, and the figure of the gallery.
PICTURES = {
    "figure-1": "nonholonomic/figure-1",
    "figure-2": "nonholonomic/figure-2",
    "orders": "nonholonomic/orders",
    "kahan-orbits": "kahan/orbits",
    "kahan-orders": "kahan/orders",
    "kahan-poles": "kahan/poles",
    "kahan-predators": "kahan/predators",
    "pseudospectral-pendulum": "pseudospectral/figure-6",
    "pseudospectral-energy": "pseudospectral/energy",
    "pseudospectral-convergence": "pseudospectral/convergence",
    "string-figure-2": "string-pendulum/figure-2",
    "string-figure-3": "string-pendulum/figure-3",
    "string-growth": "string-pendulum/growth",
    "string-long-run": "string-pendulum/long-run",
    "rods-contact-force": "rods/contact-force",
    "rods-sliding": "rods/sliding",
    "strings-figure-2": "rods/figure-2",
    "strings-spectra": "rods/spectra",
    "strings-exponents": "rods/exponents",
}


def main(gallery: Path) -> None:
    """Copy what is there."""
    for name, source in PICTURES.items():
        path = gallery / f"{source}.png"
        if not path.exists():
            print(f"{path} is not there: docs/papers/{name}.png is left as it is")
            continue
        picture = Image.open(path).convert("RGB")
        picture.quantize(256, method=Image.Quantize.MEDIANCUT).save(
            FOLDER / f"{name}.png", optimize=True
        )
        print(f"{name}.png from {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
