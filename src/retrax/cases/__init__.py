"""Systems, starts and integrators from names and numbers: what a run file says, made."""

from retrax.cases.choices import choose as choose
from retrax.cases.descriptions import describe as describe
from retrax.cases.integrators import default_integrator as default_integrator
from retrax.cases.integrators import fitting as fitting
from retrax.cases.integrators import make_integrator as make_integrator
from retrax.cases.run_file import RunFile as RunFile
from retrax.cases.run_file import read as read
from retrax.cases.starts import make_state as make_state
from retrax.cases.systems import make_system as make_system
