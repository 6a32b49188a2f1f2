"""Shapes to draw bodies with: `rx.draw.rod(a, b)`, `rx.draw.box(size)`, `rx.draw.mesh(path)`.

A shape is plain data. `.at(place)`, `.turned(rotation)` and `.scaled(factor)` put it somewhere,
`.on(body)` fixes it to a body. Solids stand about the origin until they are moved.
"""

from retrax.draw.lines import arrow as arrow
from retrax.draw.lines import line as line
from retrax.draw.lines import trail as trail
from retrax.draw.solids import box as box
from retrax.draw.solids import cone as cone
from retrax.draw.solids import cylinder as cylinder
from retrax.draw.solids import ellipsoid as ellipsoid
from retrax.draw.solids import rod as rod
from retrax.draw.solids import sphere as sphere
from retrax.draw.solids import wheel as wheel
from retrax.draw.surface import mesh as mesh
from retrax.mechanics.shape import Shape as Shape
