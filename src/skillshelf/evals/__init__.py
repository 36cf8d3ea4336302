"""Evals: whether a skill is found, loaded and followed, and what that costs. Needs the extra `evals`."""
