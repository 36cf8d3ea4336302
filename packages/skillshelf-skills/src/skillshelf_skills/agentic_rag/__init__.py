"""Retrieval over documents, a graph and the web: the sources, and the protocols for sources of your own."""

from typing import TYPE_CHECKING

from skillshelf.lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf_skills.agentic_rag._azure import AzureIndex, AzureOptions
    from skillshelf_skills.agentic_rag._folder import DocumentFolder, FolderLimits
    from skillshelf_skills.agentic_rag._graph_file import GraphFile
    from skillshelf_skills.agentic_rag._graphs import Template
    from skillshelf_skills.agentic_rag._neo4j import Neo4jGraph
    from skillshelf_skills.agentic_rag._postgres import PostgresPassages
    from skillshelf_skills.agentic_rag._sources import (
        GraphSource,
        Passage,
        PassageSource,
        Sources,
        WebPage,
        WebSource,
    )
    from skillshelf_skills.agentic_rag._web import WebPages

__all__ = [
    "AzureIndex",
    "AzureOptions",
    "DocumentFolder",
    "FolderLimits",
    "GraphFile",
    "GraphSource",
    "Neo4jGraph",
    "Passage",
    "PassageSource",
    "PostgresPassages",
    "Sources",
    "Template",
    "WebPage",
    "WebPages",
    "WebSource",
]

# The skill and its worker processes start without the libraries of sources, which take 0.65 s to import.
__getattr__ = export_lazily(
    __name__,
    {
        "_azure": ["AzureIndex", "AzureOptions"],
        "_folder": ["DocumentFolder", "FolderLimits"],
        "_graph_file": ["GraphFile"],
        "_graphs": ["Template"],
        "_neo4j": ["Neo4jGraph"],
        "_postgres": ["PostgresPassages"],
        "_sources": ["GraphSource", "Passage", "PassageSource", "Sources", "WebPage", "WebSource"],
        "_web": ["WebPages"],
    },
    extra="rag",
)
