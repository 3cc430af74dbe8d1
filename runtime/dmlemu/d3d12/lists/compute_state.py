"""What a list has set for its next dispatch of a shader."""

from __future__ import annotations

import struct

from ..pipelines.pipeline_state import PipelineState
from ..pipelines.root_signature import Parameter, RootSignature

__all__ = ["ComputeState"]


class ComputeState:
    """The pipeline state, the root signature and the root arguments.

    ``lost``: what has unset all of it, as the end of a sentence; empty: nothing has.  ``unset``: why the
    argument of a parameter is not set, by its index, if it was before.
    """

    def __init__(self, pipeline: PipelineState | None = None, lost: str = "") -> None:
        self.pipeline = pipeline
        self.root_signature: RootSignature | None = None
        self.lost = lost
        self.unset: dict[int, str] = {}
        self._arguments = bytearray()
        self._is_set = bytearray()  # for each DWORD 1, if it is

    @property
    def arguments(self) -> bytes:
        """The DWORDs of all root arguments; 0 where nothing is set."""
        return bytes(self._arguments)

    def use(self, signature: RootSignature) -> None:
        """Sets the root signature; the arguments of an equal one stay."""
        if self.root_signature is None or not signature.matches(self.root_signature):
            self._arguments = bytearray(4 * signature.words)
            self._is_set = bytearray(signature.words)
            self.unset = {}
        self.root_signature = signature

    def set(self, word: int, values: bytes) -> None:
        """Sets DWORDs of root arguments."""
        self._arguments[4 * word : 4 * word + len(values)] = values
        self._is_set[word : word + len(values) // 4] = b"\1" * (len(values) // 4)

    def set_address(self, parameter: Parameter, address: int) -> None:
        """Sets the argument of a table or of a root descriptor."""
        self.unset.pop(parameter.index, None)
        self.set(parameter.word, struct.pack("<Q", address))

    def forget(self, parameter: Parameter, why: str) -> None:
        """The argument is not set any more."""
        if self.is_set(parameter.word, parameter.words):
            self.unset[parameter.index] = why
        first, end = parameter.word, parameter.word + parameter.words
        self._is_set[first:end] = bytes(end - first)
        self._arguments[4 * first : 4 * end] = bytes(4 * (end - first))

    def is_set(self, word: int, words: int) -> bool:
        """Whether all of these DWORDs are."""
        return all(self._is_set[word : word + words])

    def first_unset(self, word: int, words: int) -> int:
        """The first of these DWORDs that is not."""
        return self._is_set.index(0, word, word + words)

    def address(self, parameter: Parameter) -> int:
        """The address or handle that is the parameter's argument; 0: none is set."""
        found: int = struct.unpack_from("<Q", self._arguments, 4 * parameter.word)[0]
        return found
