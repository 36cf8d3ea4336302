"""The faces that skillshelf brings: each scripts a model in its framework's own way."""

from skillshelf.testing.conformance.faces._known import FACES

__all__ = ["FACES"]
