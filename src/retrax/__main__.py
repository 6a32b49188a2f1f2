"""`python -m retrax` is the command `retrax`."""

from retrax.cli.main import app

app(prog_name="retrax")
