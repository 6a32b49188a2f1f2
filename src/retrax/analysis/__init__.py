"""Numbers about methods and runs: order, work, symplecticity, integrals, sections, chaos, modes."""

from retrax.analysis.convergence import Convergence as Convergence
from retrax.analysis.convergence import convergence as convergence
from retrax.analysis.kahan_integrals import Relations as Relations
from retrax.analysis.kahan_integrals import kahan_integrals as kahan_integrals
from retrax.analysis.lyapunov import Lyapunov as Lyapunov
from retrax.analysis.lyapunov import lyapunov as lyapunov
from retrax.analysis.modes import Modes as Modes
from retrax.analysis.modes import modes as modes
from retrax.analysis.modified_energy import ModifiedEnergy as ModifiedEnergy
from retrax.analysis.modified_energy import modified_energy as modified_energy
from retrax.analysis.poincare import Poincare as Poincare
from retrax.analysis.poincare import poincare as poincare
from retrax.analysis.random_walk import Slope as Slope
from retrax.analysis.random_walk import bias as bias
from retrax.analysis.random_walk import growth_exponent as growth_exponent
from retrax.analysis.reversibility import reversibility as reversibility
from retrax.analysis.spectrum import Spectrum as Spectrum
from retrax.analysis.spectrum import spectrum as spectrum
from retrax.analysis.symplecticity import symplecticity as symplecticity
from retrax.analysis.work_precision import work_precision as work_precision
from retrax.trajectory.members import observe_members as observe_members
from retrax.trajectory.observe import drift as drift
