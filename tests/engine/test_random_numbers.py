"""Random numbers of keys that a program is given: the bits of XLA, native and on arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax import random
from native_function import flat, programme, run_natively

from retrax.engine.backends.interpret import interpret
from retrax.engine.trace.scalarise import Unscalarisable
from retrax.numerics.inverse_error import erf_inv

# Words at the ends of their range, and one that is odd.
KEYS = [(0, 0), (2**32 - 1, 2**32 - 1), (1831565813, 3455637)]

DRAWS = {
    "normal": lambda k: random.normal(k, (2,)),
    "uniform": lambda k: random.uniform(k, (3,), minval=-3.0, maxval=7.0),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (3,)),
    "randint": lambda k: random.randint(k, (2,), -5, 100),
    "bits of 8": lambda k: random.bits(k, (3,), jnp.uint8),
    "bits of 32": lambda k: random.bits(k, (3,), jnp.uint32),
    "permutation": lambda k: random.permutation(k, 3),
    "categorical": lambda k: random.categorical(k, jnp.array([0.1, 0.5, 0.2])),
    "truncated normal": lambda k: random.truncated_normal(k, -1.0, 2.0, (2,)),
    "a chain of splits": lambda k: random.key_data(random.split(random.split(k)[1], 3)[2]),
    "folded in": lambda k: random.key_data(random.fold_in(random.fold_in(k, 7), 2**32 - 1)),
    "a constant key, folded with a number": lambda k: random.uniform(
        random.fold_in(random.key(3), random.randint(k, (), 0, 9))
    ),
    "seeded by a number": lambda k: random.uniform(random.key(random.randint(k, (), -9, 9))),
    "keys of old": lambda k: random.uniform(random.split(random.key_data(k))[0]),
    "a choice of keys": lambda k: random.uniform(jnp.where(random.bernoulli(k), *random.split(k))),
    "a key among many": lambda k: random.uniform(random.split(k, 4)[random.randint(k, (), 0, 4)]),
    "a key set": lambda k: jax.vmap(random.uniform)(random.split(k, 3).at[1].set(k)),
    "a clone": lambda k: random.uniform(random.clone(k)),
    "keys through a loop": lambda k: jax.lax.scan(
        lambda k, _: (random.split(k)[0], random.uniform(k)), k, None, length=3
    )[1],
    "keys through a loop that ends by a test": lambda k: random.uniform(
        jax.lax.while_loop(lambda k: random.uniform(k) > 0.3, lambda k: random.split(k)[0], k)
    ),
    "a branch": lambda k: jax.lax.cond(
        random.bernoulli(k), random.uniform, lambda k: -random.uniform(random.split(k)[0]), k
    ),
}
FEW = ("normal", "randint", "a chain of splits", "folded in", "keys of old", "bernoulli")
# A multiplication and an addition are one operation natively, where the processor has it.
ROUNDING = {"uniform": 2e-15, "truncated normal": 2e-15}
MARKED = [n if n in FEW else pytest.param(n, marks=pytest.mark.campaign) for n in DRAWS]


@pytest.fixture(autouse=True)
def types_as_users_have_them():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.mark.parametrize("name", MARKED)
def test_what_is_drawn_has_the_bits_of_xla(name):
    def function(words):
        return DRAWS[name](random.wrap_key_data(words.astype(jnp.uint32)))

    words = [jnp.array(key, float) for key in KEYS]
    program, exact = programme(function, words[0]), jax.jit(function)
    for w in words:
        wanted = flat(exact(w))
        for lanes in ({}, {"lanes": 8}):
            ours = run_natively(program, w, **lanes)
            np.testing.assert_allclose(ours, wanted, rtol=0, atol=ROUNDING.get(name, 0))
        ours, _ = interpret(program, [jnp.stack([x, x]) for x in w], jnp.array([True, True]))
        np.testing.assert_array_equal(flat([x[0] for x in ours]), wanted)


def test_bits_of_floats_and_floats_of_bits():
    def there_and_back(x):
        bits = jax.lax.bitcast_convert_type(x, jnp.uint64)
        flipped = jnp.bitwise_xor(bits, jnp.uint64(1 << 63))
        return jax.lax.bitcast_convert_type(flipped, float), (bits >> 40).astype(float)

    x = jnp.array([0.0, -0.0, 1.5, -np.inf, 5e-324, -1e308])
    wanted = flat(there_and_back(x))
    ours = run_natively(programme(there_and_back, x), x)
    np.testing.assert_array_equal(ours, wanted)
    np.testing.assert_array_equal(np.signbit(ours), np.signbit(wanted))
    of_constants = programme(lambda y: (there_and_back(x), y), x[0])
    np.testing.assert_array_equal(run_natively(of_constants, x[0])[:-1], wanted)


def test_the_inverse_of_the_error_function_is_that_of_xla_and_good_to_ten_digits():
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], 4000)
    x = np.concatenate([rng.uniform(-1, 1, 4000), signs * (1 - 2.0 ** -rng.uniform(1, 53, 4000))])
    ours = np.asarray(jax.jit(erf_inv)(x))
    np.testing.assert_array_equal(ours, jax.lax.erf_inv(x))
    # Where x is near 1, 1 - x^2 has lost digits: 1.1e-10 measured, 4e-16 near zero.
    np.testing.assert_allclose(ours, scipy.special.erfinv(x), rtol=1e-9)
    small = jnp.asarray(10.0) ** rng.uniform(-300, -1, 1000)
    np.testing.assert_allclose(erf_inv(small), scipy.special.erfinv(small), rtol=2e-15)
    ends = jnp.array([1.0, -1.0, 2.0, np.nan, 0.0])
    np.testing.assert_array_equal(erf_inv(ends), [np.inf, -np.inf, np.nan, np.nan, 0.0])


@pytest.mark.parametrize(
    ("draw", "why"),
    [
        (lambda k: random.normal(random.wrap_key_data(jnp.tile(k, 2), impl="rbg")), "key<rbg>"),
        (lambda k: random.gamma(random.wrap_key_data(k), 2.0), "random_gamma"),
        (lambda k: random.bits(random.wrap_key_data(k), (4000,)), "draws 4000 random numbers"),
    ],
    ids=["another generator", "gamma", "many"],
)
def test_what_is_left_to_xla_says_why(draw, why):
    with pytest.raises(Unscalarisable, match=why):
        programme(lambda w: draw(w.astype(jnp.uint32)), jnp.zeros(2))
