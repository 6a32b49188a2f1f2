"""How to make an element from what is often given instead: quaternions, angles, 4x4 matrices."""

Shape = tuple[int, ...]

_QUATERNION = (
    "a quaternion q becomes a rotation by SO3().from_quaternion(q, order='wxyz'), or 'xyzw'"
)
_ANGLES = (
    "a rotation vector v becomes one by SO3().exp(v); Euler angles by a product, such as "
    "SO3().exp(jnp.array([0, 0, yaw])) @ SO3().exp(jnp.array([0, pitch, 0])) "
    "@ SO3().exp(jnp.array([roll, 0, 0]))"
)
_PLANE = "an angle becomes a rotation by SO2().exp(jnp.array([angle]))"
_POSE = "a 4x4 matrix T is the pair (T[:3, :3], T[:3, 3])"
_TWIST = "coordinates xi = (omega, v) become a rigid motion by SE3().exp(xi)"
_POSE_IN_PLANE = "x, y and an angle are the pair (SO2().exp(jnp.array([angle])), jnp.array([x, y]))"
_FORMS: dict[tuple[Shape, Shape], str] = {
    ((3, 3), (4,)): _QUATERNION,
    ((3, 3), (3,)): _ANGLES,
    ((3, 3), (4, 4)): "the rotation of a 4x4 matrix T is T[:3, :3]",
    ((2, 2), ()): _PLANE,
    ((2, 2), (1,)): _PLANE,
}
# Of pairs of a rotation and a position that are given as one array.
_PAIRS: dict[tuple[Shape, Shape], str] = {
    ((3, 3), (4, 4)): _POSE,
    ((3, 3), (6,)): _TWIST,
    ((3, 3), (7,)): f"it is the pair of a rotation and a position; {_QUATERNION}",
    ((2, 2), (3, 3)): "a 3x3 matrix T is the pair (T[:2, :2], T[:2, 2])",
    ((2, 2), (3,)): _POSE_IN_PLANE,
}


def from_other_form(expected: list[Shape], given: list[Shape]) -> str:
    """Return a sentence about how to make an element, or nothing where no form is known."""
    if len(given) == len(expected):
        pairs = [p for p in zip(expected, given, strict=True) if p[0] != p[1]]
        told = (_FORMS.get(_single(*pair)) for pair in pairs)
    elif len(given) == 1 and len(expected) > 1:
        told = iter([_PAIRS.get(_single(expected[0], given[0]))])
    else:
        told = iter(())
    hint = next((text for text in told if text is not None), None)
    return "" if hint is None else f" {hint[0].upper()}{hint[1:]}."


def _single(expected: Shape, given: Shape) -> tuple[Shape, Shape]:
    """Leave out the first axes that both have, of many elements."""
    many = len(expected) - 2
    if many > 0 and expected[:many] == given[:many]:
        return expected[many:], given[many:]
    return expected, given
