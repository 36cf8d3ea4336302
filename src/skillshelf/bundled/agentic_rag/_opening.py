"""Sources from settings. Secrets come from the environment."""

import os
from collections.abc import Sequence

from skillshelf.bundled.agentic_rag._settings import RagSettings
from skillshelf.bundled.agentic_rag._sources import GraphSource, PassageSource, Sources


def open_sources(settings: RagSettings) -> Sources:
    """Return the sources that the user named. None is connected yet."""
    from skillshelf.bundled.agentic_rag._web import WebPages
    from skillshelf.net import NetworkRules

    web = WebPages(settings.pages, rules=NetworkRules.allowing(settings.hosts))
    return Sources(documents=_open_documents(settings), graph=_open_graph(settings), web=web)


def _open_documents(settings: RagSettings) -> Sequence[PassageSource]:
    sources: list[PassageSource] = []
    for folder in settings.folders:
        from skillshelf.bundled.agentic_rag._folder import DocumentFolder

        name = "documents" if len(settings.folders) == 1 else os.path.basename(folder) or folder
        sources.append(DocumentFolder(folder, name=name))
    for table in settings.tables:
        from skillshelf.bundled.agentic_rag._postgres import PostgresPassages

        sources.append(PostgresPassages(table.address, table.table))
    for index in settings.indexes:
        from skillshelf.bundled.agentic_rag._azure import AzureIndex, AzureOptions

        sources.append(AzureIndex(index.endpoint, index.index_name, options=AzureOptions.from_environment()))
    return sources


def _open_graph(settings: RagSettings) -> GraphSource | None:
    if settings.graph_file:
        from skillshelf.bundled.agentic_rag._graph_file import GraphFile

        return GraphFile(settings.graph_file)
    if settings.neo4j:
        from skillshelf.bundled.agentic_rag._neo4j import Neo4jGraph

        return Neo4jGraph(settings.neo4j)
    return None
