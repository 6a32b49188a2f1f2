"""Plain text of findings becomes mathematics, and words stay words."""

import pytest

from retrax_papers.mathematics import set_as_mathematics

TEN = "<msup><mn>10</mn><mn>−5</mn></msup>"


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("below 1.3e-5 in all", f"below <math><mn>1.3</mn><mo>·</mo>{TEN}</math> in all"),
        ("mu is a momentum", "<math><mi>μ</mi></math> is a momentum"),
        ("h^2", "<math><msup><mi>h</mi><mn>2</mn></msup></math>"),
        (
            "Pi_k+1",
            "<math><msub><mi>Π</mi><mrow><mi>k</mi><mo>+</mo><mn>1</mn></mrow></msub></math>",
        ),
        ("9.81 m/s^2", "9.81 m/s²"),
        ("a <= b & c", "a ≤ b &amp; c"),
        ("`x^2` of a map", "<code>x^2</code> of a map"),
        ("a body's pivot, SO(3)", "a body&#x27;s pivot, SO(3)"),
        ("<b>no</b>", "&lt;b&gt;no&lt;/b&gt;"),
    ],
)
def test_symbols_are_set(text, wanted):
    assert set_as_mathematics(text) == wanted
