"""Artefacts: the files that a trial created or changed, kept beside the report so that a person can open them."""

from skillshelf.evals.artefacts._artefact import NO_ARTEFACTS, Artefact, ArtefactKind, Artefacts, LeftOut
from skillshelf.evals.artefacts._folder import ARTEFACTS_FOLDER, ArtefactFolder

__all__ = [
    "ARTEFACTS_FOLDER",
    "NO_ARTEFACTS",
    "Artefact",
    "ArtefactFolder",
    "ArtefactKind",
    "Artefacts",
    "LeftOut",
]
