"""A step as an FMU for co-simulation, of version 2.0 or 3.0: description, sources, a binary."""

import hashlib
import platform
import shutil
import subprocess
import tempfile
import zipfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from retrax.engine.kinds import Unscalarisable
from retrax.errors import warn
from retrax.exporting.c_function import CFunction
from retrax.exporting.c_sources import header
from retrax.exporting.c_step import CSource
from retrax.exporting.model import Field, StepModel
from retrax.exporting.push import push_program

# Where FMI looks for binaries of this machine; others are compiled from the sources.
_PLATFORM = {"2": "linux64", "3": "x86_64-linux"}
VERSIONS = {"2": "2.0", "3": "3.0"}
_FLAGS = "-std=c99 -O2 -ffp-contract=off -fPIC -shared".split()


class Variable(NamedTuple):
    """A variable of the description: its reference is its place among parameters and state."""

    name: str
    reference: int
    causality: str
    start: float


def variables(model: StepModel) -> list[Variable]:
    """Return parameters, then the state, of which inputs are inputs and the rest are outputs."""
    found = []
    for among, first in ((model.params, 0), (model.state, model.param_count)):
        for field in among:
            causality = "parameter" if first == 0 and among is model.params else "output"
            if field.name in model.control and causality == "output":
                causality = "input"
            found += [
                Variable(_entry(field, k), first + field.first + k, causality, x)
                for k, x in enumerate(field.values)
            ]
    return found


def _entry(field: Field, k: int) -> str:
    """Return a number of a field, indices from 1 on, as FMI names them."""
    index = np.unravel_index(k, field.shape) if field.shape else ()
    return field.name + (f"[{','.join(str(i + 1) for i in index)}]" if index else "")


def write_fmu(model: StepModel, place: Path, kind: str) -> None:
    """Write the archive; a binary for this machine is in it where a C compiler is found."""
    written, token, derivatives = _sources(model, kind)
    binary = _binary(written)
    describe = _version_2 if kind == "2" else _version_3
    description = describe(model, token, derivatives)
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", description)
        for name, text in written.items():
            archive.writestr(f"sources/{name}", text)
        if kind == "3":
            archive.writestr("sources/buildDescription.xml", _build(model))
        if binary is not None:
            archive.writestr(f"binaries/{_PLATFORM[kind]}/{model.name}.so", binary)


def _token(text: str) -> str:
    """Return a name for what the sources do."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{{{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}}}"


def _sources(model: StepModel, kind: str) -> tuple[dict[str, str], str, bool]:
    """Return the C of the step with FMI around it, its token, and whether it has derivatives."""
    name, upper = model.name, model.name.upper()
    numbers = sum(field.size for field in model.state)
    push, work = "", 1
    try:
        function = CFunction(
            "step_push",
            push_program(model),
            (
                ("p", model.param_count),
                ("x", numbers + 1),
                ("h", 1),
                ("dp", model.param_count),
                ("dx", numbers),
            ),
        )
        push, work = function.text(), max(function.work, 1)
    except Unscalarisable:
        pass
    inputs = [v.reference for v in variables(model) if v.causality == "input"]
    tests = " || ".join(f"reference == {r}" for r in inputs) or "0"
    unused = "" if inputs else "    (void)reference;\n"

    def asset(file: str) -> str:
        text = files("retrax.exporting").joinpath("assets", file).read_text(encoding="utf-8")
        return Template(text).substitute(name=name, upper=upper)

    body = "\n".join(
        [
            f"#define PARAMS {model.param_count}u",
            f"#define NUMBERS {numbers}u",
            "#define TIME (PARAMS + NUMBERS)",
            f"#define STEP_SIZE {model.h!r}",
            f"#define WORK {work}",
            f"#define DERIVATIVES {1 if push else 0}",
            "",
            f"static int is_input(unsigned reference)\n{{\n{unused}    return {tests};\n}}\n",
            push,
            asset("fmu_model.c"),
            asset(f"fmi{kind}.c"),
        ]
    )
    head = "\n".join(
        [
            f"/* FMI {VERSIONS[kind]} around a step. Written by retrax {version('retrax')}. */",
            f'#include "{name}.h"',
            *(
                f"#include <{x}.h>"
                for x in ("math", "stdbool", "stddef", "stdint", "stdlib", "string")
            ),
            "",
            "#ifdef _WIN32",
            "#define EXPORT __declspec(dllexport)",
            "#else",
            '#define EXPORT __attribute__((visibility("default")))',
            "#endif",
            "",
        ]
    )
    step = CSource(model, "double").text()
    token = _token(step + body)
    written = {
        f"{name}.h": header(model, "double"),
        f"{name}.c": step,
        f"{name}_fmu.c": f'{head}#define TOKEN "{token}"\n{body}',
    }
    return written, token, bool(push)


def _binary(written: dict[str, str]) -> bytes | None:
    """Return the shared library for this machine, or `None` with a warning."""
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    here = (platform.system(), platform.machine())
    if compiler is None or here != ("Linux", "x86_64"):
        warn(
            "the FMU has sources only, for no C compiler for Linux on x86_64 was found; a tool "
            "that compiles FMUs, such as `fmpy compile`, makes a binary of them."
        )
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, text in written.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        made = Path(folder, "step.so")
        units = [name for name in written if name.endswith(".c")]
        command = [compiler, *_FLAGS, *units, "-o", str(made), "-lm"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return made.read_bytes()


def _heading(model: StepModel, kind: str) -> str:
    return (
        f"fmiVersion={quoteattr(VERSIONS[kind])} modelName={quoteattr(model.name)} "
        f"description={quoteattr(model.title)} "
        f'generationTool="retrax {version("retrax")}" variableNamingConvention="structured"'
    )


def _truth(x: bool) -> str:
    return "true" if x else "false"


def _version_2(model: StepModel, token: str, derivatives: bool) -> str:
    lines, outputs = [], []
    for k, v in enumerate(variables(model), start=1):
        kinds = {"parameter": "tunable", "input": "continuous", "output": "continuous"}
        initial = "" if v.causality == "input" else ' initial="exact"'
        lines.append(
            f'    <ScalarVariable name={quoteattr(v.name)} valueReference="{v.reference}" '
            f'causality="{v.causality}" variability="{kinds[v.causality]}"{initial}>'
            f'<Real start="{v.start!r}"/></ScalarVariable>'
        )
        if v.causality == "output":
            outputs.append(f'      <Unknown index="{k}"/>')
    time = len(lines)
    lines.append(
        f'    <ScalarVariable name="time" valueReference="{time}" causality="independent" '
        'variability="continuous"><Real unit="s"/></ScalarVariable>'
    )
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f"<fmiModelDescription {_heading(model, '2')} guid={quoteattr(token)}>",
            f'  <CoSimulation modelIdentifier="{model.name}" '
            'canHandleVariableCommunicationStepSize="true" canGetAndSetFMUstate="true" '
            'canSerializeFMUstate="true" '
            f'providesDirectionalDerivative="{_truth(derivatives)}">',
            "    <SourceFiles>",
            f'      <File name="{model.name}.c"/>',
            f'      <File name="{model.name}_fmu.c"/>',
            "    </SourceFiles>",
            "  </CoSimulation>",
            '  <UnitDefinitions><Unit name="s"><BaseUnit s="1"/></Unit></UnitDefinitions>',
            f'  <DefaultExperiment startTime="{model.time.values[0]!r}" stepSize="{model.h!r}"/>',
            "  <ModelVariables>",
            *lines,
            "  </ModelVariables>",
            "  <ModelStructure>",
            "    <Outputs>",
            *outputs,
            "    </Outputs>",
            "  </ModelStructure>",
            "</fmiModelDescription>",
            "",
        ]
    )


def _version_3(model: StepModel, token: str, derivatives: bool) -> str:
    kinds = {"parameter": "tunable", "input": "continuous", "output": "continuous"}
    lines, outputs, found = [], [], variables(model)
    for v in found:
        initial = "" if v.causality == "input" else ' initial="exact"'
        lines.append(
            f'    <Float64 name={quoteattr(v.name)} valueReference="{v.reference}" '
            f'causality="{v.causality}" variability="{kinds[v.causality]}"{initial} '
            f'start="{v.start!r}"/>'
        )
        if v.causality == "output":
            outputs.append(f'    <Output valueReference="{v.reference}"/>')
    lines.append(
        f'    <Float64 name="time" valueReference="{len(found)}" causality="independent" '
        'variability="continuous"/>'
    )
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f"<fmiModelDescription {_heading(model, '3')} instantiationToken={quoteattr(token)}>",
            f'  <CoSimulation modelIdentifier="{model.name}" '
            'canHandleVariableCommunicationStepSize="true" canGetAndSetFMUState="true" '
            'canSerializeFMUState="true" '
            f'providesDirectionalDerivatives="{_truth(derivatives)}"/>',
            f'  <DefaultExperiment startTime="{model.time.values[0]!r}" stepSize="{model.h!r}"/>',
            "  <ModelVariables>",
            *lines,
            "  </ModelVariables>",
            "  <ModelStructure>",
            *outputs,
            "  </ModelStructure>",
            "</fmiModelDescription>",
            "",
        ]
    )


def _build(model: StepModel) -> str:
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiBuildDescription fmiVersion="3.0">
  <BuildConfiguration modelIdentifier="{model.name}">
    <SourceFileSet language="C99">
      <SourceFile name="{model.name}.c"/>
      <SourceFile name="{model.name}_fmu.c"/>
    </SourceFileSet>
  </BuildConfiguration>
</fmiBuildDescription>
"""
