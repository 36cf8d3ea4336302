"""Similarity of meaning: texts as averages of word-piece vectors from a table that is on this machine.

The table and its tokenizer are files of the package `wordllama`, which is not imported itself: that would import
pydantic and requests, and takes longer than a search. Nothing is downloaded.
"""

import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Optional

from skillshelf.errors import MissingExtraError
from skillshelf.search._limits import MAX_COMPARED

Array = Any
"""An array of NumPy, which is there with the extra `search` alone."""
_TABLE = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_BLOCK = 1_024
"""Vectors compared at once. For more, NumPy's BLAS starts threads, which takes 40 times as long on a busy machine."""
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


def embed_texts(texts: Sequence[str]) -> list[list[float]]:
    """Return a vector of 256 numbers and length one for each text, for a store of vectors elsewhere.

    Raises MissingExtraError without the extra `search`.
    """
    encoder = load_encoder()
    if encoder is None:
        raise MissingExtraError("Vectors of texts", "search")
    vectors: list[list[float]] = encoder.encode(texts).tolist()
    return vectors


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
        batch = [_clean(text) for text in texts]
        for row, encoding in enumerate(self._tokenizer.encode_batch(batch)):
            if encoding.ids:
                vectors[row] = self._table[encoding.ids].astype(np.float32).mean(axis=0)
        lengths: Array = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(lengths, 1e-9)


class Vectors:
    """The vectors of a collection by id, a byte for each dimension. New ids only grow."""

    def __init__(self, encoder: Encoder, packed: Mapping[int, bytes | None]) -> None:
        import numpy as np

        self._encoder = encoder
        self.dimensions = encoder.dimensions
        self._ids: Array = np.zeros(0, np.int64)
        """Sorted. A vector that is missing or was removed is all zeros."""
        self._rows: Array = np.zeros((0, self.dimensions), np.int8)
        self.put(packed)

    def pack(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vectors of texts."""
        import numpy as np

        rows: Array = np.rint(self._encoder.encode(texts) * _SCALE).astype(np.int8)
        return [row.tobytes() for row in rows]

    def put(self, packed: Mapping[int, bytes | None]) -> None:
        """Add vectors in the order of their ids, or replace those that are there."""
        import numpy as np

        blank = bytes(self.dimensions)
        data = b"".join(row if row is not None and len(row) == len(blank) else blank for row in packed.values())
        rows: Array = np.frombuffer(data, np.int8).reshape(-1, self.dimensions)
        ids: Array = np.fromiter(packed, np.int64, len(packed))
        last = self._ids[-1] if len(self._ids) else -1
        is_new = ids > last
        self._rows[np.searchsorted(self._ids, ids[~is_new])] = rows[~is_new]
        if is_new.any():
            self._ids = np.concatenate([self._ids, ids[is_new]])
            self._rows = np.concatenate([self._rows, rows[is_new]])

    def remove(self, ids: Sequence[int]) -> None:
        import numpy as np

        self._rows[np.searchsorted(self._ids, ids)] = 0

    def compare(self, query: str) -> "Similarities":
        """Return how similar each text is to the query: 1 for the same direction, 0 for unrelated."""
        import numpy as np

        vector: Array = self._encoder.encode([query])[0] / _SCALE
        values: Array = np.empty(len(self._rows), np.float32)
        for start in range(0, len(self._rows), _BLOCK):
            block = self._rows[start : start + _BLOCK]
            values[start : start + len(block)] = block.astype(np.float32) @ vector
        return Similarities(self._ids, np.maximum(values, 0))


class Similarities:
    """The similarity of each text to a query."""

    def __init__(self, ids: Array, values: Array) -> None:
        self._ids = ids
        self._values = values

    def best(self, count: int) -> list[int]:
        """Return the ids of the most similar texts, in no order."""
        import numpy as np

        rows: Array = np.arange(len(self._values))
        if len(rows) > count:
            rows = np.argpartition(-self._values, count)[:count]
        ids: list[int] = self._ids[rows[self._values[rows] > 0]].tolist()
        return ids

    def of(self, ids: Sequence[int]) -> list[float]:
        import numpy as np

        values: list[float] = self._values[np.searchsorted(self._ids, ids)].tolist()
        return values


def _clean(text: str) -> str:
    """Return the part of a text that is compared. The tokenizer refuses half surrogates, and ends at a null."""
    return text[:MAX_COMPARED].replace("\0", " ").encode("utf-8", "replace").decode()
