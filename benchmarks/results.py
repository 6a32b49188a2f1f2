"""Where results are kept: `results/*.json`, each with the machine and the versions."""

import json
from pathlib import Path
from typing import Any

from retrax_papers.bench.suite import record

RESULTS = Path(__file__).parent / "results"


def save(name: str, results: Any) -> None:
    """Write `results` to `results/name.json`."""
    (RESULTS / f"{name}.json").write_text(json.dumps(record(results), indent=1) + "\n")
    print(f"written: benchmarks/results/{name}.json")
