"""The version, in one place: the package's, and that of what reads a scan cache."""

__version__ = "0.1.0"
