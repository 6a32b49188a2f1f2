"""From a program to a better one, and to a plan of its memory."""
