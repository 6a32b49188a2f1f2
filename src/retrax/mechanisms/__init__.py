"""Bodies, joints, wheels and what acts between them."""
