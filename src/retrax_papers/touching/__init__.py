"""Rods that touch: a capstan, a twisted ring and an overhand knot."""
