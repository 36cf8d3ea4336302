"""Similarity of meaning: texts as averages of word-piece vectors from a table that lies on this machine.

The table and its tokenizer are files of the package `wordllama`, which is not imported itself: that would import
pydantic and requests, and takes longer than a search. Nothing is downloaded.
"""

import importlib.util
import json
import os
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from skillshelf.descriptor import SkillDescriptor

Array = Any
"""An array of NumPy, which is there with the extra `search` alone."""
_TABLE = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_MAX_CHARACTERS = 2_000
"""Characters of a text that are compared. A description has at most 1,024 that are shown."""
_BLOCK = 4_096
"""Vectors compared at once. They are stored in bytes, and one block of floats fits the processor's cache."""
_SCALE = 127


def is_similarity_installed() -> bool:
    """Return whether the libraries of the extra `search` are installed."""
    return all(importlib.util.find_spec(name) for name in ("numpy", "tokenizers", "wordllama"))


@cache
def load_encoder() -> Optional["Encoder"]:
    """Return the encoder, or None without the extra `search`."""
    if not is_similarity_installed():
        return None
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        return None
    folder = os.path.dirname(spec.origin)
    paths = [os.path.join(folder, name) for name in (_TABLE, _TOKENIZER)]
    if not all(map(os.path.isfile, paths)):
        return None  # another version of the package, with another table
    return Encoder(*paths)


class Encoder:
    """Turns texts into vectors of length one."""

    def __init__(self, table_path: str, tokenizer_path: str) -> None:
        import numpy as np
        from tokenizers import Tokenizer

        # The format: the length of a JSON header, the header, and the numbers.
        header_size = int(np.fromfile(table_path, "<u8", 1)[0])
        header = json.loads(np.fromfile(table_path, "u1", header_size, offset=8).tobytes())
        rows, self.dimensions = header["embedding.weight"]["shape"]
        self._table: Array = np.memmap(table_path, "<f2", "r", 8 + header_size, (rows, self.dimensions))
        self._tokenizer: Any = Tokenizer.from_file(tokenizer_path)

    def encode(self, texts: Sequence[str]) -> Array:
        import numpy as np

        vectors: Array = np.zeros((len(texts), self.dimensions), np.float32)
        batch = [text[:_MAX_CHARACTERS].replace("\0", " ") for text in texts]
        for row, encoding in enumerate(self._tokenizer.encode_batch(batch)):
            if encoding.ids:
                vectors[row] = self._table[encoding.ids].astype(np.float32).mean(axis=0)
        lengths: Array = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(lengths, 1e-9)


class Vectors:
    """The vectors of a collection, in a byte for each dimension."""

    def __init__(self, encoder: Encoder) -> None:
        import numpy as np

        self._encoder = encoder
        self._rows: Array = np.zeros((0, encoder.dimensions), np.int8)
        self._count = 0

    def append(self, texts: Sequence[str]) -> None:
        import numpy as np

        end = self._count + len(texts)
        if end > len(self._rows):
            larger: Array = np.zeros((max(end, self._count * 9 // 8), self._encoder.dimensions), np.int8)
            larger[: self._count] = self._rows[: self._count]
            self._rows = larger
        self._rows[self._count : end] = np.rint(self._encoder.encode(texts) * _SCALE).astype(np.int8)
        self._count = end

    def compare(self, query: str) -> Array:
        """Return how similar each text is to the query: 1 for the same direction, 0 for unrelated."""
        import numpy as np

        vector: Array = self._encoder.encode([query])[0] / _SCALE
        similarities: Array = np.empty(self._count, np.float32)
        for start in range(0, self._count, _BLOCK):
            block = self._rows[start : min(start + _BLOCK, self._count)]
            similarities[start : start + len(block)] = block.astype(np.float32) @ vector
        return np.maximum(similarities, 0)

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return int(self._rows.nbytes)


def text_to_compare(skill: "SkillDescriptor") -> str:
    """Return a skill's name in words, and its description."""
    import re

    name = re.sub(r"(?<=[a-z])(?=[A-Z])|[-_]", " ", skill.name)
    return f"{name}. {skill.description}"
