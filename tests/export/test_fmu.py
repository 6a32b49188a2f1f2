"""FMUs in fmpy: valid, equal to `simulate`, with inputs, state and derivatives."""

import fmpy
import jax.numpy as jnp
import numpy as np
import pytest
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from fmpy.validation import validate_fmu

import retrax as rx

VERSIONS = {"2": FMU2Slave, "3": FMU3Slave}


@pytest.mark.parametrize("target", VERSIONS)
def test_an_fmu_is_valid_and_moves_as_simulate_does(tmp_path, steps, target):
    system, integrator, state, h = steps("top")
    path = rx.export(system, integrator, tmp_path / "top.fmu", target, state=state, h=h)
    assert validate_fmu(path) == []
    names = ["g[1,1]", "g[2,3]", "momentum[1]", "momentum[3]"]
    found = fmpy.simulate_fmu(
        str(path), stop_time=1.0, output_interval=2 * h, step_size=2 * h, output=names
    )
    run = rx.simulate(system, integrator, state, h=h, steps=100, save_every=2)
    wanted = [run.g[:, 0, 0], run.g[:, 1, 2], run.momentum[:, 0], run.momentum[:, 2]]
    for name, values in zip(names, wanted, strict=True):
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-13)  # 1e-14 measured


@pytest.mark.campaign
@pytest.mark.parametrize("name, steps_taken", [("held", 100), ("linkage", 100), ("bowling", 60)])
def test_fmus_of_held_jointed_and_touching_bodies_move_as_simulate_does(
    tmp_path, steps, name, steps_taken
):
    system, integrator, state, h = steps(name)
    path = rx.export(system, integrator, tmp_path / "top.fmu", "2", state=state, h=h)
    assert validate_fmu(path) == []
    run = rx.simulate(system, integrator, state, h=h, steps=steps_taken)
    names = [f"momentum[{k + 1}]" for k in range(run.momentum.shape[1])]
    found = fmpy.simulate_fmu(
        str(path), stop_time=steps_taken * h, output_interval=h, step_size=h, output=names
    )
    for k, one in enumerate(names):
        size = np.max(np.abs(run.momentum))
        np.testing.assert_allclose(found[one], run.momentum[:, k], rtol=0, atol=1e-12 * size)


class Slave:
    """An FMU, loaded; both versions behind the same names."""

    def __init__(self, path, target):
        self.target, about = target, fmpy.read_model_description(str(path))
        self.places = {v.name: v.valueReference for v in about.modelVariables}
        self.fmu = VERSIONS[target](
            guid=about.guid if target == "2" else about.instantiationToken,
            unzipDirectory=fmpy.extract(str(path)),
            modelIdentifier=about.coSimulation.modelIdentifier,
            instanceName="one",
        )
        self.fmu.instantiate()
        if target == "2":
            self.fmu.setupExperiment(startTime=0.0)
            self.fmu.enterInitializationMode()
        else:
            self.fmu.enterInitializationMode(startTime=0.0)
        self.fmu.exitInitializationMode()

    def get(self, *names):
        read = self.fmu.getReal if self.target == "2" else self.fmu.getFloat64
        return np.array(read([self.places[n] for n in names]))

    def set(self, **values):
        write = self.fmu.setReal if self.target == "2" else self.fmu.setFloat64
        named = {name.replace("_", "[") + "]": x for name, x in values.items()}
        write([self.places[n] for n in named], list(named.values()))

    def keep(self):
        return self.fmu.getFMUstate() if self.target == "2" else self.fmu.getFMUState()

    def back(self, kept):
        (self.fmu.setFMUstate if self.target == "2" else self.fmu.setFMUState)(kept)


@pytest.mark.parametrize("target", VERSIONS)
def test_inputs_act_states_come_back_and_derivatives_are_those_of_the_step(tmp_path, target):
    body = rx.MechanicalSystem(rx.SO3(), jnp.array([1.0, 2.0, 2.5]))
    plant = rx.Actuated(body, np.eye(3)[:, :2])
    start = plant.state(jnp.eye(3), velocity=[0.3, 0.2, 1.0])
    path = rx.export(plant, rx.LieVerlet(), tmp_path / "plant.fmu", target, state=start, h=0.01)
    slave, names = Slave(path, target), ("g[1,2]", "momentum[1]", "momentum[2]")

    def moved(**inputs):
        slave.set(**inputs)
        slave.fmu.doStep(0.2, 0.05)
        return slave.get(*names)

    slave.set(control_1=0.4, control_2=-0.3)
    for k in range(4):
        slave.fmu.doStep(0.05 * k, 0.05)
    kept, before = slave.keep(), slave.get(*names)
    end = moved(control_1=0.4)
    places = slave.places
    unknown, known = [places[n] for n in names], [places["control[1]"]]
    found = slave.fmu.getDirectionalDerivative(unknown, known, [1.0])
    slave.back(kept)
    np.testing.assert_array_equal(slave.get(*names), before)
    np.testing.assert_array_equal(moved(control_1=0.4), end)
    ends = []
    for change in (1e-5, -1e-5):
        slave.back(kept)
        ends.append(moved(control_1=0.4 + change))
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / 2e-5, rtol=0, atol=1e-10)
    push = rx.MechanicalSystem(
        rx.SO3(), jnp.array([1.0, 2.0, 2.5]), force=lambda g, xi, t: jnp.array([0.4, -0.3, 0.0])
    )
    run = rx.simulate(push, rx.LieVerlet(), start, h=0.01, steps=25)
    wanted = [run.final.g[0, 1], *run.final.momentum[:2]]
    np.testing.assert_allclose(end, wanted, rtol=0, atol=1e-13)
    slave.fmu.terminate()
    slave.fmu.freeInstance()
