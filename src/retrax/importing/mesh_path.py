"""Find the file that a robot's description means: relative, `file://`, `package://`, `model://`."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from retrax.errors import BadInput

Packages = Mapping[str, str | Path]
_SCHEMES = ("package://", "model://")


def find_mesh(name: str, description: Path, packages: Packages) -> Path:
    """Return the path of a mesh.

    A package is looked up in `packages`, then as a folder of that name above the description or
    beside one of the folders above it.

    **Raises:** `BadInput` with the places looked at.
    """
    scheme = next((s for s in _SCHEMES if name.startswith(s)), None)
    if scheme is not None:
        package, _, inside = unquote(name.removeprefix(scheme)).partition("/")
        candidates = [folder / inside for folder in _folders(package, description, packages)]
    elif name.startswith("file://"):
        candidates = [Path(unquote(name.removeprefix("file://")))]
    elif "://" in name:
        raise BadInput(f"the mesh {name!r} is not on this machine, and retrax fetches none.")
    else:
        candidates = [description.parent / name]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    looked = ", ".join(sorted({str(c) for c in candidates})[:3]) or "no folder of that package"
    hint = " Pass packages={name: folder}, or" if scheme else " Pass"
    raise BadInput(
        f"the mesh {name!r} is missing (looked at: {looked}).{hint} meshes=False to load the "
        "bodies without it."
    )


def _folders(package: str, description: Path, packages: Packages) -> list[Path]:
    if package in packages:
        return [Path(packages[package])]
    above = list(description.resolve().parents)
    return [f for f in above if f.name == package] + [f / package for f in above]
