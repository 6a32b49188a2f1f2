"""Systems, starts and integrators made of names and numbers, as a run file gives them."""

from retrax.cases.descriptions import describe as describe
from retrax.cases.makers import choose as choose
from retrax.cases.names import default_integrator as default_integrator
from retrax.cases.names import fitting as fitting
from retrax.cases.names import make_integrator as make_integrator
from retrax.cases.names import make_system as make_system
from retrax.cases.run_file import RunFile as RunFile
from retrax.cases.run_file import read as read
from retrax.cases.starts import make_state as make_state
