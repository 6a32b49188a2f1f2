"""Parameters and motions from measurements: data, fits, smoothing."""
