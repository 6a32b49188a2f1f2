"""The laws, for the classes of retrax and for yours."""

from retrax.testing.groups import check_group as check_group
from retrax.testing.integrators import check_integrator as check_integrator
from retrax.testing.measurements import Problem as Problem
from retrax.testing.retractions import check_retraction as check_retraction
from retrax.testing.spaces import check_space as check_space
from retrax.testing.systems import check_system as check_system
