"""The fixtures of the library's threats."""

from threats.conftest import ordinary_user

__all__ = ["ordinary_user"]
