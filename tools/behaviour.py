"""Compare what two versions of retrax compute, to the bit: states, machine code and exported C.

`python tools/behaviour.py before.json` writes a ledger; after a change that must not change a bit,
`python tools/behaviour.py after.json --against before.json` lists what differs. A ledger is good
for one machine and one set of versions: machine code follows the processor.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

STEPS = 64
# Each case runs with its own integrator, and these with others.
OTHERS = {
    "free-rigid-body": ["lie-verlet-exp", "cotangent-lift-s0", "rkmk-5", "taylor-4"],
    "heavy-top": ["composition-8", "collocation-4", "collocation-centred-4", "rkmk-4"],
    "pendulum3d": ["tangent-lift", "retraction-flow", "galerkin-4", "discrete-gradient"],
    "suslov": ["projected-lift", "adapted-lift", "hamel-midpoint-4", "lagrange-d-alembert-6"],
    "euler-top": ["kahan-4", "kahan-projected"],
    "toda": ["collocation-spatial-4", "magnus-4"],
    "four-bar": ["composition-6"],
    "rod": ["rkmk-4"],
    "string-pendulum": ["composition-4"],
    "strings-in-contact": ["contact-midpoint"],
    "rods-in-contact": ["rolling-dkd"],
}
# XLA compiles these for minutes.
NATIVE_ONLY = {"thrown-box", "bowling-ball", "bicycle", "bricard", "robot-arm", "strandbeest-leg"}


def pairs() -> list[tuple[str, str]]:
    """Name 65 pairs of a case and an integrator."""
    from retrax.systems.catalogue import CASES

    return [
        (name, integrator)
        for name, case in CASES.items()
        for integrator in (case.integrator, *OTHERS.get(name, []))
    ]


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def entries(case: str, name: str, kernels: Path) -> dict[str, str]:
    """Run a pair; digest its states, summary, new kernels and exported C, or what is said."""
    import retrax as rx
    from retrax.systems.catalogue import CASES

    system, state, h, _ = CASES[case].make()
    found = {}

    def note(what: str, make) -> None:
        try:
            found[what] = digest(*make())
        except rx.RetraxError as error:
            found[what] = f"{type(error).__name__}: {error}"

    def states(backend: str):
        run = rx.simulate(system, name, state, h=h, steps=STEPS, backend=backend)
        return run.states, run.summary()

    def native():
        known = set(kernels.rglob("*"))
        trajectory, summary = states("native")
        yield from arrays(trajectory)
        yield summary.encode()
        yield from sorted(path.name.encode() for path in set(kernels.rglob("*")) - known)

    def exported():
        with tempfile.TemporaryDirectory() as folder:
            rx.export(system, name, Path(folder) / "step.c", state=state, h=h)
            yield from (path.read_bytes() for path in sorted(Path(folder).rglob("*.[ch]")))

    note("native", native)
    note("c", exported)
    if case not in NATIVE_ONLY:
        note("xla", lambda: arrays(states("xla")[0]))
    return found


def arrays(tree) -> list[bytes]:
    import jax
    import numpy as np

    return [np.ascontiguousarray(x).tobytes() for x in jax.tree.leaves(tree)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ledger", type=Path, help="the file to write")
    parser.add_argument("--against", type=Path, help="an earlier ledger")
    parser.add_argument("--only", default="", help="a part of the names of cases")
    options = parser.parse_args()
    earlier = json.loads(options.against.read_text()) if options.against else None
    ledger: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as kernels, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ["RETRAX_CACHE"] = kernels  # read when retrax compiles
        for case, name in pairs():
            if options.only not in case:
                continue
            began = time.perf_counter()
            ledger[f"{case} {name}"] = entries(case, name, Path(kernels))
            print(f"{time.perf_counter() - began:6.1f} s  {case} {name}", flush=True)
            options.ledger.write_text(json.dumps(ledger, indent=1, sort_keys=True) + "\n")
    if earlier is None:
        return 0
    differing = [
        f"{pair}: {what}"
        for pair, found in ledger.items()
        for what, value in found.items()
        if earlier[pair][what] != value
    ]
    print("\n".join(differing) or f"All {len(ledger)} pairs are equal.")
    return len(differing) > 0


if __name__ == "__main__":
    sys.exit(main())
