"""A code skill that reports where its tool runs."""

import threading

from skillshelf import BaseSkill, tool


class Place(BaseSkill):
    name, description, instructions = "place", "Where.", "Ask."

    def __init__(self) -> None:
        self.on_main_thread: list[bool] = []

    @tool
    def where(self) -> str:
        """Report where this runs."""
        self.on_main_thread.append(threading.current_thread() is threading.main_thread())
        return "here"
