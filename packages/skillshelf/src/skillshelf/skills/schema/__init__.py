"""The parameters of a tool: JSON Schema for the model, checked and converted arguments for the method."""

from skillshelf.skills.schema._docstring import Docstring, parse_docstring
from skillshelf.skills.schema._hints import parameters_of, return_hint, shape_of_result
from skillshelf.skills.schema._shapes import Mismatch, Shape

__all__ = ["Docstring", "Mismatch", "Shape", "parameters_of", "parse_docstring", "return_hint", "shape_of_result"]
