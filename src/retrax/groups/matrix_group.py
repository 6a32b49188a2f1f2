"""Any connected matrix group, from a basis of its algebra."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Matrix
from retrax.groups.nearest import require_projected
from retrax.numerics.checks import ArrayLike, host_float64, require_finite, require_instance
from retrax.numerics.evaluate import evaluate
from retrax.numerics.matrix_functions import logm, phi1
from retrax.numerics.small_matrices import inverse, solve

Square = Float[Array, "n n"]

_CLOSED = _RANK_TOLERANCE = 1e-10
_LOG_STEPS = 3
# Entries whose products of three are numbers, with room to spare.
_SMALLEST, _LARGEST = 1e-60, 1e60


class InvariantTensors(eqx.Module):
    r"""The tensors that a matrix group leaves fixed: they tell whether a matrix belongs to it.

    What every $g$ in the group with algebra $\mathfrak g = \mathrm{span}(e_i)$ preserves is

    $$
    \begin{aligned}
    & g v = v, \quad a^T g = a^T, \quad g^T B g = B, \quad g C g^T = C, \quad g M = M g
                                                                          &&\text{(1)}\\
    & \det g = 1 \text{ if the algebra is traceless}                      &&\text{(2)}
    \end{aligned}
    $$
    for a basis of such vectors, covectors, forms on $V$ and $V^*$, and commuting matrices. Each
    basis is the null space of the linear equations that (1) gives for $g = 1 + \epsilon e_i$.
    """

    vectors: Float[Array, "n a"]
    covectors: Float[Array, "b n"]
    forms: Float[Array, "c n n"]
    coforms: Float[Array, "d n n"]
    commuting: Float[Array, "e n n"]
    traceless: bool = eqx.field(static=True)

    def __init__(self, basis: np.ndarray):
        n = basis.shape[1]
        one = np.eye(n)
        left = np.array([np.kron(e, one) for e in basis])  # X -> e X on flattened X
        right = np.array([np.kron(one, e.T) for e in basis])  # X -> X e
        left_t = np.array([np.kron(e.T, one) for e in basis])  # X -> e^T X
        right_t = np.array([np.kron(one, e) for e in basis])  # X -> X e^T
        self.vectors = jnp.asarray(_kernel(basis).T)
        self.covectors = jnp.asarray(_kernel(basis.transpose(0, 2, 1)))
        self.forms = jnp.asarray(_kernel(left_t + right).reshape(-1, n, n))
        self.coforms = jnp.asarray(_kernel(left + right_t).reshape(-1, n, n))
        self.commuting = jnp.asarray(_kernel(left - right).reshape(-1, n, n))
        self.traceless = bool(np.all(np.abs(np.trace(basis, axis1=1, axis2=2)) < _RANK_TOLERANCE))

    def residual(self, g: Float[Array, "n n"]) -> Float[Array, " m"]:
        """Return by how much `g` fails (1) and (2), one entry an equation."""
        wrong = [
            g @ self.vectors - self.vectors,
            self.covectors @ g - self.covectors,
            jnp.einsum("ji,cjk,kl->cil", g, self.forms, g) - self.forms,
            jnp.einsum("ij,djk,lk->dil", g, self.coforms, g) - self.coforms,
            jnp.einsum("ij,ejk->eik", g, self.commuting)
            - jnp.einsum("eij,jk->eik", self.commuting, g),
        ]
        if self.traceless:
            wrong.append(jnp.linalg.det(g) - 1)
        return jnp.concatenate([part.reshape(-1) for part in wrong])


class MatrixGroup(AbstractLieGroup):
    r"""The connected group of real $n \times n$ matrices whose algebra has the basis $e_i$.

    $$
    \begin{aligned}
    [e_i, e_j] &= c^k_{ij}\,e_k                                                 &&\text{(1)}\\
    \exp\hat\xi - 1 &= \hat\xi\,\varphi_1(\hat\xi), \qquad
        \mathrm{dexp}_\xi = \varphi_1(-\mathrm{ad}_\xi)                         &&\text{(2)}\\
    \xi &\leftarrow \xi + \mathrm{dexp}_\xi^{-1}
        \big(e^{-\hat\xi}(g - e^{\hat\xi})\big)^\vee
        \quad\text{(Newton's iteration for } \log g)                            &&\text{(3)}
    \end{aligned}
    $$
    `log` needs a $g$ with no eigenvalue on the closed negative half-axis. `defect` measures the
    tensors that the group leaves fixed and whether $g\,\mathfrak g\,g^{-1} = \mathfrak g$; where
    these do not single the group out, also the distance from $\exp(\log g)$.

    **Arguments:**

    - `basis`: array `(dim, n, n)`, linearly independent and closed under the bracket.
    - `name`: how tables and messages call the group.

    References: [IserlesMuntheKaasNorsettZanna2000] (2), [Higham2008] (where (3) starts).
    """

    basis: Float[Array, "dim n n"]
    dual_basis: Float[Array, "dim n n"]
    structure: Float[Array, "dim dim dim"]
    tensors: InvariantTensors
    complete: bool = eqx.field(static=True)
    has_cayley: bool = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(self, basis: ArrayLike, name: str | None = None):
        e = _check_basis(basis)
        if name is not None:
            require_instance("name", name, str, "a text")
        dim, n, _ = e.shape
        flat = e.reshape(dim, -1)
        dual = np.linalg.pinv(flat).T.reshape(e.shape)
        brackets = np.einsum("iab,jbc->ijac", e, e) - np.einsum("jab,ibc->ijac", e, e)
        self.name = f"subgroup of GL({n}) of dimension {dim}" if name is None else name
        self.basis, self.dual_basis = jnp.asarray(e), jnp.asarray(dual)
        self.structure = jnp.asarray(_structure(e, dual, brackets))
        triple = np.einsum("iab,kbc,jcd->ijkad", e, e, e)
        leaves = _outside(e, dual, triple + triple.transpose(1, 0, 2, 3, 4))
        self.has_cayley = bool(np.max(np.abs(leaves)) <= _CLOSED * np.max(np.abs(triple)))
        self.tensors = InvariantTensors(e)
        slope = evaluate(jax.jacfwd(self._residual), np.eye(n)).reshape(-1, n * n)
        self.complete = int(np.linalg.matrix_rank(np.asarray(slope), tol=1e-8)) == n * n - dim

    def __repr__(self) -> str:
        return f"MatrixGroup(dim={self.dim}, n={self.basis.shape[1]})"

    @property
    def dim(self) -> int:
        return self.basis.shape[0]

    def identity(self) -> Square:
        return jnp.eye(self.basis.shape[1])

    def compose(self, g: Square, k: Square) -> Square:
        return g @ k

    def inverse(self, g: Square) -> Square:
        return inverse(g)

    def hat(self, xi: Coordinates) -> Square:
        return jnp.einsum("i,iab->ab", xi, self.basis)

    def vee(self, x: Square) -> Coordinates:
        return jnp.einsum("iab,ab->i", self.dual_basis, x)

    def expm1(self, xi: Coordinates) -> Square:
        x = self.hat(xi)
        return x @ phi1(x)  # (2)

    def log(self, g: Square) -> Coordinates:
        return _log(self, g)

    def advance(self, g: Square, delta: Square) -> Square:
        return g + g @ delta

    def tangent(self, g: Square, xi: Coordinates) -> Square:
        return g @ self.hat(xi)

    def Ad(self, g: Square, xi: Coordinates | None = None) -> Matrix | Coordinates:
        if xi is None:
            moved = jnp.einsum("ab,ibc,cd->iad", g, self.basis, inverse(g))
            return jnp.einsum("iab,jab->ij", self.dual_basis, moved)
        return self.vee(g @ self.hat(xi) @ inverse(g))

    def ad(self, xi: Coordinates, eta: Coordinates | None = None) -> Matrix | Coordinates:
        if eta is None:
            return jnp.einsum("kij,i->kj", self.structure, xi)
        return jnp.einsum("kij,i,j->k", self.structure, xi, eta)

    def dexp(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return phi1(-self.ad(xi)) @ eta  # (2)

    def dexp_inv(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return jnp.linalg.solve(phi1(-self.ad(xi)), eta)

    def caym1(self, xi: Coordinates) -> Square:
        self._require_cayley()
        x = self.hat(xi)
        return solve(self.identity() - x / 2, x)

    def cay_inv(self, g: Square) -> Coordinates:
        self._require_cayley()
        one = self.identity()
        return 2 * self.vee((g - one) @ inverse(g + one))

    def dcay(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        self._require_cayley()
        half, one = self.hat(xi) / 2, self.identity()
        return self.vee(solve(one + half, self.hat(eta)) @ inverse(one - half))

    def dcay_inv(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        self._require_cayley()
        half, one = self.hat(xi) / 2, self.identity()
        return self.vee((one + half) @ self.hat(eta) @ (one - half))

    def defect(self, g: Square) -> Float[Array, ""]:
        wrong = jnp.max(jnp.abs(self._residual(g)))
        if self.complete:
            return wrong
        return jnp.maximum(wrong, jnp.max(jnp.abs(g - self._again(g))))

    def project(self, g: Square) -> Square:
        """Return exp of the logarithm of `g` in the algebra. Reject a `g` without a logarithm.

        Reject a `g` without a logarithm.
        """
        near = self._again(g)
        require_projected(self.name, near)
        return near

    def random(self, key: Key[Array, ""]) -> Square:
        return self.exp(jax.random.normal(key, (self.dim,)))

    def _again(self, g: Square) -> Square:
        """Return exp of the logarithm, which is off `g` where that is off the group."""
        x = jnp.einsum("i,iab->ab", _log(self, g), self.basis)
        return self.identity() + x @ phi1(x)

    def _residual(self, g: Square) -> Float[Array, " m"]:
        moved = jnp.einsum("ab,ibc,cd->iad", g, self.basis, inverse(g))
        stays = jnp.einsum("iab,jab,jcd->icd", moved, self.dual_basis, self.basis)
        return jnp.concatenate([self.tensors.residual(g), (moved - stays).reshape(-1)])

    def _require_cayley(self) -> None:
        if not self.has_cayley:
            raise BadInput(
                f"cay does not map into {self.name}: its algebra is not closed under x y x; "
                "use exp."
            )


@jax.custom_jvp
def _log(group: MatrixGroup, g: Square) -> Coordinates:
    def better(_: Array, xi: Coordinates) -> Coordinates:
        gap = g - group.identity() - group.expm1(xi)
        return xi + group.dexp_inv(xi, group.vee(group.exp(-xi) @ gap))  # (3)

    return jax.lax.fori_loop(0, _LOG_STEPS, better, group.vee(logm(g)))


@_log.defjvp
def _log_jvp(primals: tuple, tangents: tuple) -> tuple[Coordinates, Coordinates]:
    (group, g), (_, velocity) = primals, tangents
    xi = _log(group, g)
    return xi, group.dexp_inv(xi, group.vee(solve(g, velocity)))


def _check_basis(basis: ArrayLike) -> np.ndarray:
    """Return the basis as an array if it is a list of independent square matrices."""
    e = host_float64("basis", basis)
    if e.ndim != 3 or e.shape[1] != e.shape[2] or 0 in e.shape:
        raise BadInput(
            f"MatrixGroup(basis) needs an array of shape (dim, n, n), but its shape is {e.shape}."
        )
    require_finite("basis", e)
    largest = float(np.max(np.abs(e)))
    if not _SMALLEST <= largest <= _LARGEST:
        raise BadInput(
            f"MatrixGroup(basis): the largest entry is {largest:.3g}, but products of the matrices "
            f"must fit into numbers: scale them to between {_SMALLEST:g} and {_LARGEST:g}."
        )
    sizes = np.linalg.svd(e.reshape(len(e), -1), compute_uv=False)
    if len(e) > e.shape[1] ** 2 or sizes[-1] <= _CLOSED * sizes[0]:
        raise BadInput(
            f"MatrixGroup(basis): the {len(e)} matrices are linearly dependent (singular values "
            f"from {sizes[0]:.2g} down to {sizes[-1]:.2g}), but a basis must be independent."
        )
    return e


def _outside(e: np.ndarray, dual: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return what is left of the matrices `x` (last two axes) outside the span of `e`."""
    return x - np.einsum("...ab,kab,kcd->...cd", x, dual, e)


def _structure(e: np.ndarray, dual: np.ndarray, brackets: np.ndarray) -> np.ndarray:
    """Return the structure constants c[k, i, j] of (1) if every bracket stays in the span."""
    leaves = np.max(np.abs(_outside(e, dual, brackets)), axis=(2, 3))
    i, j = np.unravel_index(np.argmax(leaves), leaves.shape)
    if leaves[i, j] > _CLOSED * np.max(np.abs(e)) ** 2:
        raise BadInput(
            f"MatrixGroup(basis): the bracket [e_{i}, e_{j}] leaves the span of the basis by "
            f"{leaves[i, j]:.2g}, but an algebra is closed under brackets."
        )
    return np.einsum("kab,ijab->kij", dual, brackets)


def _kernel(equations: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis, in rows, of the x with `equations[i] @ x == 0` for every i."""
    stacked = equations.reshape(-1, equations.shape[-1])
    _, sizes, rows = np.linalg.svd(stacked)
    rank = int(np.sum(sizes > _RANK_TOLERANCE * max(sizes[0], 1.0)))
    return rows[rank:]
