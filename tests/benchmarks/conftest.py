"""The benchmarks are not part of the package: their folder lies in the root of the repository."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
