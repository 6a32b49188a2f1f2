"""A step as readable C99: header, source, an example and a CMakeLists."""

from retrax.exporting.c_operations import COperations
from retrax.exporting.c_step import STATUS, CSource, heading
from retrax.exporting.model import Field, StepModel

# The first line of a CMakeLists that may be replaced.
MARK = "# Written by retrax: replaced when a step is exported to this folder."


def sources(model: StepModel, real: str) -> dict[str, str]:
    """Return all files, by name."""
    name = model.name
    return {
        f"{name}.h": header(model, real),
        f"{name}.c": CSource(model, real).text(),
        f"{name}_main.c": example(model, real),
        "CMakeLists.txt": cmake(model),
    }


def header(model: StepModel, real: str) -> str:
    """Return the structs, and the declarations of what can be called."""
    n, guard = model.name, f"{model.name.upper()}_H"
    lines = [*heading(model), f"#ifndef {guard}", f"#define {guard}", ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += [f"/* The parameters of the {model.system.name}. */", "typedef struct {"]
    lines += [f"    {declare(real, f)}" for f in model.params] or [f"    {real} none;"]
    lines += [f"}} {n}_params;", "", "/* The state, and what a step keeps for the next one. */"]
    lines += ["typedef struct {"]
    lines += [f"    {declare(real, f)}" for f in model.state]
    lines += [f"    {real} t; /* time */"]
    lines += ["    /* Its own, zero before the first step: the clock, forces that the next step"]
    lines += ["     * needs again, memory to work in. */"]
    lines += [f"    {real} clock_start, clock_h, clock_steps;", f"    {real} remembers;"]
    if model.memory_size:
        lines += [f"    {real} memory[{model.memory_size}];"]
    if model.planned.plan.size:
        lines += [f"    {real} work[{model.planned.plan.size}];"]
    lines += [f"}} {n}_state;", "", "/* How a step went. */", "typedef struct {"]
    lines += [
        f"    {real} residual;  /* of its equations, relative to their terms */",
        f"    {real} increment; /* the largest component of h xi: how far it went on the group */",
        "    int converged;",
        f"    int iterations;   /* {model.integrator.counted} */",
        "    int in_chart;     /* whether the step may be trusted */",
        f"}} {n}_info;",
        "",
        "/* What a step returns. Unless it is OK the state has not moved. */",
        "enum {",
        *(
            f"    {n.upper()}_{word} = {k}{',' if k + 1 < len(STATUS) else ''} /* {told} */"
            for k, (word, told) in enumerate(STATUS)
        ),
        "};",
        "",
        "/* Parameters and state as they were when this was written. */",
        f"void {n}_defaults({n}_params *p, {n}_state *s);",
        "",
        "/* Forget what the last step has left for the next one. Call it after a change of the",
        " * configuration, the momentum or a parameter; t, h and inputs may change without. */",
        f"void {n}_restart({n}_state *s);",
        "",
        "/* Move the state by one step of size h. info may be a null pointer. */",
        f"int {n}_step(const {n}_params *p, {n}_state *s, {real} h, {n}_info *info);",
        "",
        "/* Take so many steps, and stop before one that fails: the state is then where that one",
        " * began. info has all iterations, the largest residual and the largest increment.",
        " * This is faster than as many calls of a single step. */",
        f"int {n}_run(const {n}_params *p, {n}_state *s, {real} h, long steps, {n}_info *info);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def declare(real: str, field: Field) -> str:
    return f"{real} {field.name}{''.join(f'[{n}]' for n in field.shape)};"


def example(model: StepModel, real: str) -> str:
    """Return a program that takes some steps and prints the state."""
    n = model.name
    h = COperations(real).literal(model.h, "float").text
    shown = [(f, k) for f in model.state for k in range(min(f.size, 12))]
    lines = [
        f"/* Take steps and print the state: {n} [steps] */",
        f'#include "{n}.h"',
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "",
        f"static {n}_params params;",
        f"static {n}_state state;",
        "",
        "int main(int count, char **words)",
        "{",
        "    const long steps = count > 1 ? atol(words[1]) : 1000;",
        f"    {n}_info info;",
        f"    {n}_defaults(&params, &state);",
        "    for (long k = 0; k < steps; ++k) {",
        f"        const int status = {n}_step(&params, &state, {h}, &info);",
        f"        if (status != {n.upper()}_OK) {{",
        '            fprintf(stderr, "step %ld failed with status %d\\n", k, status);',
        "            return status;",
        "        }",
        "    }",
        '    printf("t = %.17g\\n", (double)state.t);',
        *(f'    printf("{f.entry(k)} = %.17g\\n", (double)state.{f.entry(k)});' for f, k in shown),
        "    return 0;",
        "}",
        "",
    ]
    return "\n".join(lines)


def cmake(model: StepModel) -> str:
    """Return the file by which CMake builds the step and the example."""
    n = model.name
    return f"""{MARK}
cmake_minimum_required(VERSION 3.10)
project({n} C)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
option(FOR_THIS_PROCESSOR "Use all instructions of this processor, and contract products" OFF)
add_library({n} STATIC {n}.c)
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options({n} PRIVATE -fno-math-errno -fno-trapping-math)
  if(FOR_THIS_PROCESSOR)
    target_compile_options({n} PRIVATE -march=native -ffp-contract=fast)
  else()
    target_compile_options({n} PRIVATE -ffp-contract=off)
  endif()
endif()
target_include_directories({n} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
add_executable({n}_main {n}_main.c)
find_library(MATH_LIBRARY m)
if(MATH_LIBRARY)
  target_link_libraries({n} PUBLIC ${{MATH_LIBRARY}})
endif()
target_link_libraries({n}_main PRIVATE {n})
"""
