"""Numbers about methods and runs: order, symplecticity, reversibility, drift, integrals."""

from retrax.analysis.convergence import Convergence as Convergence
from retrax.analysis.convergence import convergence as convergence
from retrax.analysis.kahan_integrals import Relations as Relations
from retrax.analysis.kahan_integrals import kahan_integrals as kahan_integrals
from retrax.analysis.reversibility import reversibility as reversibility
from retrax.analysis.symplecticity import symplecticity as symplecticity
from retrax.trajectory.measure import drift as drift
from retrax.trajectory.members import observe_members as observe_members
