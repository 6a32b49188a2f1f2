"""How fast retrax is on this machine, against C kernels written by hand."""
