"""One scalar program for a step, and the back ends that run it.

The folders are in the order of the pipeline: `trace` turns a step into a program, `axes` keeps long
axes as loops, `passes` improve the program, `llvm` prints and compiles it, `backends` run it. The
language of programs itself (`program`, `kinds`, `builder`, `listing`) is what they all share.
`step_program` is the way in. The page docs/engine.md goes through them with one small example, and
has a table of the words that are used here.
"""
