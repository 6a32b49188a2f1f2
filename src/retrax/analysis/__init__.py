"""Numbers about methods and runs: order, symplecticity, reversibility, drift."""

from retrax.analysis.convergence import Convergence as Convergence
from retrax.analysis.convergence import convergence as convergence
from retrax.analysis.reversibility import reversibility as reversibility
from retrax.analysis.symplecticity import symplecticity as symplecticity
from retrax.trajectory.measure import drift as drift
from retrax.trajectory.members import observe_members as observe_members
