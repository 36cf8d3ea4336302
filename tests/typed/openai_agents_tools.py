"""A program with an agent of the OpenAI Agents SDK: the shelf's tools are a list that the agent takes as it is."""

from typing import Any

from agents import Agent

from skillshelf import Shelf
from skillshelf.adapters.openai_agents import Skills

skills = Skills(Shelf.open("."))
agent = Agent[Any]("helper", instructions=skills.instructions("You help."), tools=skills.tools())
