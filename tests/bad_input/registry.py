"""All entries."""

from . import basics as basics
from . import commands as commands
from . import control as control
from . import energies as energies
from . import estimates as estimates
from . import files as files
from . import machines as machines
from . import measures as measures
from . import quadratic as quadratic
from . import ready as ready
from . import ready_mechanisms as ready_mechanisms
from . import restarts as restarts
from . import rods as rods
from . import runs as runs
from . import strings as strings
from .entries import REGISTRY as REGISTRY
