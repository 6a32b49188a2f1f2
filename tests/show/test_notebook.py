"""What a notebook shows: figures and the moving page, without any setting."""

import io

import pytest
from page_kinds import KINDS
from PIL import Image

import retrax as rx


def test_a_figure_shows_itself():
    figure = KINDS["body"]().plot()
    with Image.open(io.BytesIO(figure._repr_png_())) as image:
        assert image.format == "PNG" and image.width > 600


def test_an_animation_is_a_frame_with_the_whole_page():
    run = KINDS["body"]()
    shown = run.animate(height=500)._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts" srcdoc="')
    assert "height: 500px" in shown and shown.count("<") == 2  # the page inside is escaped
    assert shown.count('"') == 6
    with pytest.raises(rx.BadInput, match="height = 3 must be a whole number"):
        run.animate(height=3)
