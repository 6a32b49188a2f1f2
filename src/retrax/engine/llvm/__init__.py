"""From a program to LLVM assembly and machine code."""
