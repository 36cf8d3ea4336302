"""The agent's scripted model, for test suites that drive an agent of their own."""

from skillshelf.agent import ScriptedModel, call, fail

__all__ = ["ScriptedModel", "call", "fail"]
