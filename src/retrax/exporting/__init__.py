"""A step outside of Python: C sources, objects, WebAssembly, FMUs."""
