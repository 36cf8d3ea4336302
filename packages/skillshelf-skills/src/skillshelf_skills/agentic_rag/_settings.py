"""The text after `--with agentic-rag=`: which sources the user attaches. Secrets come from the environment."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from skillshelf.errors import SettingsError
from skillshelf.text import closest_names
from skillshelf_skills._addresses import POSTGRES_PASSWORD, refuse_password, split_address

if TYPE_CHECKING:
    from skillshelf_skills.agentic_rag._sources import GraphSource, PassageSource, Sources

_NEO4J_SCHEMES = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")
_POSTGRES_SCHEMES = ("postgresql", "postgres")
_KEYS = ("docs", "graph", "web", "host", "azure")
_EXAMPLE = "--with agentic-rag=docs=handbook,graph=services.lbug"


class AzureAddress(NamedTuple):
    """An index of Azure AI Search."""

    endpoint: str
    index_name: str


class PostgresAddress(NamedTuple):
    """A table of PostgreSQL."""

    address: str
    table: str


class RagSettings(NamedTuple):
    """The sources that the user named. Nothing of them is open."""

    folders: tuple[str, ...] = ()
    graph_file: str = ""
    neo4j: str = ""
    pages: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    tables: tuple[PostgresAddress, ...] = ()
    indexes: tuple[AzureAddress, ...] = ()

    @property
    def has_graph(self) -> bool:
        return bool(self.graph_file or self.neo4j)


def parse_setting(setting: str) -> RagSettings:
    """Return the sources that a setting names; the current folder if it names none. Raises SettingsError."""
    found = RagSettings()
    for part in filter(None, map(str.strip, setting.split(","))):
        found = _add(found, part)
    if found == RagSettings():
        found = found._replace(folders=(os.path.abspath("."),))
    return found


def _add(found: RagSettings, part: str) -> RagSettings:
    scheme = part.partition("://")[0]
    if found.has_graph and (scheme in _NEO4J_SCHEMES or part.startswith("graph=")):
        raise SettingsError("One graph can be attached, and two are named.")
    if scheme in _NEO4J_SCHEMES:
        return found._replace(neo4j=_check_server(part, "neo4j", "rag-neo4j", "Put it into NEO4J_PASSWORD."))
    if scheme in _POSTGRES_SCHEMES:
        return found._replace(tables=(*found.tables, _parse_table(part)))
    key, equals, value = part.partition("=")
    if not equals:
        key = "docs"
        value = part
    match key:
        case "docs":
            return found._replace(folders=(*found.folders, _check_folder(value)))
        case "graph":
            return found._replace(graph_file=_check_file(value))
        case "web":
            return found._replace(pages=(*found.pages, _check_page(value)))
        case "host":
            from skillshelf_skills.net import parse_host

            return found._replace(hosts=(*found.hosts, parse_host(value)))
        case "azure":
            return found._replace(indexes=(*found.indexes, _parse_index(value)))
    close = closest_names(key, _KEYS)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Write one of {', '.join(_KEYS)}, or an address."
    raise SettingsError(f"agentic-rag does not know the source {key!r}. {hint} For example: {_EXAMPLE}")


def _check_folder(path: str) -> str:
    if not os.path.isdir(path):
        name = os.path.basename(path.rstrip("/"))
        raise SettingsError(f"There is no folder {name!r}. Name a folder with documents: {_EXAMPLE}")
    return os.path.abspath(path)


def _check_file(path: str) -> str:
    if not os.path.isfile(path):
        raise SettingsError(
            f"There is no graph {os.path.basename(path)!r}. Name a file that LadybugDB wrote: {_EXAMPLE}"
        )
    return os.path.abspath(path)


def _check_page(url: str) -> str:
    if split_address(url).scheme not in ("http", "https"):
        raise SettingsError("After web= comes the address of a page: web=https://docs.example/faq")
    return _check_address(url, "Leave it out.")


def _parse_table(part: str) -> PostgresAddress:
    address, _, table = part.partition("#")
    if not table:
        raise SettingsError("Name the table with the passages after #: postgresql://reader@host/name#passages")
    return PostgresAddress(_check_server(address, "psycopg", "rag-postgres", POSTGRES_PASSWORD), table)


def _parse_index(value: str) -> AzureAddress:
    parts = split_address(value)
    index = parts.path.strip("/")
    if not parts.hostname or not index or "/" in index or parts.query or parts.fragment:
        raise SettingsError("After azure= comes a service and an index: azure=https://NAME.search.windows.net/INDEX")
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_here):
        raise SettingsError("The address of Azure AI Search begins with https://")
    _check_server(value, "azure.search.documents", "rag-azure", "Put it into AZURE_SEARCH_KEY.")
    if not os.environ.get("AZURE_SEARCH_KEY"):
        raise SettingsError("Azure AI Search needs a query key. Put one into the variable AZURE_SEARCH_KEY.")
    return AzureAddress(f"{parts.scheme}://{parts.netloc}", index)


def _check_server(address: str, module: str, extra: str, remedy: str) -> str:
    """Return the address of a server that can be asked from here. `remedy` says where its password belongs."""
    if not _is_installed(module):
        raise SettingsError(f"The library {module} is not installed: pip install 'skillshelf[{extra}]'")
    return _check_address(address, remedy)


def _check_address(address: str, remedy: str) -> str:
    """Return an address with a host and without a password. Raises SettingsError, which does not repeat it."""
    refuse_password(address, remedy)
    parts = split_address(address)
    if parts.hostname is None and "host=" not in parts.query:
        raise SettingsError("One of the addresses after agentic-rag= names no host.")
    return address


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package it lies in
        return False


# -- opening


def open_sources(settings: RagSettings) -> "Sources":
    """Return the sources that the user named. None is connected yet."""
    from skillshelf_skills.agentic_rag._sources import Sources
    from skillshelf_skills.agentic_rag._web import WebPages
    from skillshelf_skills.net import NetworkRules

    web = WebPages(settings.pages, rules=NetworkRules.allowing(settings.hosts))
    return Sources(documents=_open_documents(settings), graph=_open_graph(settings), web=web)


def _open_documents(settings: RagSettings) -> "Sequence[PassageSource]":
    sources: list[PassageSource] = []
    for folder in settings.folders:
        from skillshelf_skills.agentic_rag._folder import DocumentFolder

        name = "documents" if len(settings.folders) == 1 else os.path.basename(folder) or folder
        sources.append(DocumentFolder(folder, name=name))
    for table in settings.tables:
        from skillshelf_skills.agentic_rag._postgres import PostgresPassages

        sources.append(PostgresPassages(table.address, table.table))
    for index in settings.indexes:
        from skillshelf_skills.agentic_rag._azure import AzureIndex, AzureOptions

        sources.append(AzureIndex(index.endpoint, index.index_name, options=AzureOptions.from_environment()))
    return sources


def _open_graph(settings: RagSettings) -> "GraphSource | None":
    if settings.graph_file:
        from skillshelf_skills.agentic_rag._graph_file import GraphFile

        return GraphFile(settings.graph_file)
    if settings.neo4j:
        from skillshelf_skills.agentic_rag._neo4j import Neo4jGraph

        return Neo4jGraph(settings.neo4j)
    return None
