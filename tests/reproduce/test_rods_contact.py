"""The findings about two rods in space."""

from retrax.reproduce.rods_contact import Measured, _findings


def test_findings_name_what_was_measured():
    found = Measured(
        rolling=None,
        forces={"least pressure": 0.0322, "largest pressure": 0.0458, "friction needed": 0.715},
        gaps={"RollingVerlet": 2e-16, "printed 8": 0.003, "printed 10": 0.023},
        energies={"RollingVerlet": 5.6e-7, "RollingDKD": 5.5e-7},
        events={"kick x 8": "Separation at t = 0.093291", "friction 0.5": "Slip at t = 0.0747"},
        frequencies={"true": 0.642979, "printed shear": 0.9069, "printed bending": 1.570796},
    )
    text = " ".join(cell for finding in _findings(found, 40.0) for cell in finding)
    for piece in (
        "0.30 %",
        "2.30 %",
        "2e-16",
        "0.642979",
        "Separation at t",
        "5.6e-07",
        "0.715 of",
    ):
        assert piece in text
