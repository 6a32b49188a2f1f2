"""The parts of mechanisms in sentences: what each is called, and which method takes it."""

from retrax.mechanisms.couplings import AbstractCoupling
from retrax.mechanisms.joints import AbstractJoint
from retrax.mechanisms.motors import Motor
from retrax.mechanisms.springs import AbstractAtJoint, AbstractBetweenPoints
from retrax.mechanisms.wheels import AbstractWheel
from retrax.numerics.checks import quote

Element = AbstractBetweenPoints | AbstractAtJoint | Motor


def name_of(part: object) -> str:
    """Return what a sentence calls something: the parts of mechanisms by their kind."""
    if isinstance(part, AbstractJoint | AbstractCoupling | AbstractWheel | Element):
        return f"a {type(part).__name__}"
    return quote(part)


def instead(part: object) -> str:
    """Say which method takes a part of a mechanism."""
    if isinstance(part, AbstractJoint | AbstractCoupling):
        return ": write mechanism.join(...)"
    if isinstance(part, AbstractWheel):
        return ": write mechanism.roll(...)"
    return ": write mechanism.add(...)" if isinstance(part, Element) else ""
