"""The faces that skillshelf brings, each with its framework's own way to script a model."""

from skillshelf.testing.conformance.faces._known import FACES

__all__ = ["FACES"]
