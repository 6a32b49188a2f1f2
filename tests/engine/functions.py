"""Functions with shapes and control flow that a potential may have, added to `operations.TABLE`."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from operations import EDGES, INF, NAN, PLAIN, entry

M = jnp.asarray(np.random.default_rng(3).normal(size=(3, 3)))
LONG = jnp.asarray(np.random.default_rng(4).normal(size=(20, 3)))


@entry("products of single entries", PLAIN)
def _(x):
    one = x.at[jnp.asarray(1)].get(mode="fill")  # a gather of one entry
    return one * x.at[0].set(2.0)[jnp.asarray(0)] / one


@entry("a loop of known length", PLAIN)
def _(x):
    return lax.fori_loop(0, 5, lambda k, c: c * 0.5 + x[k], 0.0)


@entry("a loop with 32 bits", PLAIN)
def _(x):
    def again(k, c):
        return c * jnp.int32(1103515245) + jnp.int32(12345) + k

    return x * lax.fori_loop(jnp.int32(0), jnp.int32(9), again, jnp.int32(1)).astype(float)


@entry("a loop until it is small", PLAIN)
def _(x):
    return lax.while_loop(lambda y: jnp.max(jnp.abs(y)) > 1e-3, lambda y: y * y * 0.7, x)


@entry("a loop that runs as often as the state says", jnp.array([4.7, 0.3]))
def _(x):
    n = x[0].astype(jnp.int32)
    return lax.fori_loop(0, n, lambda k, c: c + 1.0 / (1.0 + k.astype(float)), x[1])


@entry("a loop of each member", PLAIN)
def _(x):
    def root(a):
        def better(c):
            y, k = c
            return 0.5 * (y + a / y), k + 1

        return lax.while_loop(lambda c: jnp.abs(c[0] ** 2 - a) > 1e-12, better, (1.0 + a, 0))

    return jax.vmap(root)(jnp.abs(x))


@entry("a loop of each of many members", LONG[:, 0])
def _(x):
    def halved(a):
        return lax.while_loop(lambda c: c[0] > 0.1, lambda c: (c[0] * 0.5, c[1] + 1), (a, 0))

    return jax.vmap(halved)(jnp.abs(x))


@entry("a loop in a loop of each member", PLAIN)
def _(x):
    def inner(a):
        return lax.while_loop(lambda y: y > 1.0, lambda y: y - 0.3, a)

    def outer(a):
        return lax.while_loop(lambda c: c[1] < 3, lambda c: (inner(c[0] + 1.0), c[1] + 1), (a, 0))

    return jax.vmap(outer)(x)


@entry("a branch with a loop that would not end on the other side", jnp.array([-0.5, 0.5]))
def _(x):
    def shrinking(y):
        return lax.while_loop(lambda z: z > 0.01, lambda z: z * 0.5, y)

    def growing(y):
        # For a positive y this ends; for a negative one it would not.
        return lax.while_loop(lambda z: z < 10.0, lambda z: z * 2.0, y)

    return lax.cond(x[0] > 0, growing, shrinking, x[0]) + lax.cond(
        x[1] > 0, growing, shrinking, x[1]
    )


@entry("products of 64 bits along a long axis", LONG[:, 0])
def _(x):
    i = (x * 100).astype(int) + 3037000499
    j = i * i
    return jnp.sum(j[1:] - j[:-1]).astype(float)


@entry("a switch", jnp.array([0.2, 1.2, 2.7, -3.0, 9.0]))
def _(x):
    branches = [jnp.sin, jnp.cos, lambda y: y * y]
    return jnp.stack([lax.switch(y.astype(jnp.int32), branches, y) for y in x])


@entry("a switch of each member", jnp.array([0.2, 1.2, 2.7, -3.0, 9.0]))
def _(x):
    branches = [jnp.sin, jnp.cos, lambda y: y * y]
    return jax.vmap(lambda y: lax.switch(y.astype(jnp.int32), branches, y))(x)


@entry("nested branches", PLAIN)
def _(x):
    def inner(y):
        return lax.cond(y > 0.5, lambda z: z * 2.0, lambda z: jnp.exp(z), y)

    return lax.cond(x[0] > 0, inner, lambda y: -y, x[2])


@entry("select between three", PLAIN)
def _(x):
    which = jnp.array([0, 2, 1, 0, 2], jnp.int32) * (x > -5).astype(jnp.int32)
    return lax.select_n(which, x, x * 2.0, jnp.cos(x))


for _name, _f in {
    "sum": jnp.sum, "prod": jnp.prod, "max": lambda x: jnp.max(x, initial=-3.0),
    "all": lambda x: jnp.all(x > 0), "any": lambda x: jnp.any(x > 0), "mean": lambda x:
    jnp.sum(x) / 3.0, "dot": lambda x: x @ x, "norm": lambda x: jnp.sum(x * x), "cumsum":
    lambda x: jnp.sum(jnp.cumsum(x)), "sort": lambda x: jnp.sum(jnp.sort(x)),
    "least": lambda x: lax.reduce_max(x, (0,)), "greatest": lambda x: lax.reduce_min(x, (0,)),
}.items():  # fmt: skip
    entry(f"{_name} of no entries", PLAIN)(lambda x, f=_f: f(x[:0]) * 1.0 + x[0])
    entry(f"{_name} of one entry", PLAIN)(lambda x, f=_f: f(x[:1]) * 1.0 + x[0])
    entry(f"{_name} of many", LONG)(lambda x, f=_f: f(x[:, 0]) * 1.0 + x[0, 1])
for _name, _f in {
    "row": lambda m: jnp.sum(m[:0], axis=1), "column": lambda m: jnp.sum(m[:0], axis=0),
    "product": lambda m: m[:, :0] @ m[:0], "trace": lambda m: jnp.trace(m[:0, :0]),
    "joined": lambda m: jnp.concatenate([m[:0], m]), "stacked": lambda m: jnp.stack([m[0], m[1]]),
    "einsum": lambda m: jnp.einsum("ij,ij->", m[:0], m[:0]),
    "outer": lambda m: jnp.outer(m[0], m[1]),
}.items():  # fmt: skip
    entry(f"a matrix without rows: {_name}", M)(_f)

INDEXING = {
    "a constant": lambda x: x[2], "from the end": lambda x: x[-1], "a list": lambda x: x[
    jnp.array([0, 3, 3])], "out of range, filled": lambda x: x.at[jnp.array([0, 9])].get(
    mode="fill"), "out of range, cut off": lambda x: x.at[jnp.array([1, 9])].get(mode="clip"),
    "set out of range": lambda x: x.at[jnp.array([1, 9])].set(5.0), "added": lambda x: x.at[
    jnp.array([1, 1, 2])].add(1.5), "by the state": lambda x: x[x[2].astype(int)],
    "by the state, out of range": lambda x: x[(x[2] * 100).astype(int)],
    "by the state, negative": lambda x: x[(x[1] * 3).astype(int)],
    "set by the state": lambda x: x.at[x[2].astype(int)].set(0.0),
    "part by the state": lambda x: lax.dynamic_slice(x, (x[2].astype(int),), (2,)),
    "part replaced": lambda x: lax.dynamic_update_slice(x, x[:2], (x[2].astype(int),)),
    "part replaced at a constant": lambda x: lax.dynamic_update_slice(x, x[:2], (7,)),
    "largest": lambda x: x[jnp.argmax(x)], "smallest": lambda x: x[jnp.argmin(x)],
    "take": lambda x: jnp.take(x, jnp.array([1, 2]), mode="wrap"), "roll": lambda x: jnp.roll(x, 2),
    "where one is": lambda x: jnp.where(jnp.arange(5) == 2, x, 0.0), "flip": lambda x: x[::-1],
    "multiplied": lambda x: x.at[1].multiply(3.0), "masked": lambda x: jnp.sum(x, where=x > 0),
    "truths": lambda x: (x > 0).at[1].set(True), "bytes": lambda x: jnp.arange(5, dtype=jnp.uint8)
    .at[1].set(200).astype(float) + x, "searched": lambda x: jnp.searchsorted(jnp.sort(x), 0.1),
    "top": lambda x: lax.top_k(x, 2)[0], "unique": lambda x: jnp.unique(x, size=3)[0],
    "interpolated": lambda x: jnp.interp(x, jnp.array([0.0, 1.0]), jnp.array([2.0, 5.0])),
    "polynomial": lambda x: jnp.polyval(jnp.array([1.0, 2.0, 3.0]), x), "tril": lambda x:
    jnp.tril(jnp.outer(x, x)), "median": lambda x: jnp.median(x), "determinant": lambda x:
    jnp.linalg.det(jnp.outer(x[:3], x[:3]) + jnp.eye(3)), "inverse": lambda x: jnp.linalg.inv(
    jnp.outer(x[:2], x[:2]) + jnp.eye(2)), "diff": jnp.diff, "cross": lambda x: jnp.cross(x[:3],
    x[1:4]), "bincount": lambda x: jnp.bincount((x > 0).astype(int), length=2), "convolution":
    lambda x: jnp.convolve(x, jnp.array([1.0, -2.0])), "complex": lambda x: jnp.abs(x + 1j * x[0]),
    "bits": lambda x: lax.bitcast_convert_type(x, jnp.int64).astype(float), "float32": lambda x:
    jnp.sin(x.astype(jnp.float32)).astype(float), "fft": lambda x: jnp.real(jnp.fft.fft(x)),
}  # fmt: skip
for _name, _f in INDEXING.items():
    entry(f"entries: {_name}", PLAIN)(_f)
    entry(f"entries: {_name}, differentiated", PLAIN)(
        lambda x, f=_f: jax.jvp(lambda y: jnp.sum(f(y) * 1.0), (x,), (x,))[1]
    )

DRAWN = {
    "normal": lambda k: jax.random.normal(k, (3,)),
    "uniform": lambda k: jax.random.uniform(k, (3,)),
    "bits": lambda k: jax.random.bits(k, (3,), jnp.uint32).astype(float),
    "integers": lambda k: jax.random.randint(k, (3,), 0, 100).astype(float),
    "permutation": lambda k: jax.random.permutation(k, 3).astype(float),
}  # fmt: skip
for _name, _f in DRAWN.items():
    entry(f"random numbers: {_name}", PLAIN)(lambda x, f=_f: x[:3] * f(jax.random.key(7)))
    entry(f"random numbers of the state: {_name}", PLAIN)(
        lambda x, f=_f: f(jax.random.fold_in(jax.random.key(7), x[2].astype(int))) + x[:3]
    )


@jax.custom_jvp
def softened(x):
    return jnp.sqrt(x * x + 0.01)


softened.defjvp(lambda primals, tangents: (softened(*primals), 2.0 * tangents[0]))


@jax.custom_vjp
def odd_slope(x):
    return jnp.sum(jnp.sin(x))


odd_slope.defvjp(lambda x: (odd_slope(x), x), lambda x, ct: (ct * x * 3.0,))

CALLS = {
    "custom_jvp": lambda x: jnp.sum(softened(x)), "custom_vjp": odd_slope,
    "jit": jax.jit(lambda x: jnp.sum(x**2)), "jit in jit": jax.jit(jax.jit(jnp.prod)),
    "checkpoint": jax.checkpoint(lambda x: jnp.sum(jnp.sin(x) * x)),
    "stopped": lambda x: jnp.sum(lax.stop_gradient(x) * x), "guard": lambda x: jnp.sum(jnp.where(
    x > 0, jnp.log(jnp.where(x > 0, x, 1.0)), 0.0)), "half guard": lambda x: jnp.sum(jnp.where(
    x > 0, jnp.log(x), 0.0)), "norm at zero": lambda x: jnp.linalg.norm(x * 0.0),
    "nested gradients": lambda x: jnp.sum(jax.grad(lambda y: jnp.sum(y**3 * jnp.cos(y)))(x)),
    "scan": lambda x: jnp.sum(lax.scan(lambda c, y: (c * y + 1.0, c), 0.5, x)[1]),
    "map": lambda x: jnp.sum(lax.map(lambda y: jnp.sin(y) * y, x)), "associative scan": lambda x:
    jnp.sum(lax.associative_scan(jnp.multiply, x)), "logsumexp": jax.scipy.special.logsumexp,
    "softmax": lambda x: jax.nn.softmax(x)[1], "huge": lambda x: jnp.sum(x * 1e300) * 1e300,
    "tiny": lambda x: jnp.sum(x * 1e-300) * 1e-300, "nan constant": lambda x: jnp.sum(jnp.where(
    x > 5, NAN, x)), "infinite constant": lambda x: jnp.sum(jnp.minimum(x, INF)),
    "infinite product": lambda x: jnp.sum(x) * INF, "overflow": lambda x: jnp.exp(1000.0 * x[2]),
    "folded overflow": lambda x: x[0] * (jnp.asarray(1e200) * 1e200), "folded by zero": lambda x:
    x[0] + 1.0 / jnp.asarray(0.0), "folded power": lambda x: x[0] * jnp.asarray(10.0) ** 400,
    "named": lambda x: jax.named_call(jnp.sum, name="mine")(x),
    "printed": lambda x: (jax.debug.print("", ordered=False), jnp.sum(x))[1],
}  # fmt: skip
for _name, _f in CALLS.items():
    entry(f"calls: {_name}", PLAIN)(_f)
    entry(f"calls: gradient of {_name}", PLAIN)(jax.grad(_f))
entry("calls: gradient of half guard at edges", EDGES)(jax.grad(CALLS["half guard"]))
entry("calls: gradient of guard at edges", EDGES)(jax.grad(CALLS["guard"]))
