"""``.dmlrec`` files: a zip archive of ``manifest.json`` and one ``.npy`` file for each different content.

Nothing in them is executed or unpickled.  What the manifest says of each entry is compared with the archive's
directory before the entry is read.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from io import BufferedReader, FileIO
from math import prod
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .. import dml
from ..diagnostics.location import spell_late
from ..errors import shorten
from ..files import NotRegular, Output, open_regular
from ..frontends.dxdispatch.desc_writer import write_operator_desc, write_tensor_desc
from ..frontends.dxdispatch.errors import ModelError
from ..frontends.dxdispatch.json_text import parse_json
from ..frontends.dxdispatch.node import Node
from ..frontends.dxdispatch.npy import npy_header
from ..frontends.dxdispatch.operator_desc import read_operator_desc, read_tensor_desc
from ..interrupts import held
from .model import (
    COMPUTE_SHADER,
    Array,
    Dispatch,
    GraphWork,
    Place,
    Record,
    RecordedTensor,
    ShaderWork,
    Work,
    Written,
    content_key,
)
from .shader_file import read_shader, written_shader

__all__ = ["RecordError", "open_file", "read", "write", "write_to"]

_FORMAT = "dmlrec"
_VERSIONS = (1, 2)
"""2 has dispatches of shaders, which 1 had not; a record without them is written as 1."""
_MANIFEST = "manifest.json"
_MOST_MANIFEST = 1 << 28  # bytes
_MOST_DIRECTORY = 1 << 28  # which is no longer than the manifest
_MOST_RANK = 8
_AT_ONCE = 1 << 20  # bytes written between two looks for Ctrl-C
_INTEGERS = tuple(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
_DTYPES = ("float16", "float32", "float64", *_INTEGERS, "bool")
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
)


class RecordError(ValueError):
    """A record, or what it is compared with, cannot be used; the text says which entry and why."""


# --- writing ---


def write(record: Record, path: str | os.PathLike[str]) -> None:
    """Writes a record; a file that is there is replaced once the new one is whole."""
    write_to(record, Output(path))


def write_to(record: Record, output: Output) -> None:
    """Writes a record into a file that was looked at before."""
    # An archive that is left at any moment says so in its finalizer.  A pipe that nobody reads can be left.
    holding = nullcontext(_nothing) if output.place is None else held()
    with holding as look, output.open() as file, _new_archive(file) as archive:
        archive.writestr(_MANIFEST, json.dumps(spell_late(_manifest(record)), allow_nan=False))
        for key, array in record.contents.items():
            with archive.open(zipfile.ZipInfo(_entry(key)), "w", force_zip64=True) as entry:
                entry.write(npy_header(array.dtype, array.shape))
                data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                for start in range(0, data.size, _AT_ONCE):
                    look()
                    entry.write(data[start : start + _AT_ONCE].data)


def _nothing() -> None:
    return None


def _new_archive(file: BinaryIO) -> zipfile.ZipFile:
    return zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)


def _entry(key: str) -> str:
    return f"contents/{key}.npy"


def _manifest(record: Record) -> dict[str, Any]:
    works = {id(each.work): each.work for each in record.dispatches}
    numbers = {name: number for number, name in enumerate(works)}
    return {
        "format": _FORMAT,
        "version": 2 if any(isinstance(work.desc, ShaderWork) for work in works.values()) else 1,
        "notes": record.notes,
        "contents": {
            key: {"dtype": array.dtype.name, "shape": list(array.shape)}
            for key, array in record.contents.items()
        },
        "buffers": record.buffers,
        "written": [[each.before, *each.place, each.size] for each in record.written],
        "works": [_written_work(work) for work in works.values()],
        "dispatches": [
            {
                "work": numbers[id(each.work)],
                "list": each.list,
                "command": each.command,
                "site": each.site,
                "contents": each.contents,
                "undefined": each.undefined,
                "places": each.places,
                "where": each.where,
            }
            for each in record.dispatches
        ],
    }


def _written_work(work: Work) -> dict[str, Any]:
    written: dict[str, Any] = {
        "name": work.name,
        "type": work.type,
        "flags": int(work.flags),
        "level": work.level.name,
        "tensors": [
            {
                "path": each.path,
                "output": each.output,
                "owned": each.owned,
                "desc": write_tensor_desc(each.desc),
            }
            for each in work.tensors
        ],
    }
    if isinstance(work.desc, str):
        written["unknown"] = work.desc
    elif isinstance(work.desc, GraphWork):
        nodes = [
            {"constant": node} if isinstance(node, str) else {"operator": write_operator_desc(node)}
            for node in work.desc.nodes
        ]
        written["graph"] = {**work.desc._asdict(), "nodes": nodes}
    elif isinstance(work.desc, ShaderWork):
        written["shader"] = written_shader(work.desc)
    else:
        written["operator"] = write_operator_desc(work.desc)
    return written


# --- reading ---


def read(path: str | os.PathLike[str]) -> Record:
    """The record in a file.  Contents are read when they are asked for.

    Raises :class:`RecordError` for a file that is not one, or not complete; OSError.
    """
    name = shorten(os.fspath(path))
    source = open_file(path, "a .dmlrec file")
    try:
        archive = _Archive(source)
    except _ZIP_ERRORS as error:
        source.close()
        raise RecordError(
            f"{name} is not a .dmlrec file: {_reason(error)}; expected a zip archive."
        ) from None
    try:
        return _Reader(name, archive).record()
    except ModelError as error:
        archive.close()
        report = error.report
        expected = f"; expected {report.expected}" if report.expected else ""
        raise RecordError(f"{name}, {_MANIFEST}: {report.message.rstrip('.')}{expected}.") from None
    except BaseException:
        archive.close()
        raise


def open_file(path: str | os.PathLike[str], expected: str) -> FileIO:
    """A regular file that is read: ``expected``, as a message names it.  RecordError: it is not regular;
    OSError.
    """
    try:
        return open_regular(path)
    except NotRegular as error:
        raise RecordError(f"{shorten(str(error))}; expected {expected}.") from None


class _Source(BufferedReader):
    """The file of an archive; no more than ``most`` bytes are read at once."""

    most = _MOST_DIRECTORY

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self.most:
            raise zipfile.BadZipFile(f"its directory has {size} bytes, more than {self.most}")
        return super().read(size)


class _Archive(zipfile.ZipFile):
    """Closes the file that it reads."""

    def __init__(self, file: FileIO) -> None:
        self._source = _Source(file)
        super().__init__(self._source)
        self._source.most = sys.maxsize

    def close(self) -> None:
        super().close()
        self._source.close()


def _reason(error: BaseException) -> str:
    return shorten(" ".join(str(error).split())) or type(error).__name__


class _Content(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    info: zipfile.ZipInfo


class _Contents(Mapping[str, Array]):
    """The contents of a file, read on request; the last ones are kept."""

    def __init__(self, name: str, archive: zipfile.ZipFile, contents: Mapping[str, _Content]) -> None:
        self._name, self._archive, self._contents = name, archive, contents
        self._kept: dict[str, Array] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)

    def __contains__(self, key: object) -> bool:
        return key in self._contents

    def __getitem__(self, key: str) -> Array:
        if key not in self._kept:
            while len(self._kept) >= 64:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = self._read(key)
        return self._kept[key]

    def _read(self, key: str) -> Array:
        dtype, shape, info = self._contents[key]
        header, where = npy_header(dtype, shape), f"{self._name}, {info.filename}"
        try:
            with self._archive.open(info) as file:
                data = file.read(info.file_size + 1)
        except _ZIP_ERRORS as error:
            raise RecordError(f"{where} cannot be read: {_reason(error)}.") from None
        if len(data) != info.file_size or not data.startswith(header):
            raise RecordError(f"{where} is not an array of {dtype.name} {list(shape)}, as the manifest says.")
        array = np.frombuffer(data, dtype, offset=len(header)).reshape(shape)
        if content_key(array) != key:
            raise RecordError(
                f"{where} has other elements than were recorded: their hash is {content_key(array)}."
            )
        return array


class _Reader:
    """Reads the manifest; ModelError names the member that is wrong."""

    def __init__(self, name: str, archive: zipfile.ZipFile) -> None:
        self._name, self._archive = name, archive
        self._infos = {info.filename: info for info in archive.infolist()}

    def record(self) -> Record:
        root = Node(self._manifest())
        kind, version = root["format"].string(), root["version"].uint32()
        if kind != _FORMAT or version not in _VERSIONS:
            expected = f"'{_FORMAT}', version {' or '.join(map(str, _VERSIONS))}"
            raise self._bad(f"format is {kind!r:.40}, version {version}", expected)
        self._found = {key: self._content(key, node) for key, node in root["contents"].members()}
        record = Record(_Contents(self._name, self._archive, self._found))
        record.notes = [each.string() for each in root["notes"].elements()]
        record.buffers = [each.string() for each in root["buffers"].elements()]
        record.written = [self._written(each, record) for each in root["written"].elements()]
        works = [self._work(each) for each in root["works"].elements()]
        for number, node in enumerate(root["dispatches"].elements()):
            record.dispatches.append(self._dispatch(number, node, works, record))
        return record

    def _bad(self, given: str, expected: str) -> RecordError:
        return RecordError(f"{self._name}, {_MANIFEST}: {given}; expected {expected}.")

    def _manifest(self) -> Any:
        info = self._infos.get(_MANIFEST)
        if info is None:
            raise RecordError(f"{self._name} is not a .dmlrec file: it has no {_MANIFEST}.")
        if info.file_size > _MOST_MANIFEST:
            raise self._bad(f"it has {info.file_size} bytes", f"at most {_MOST_MANIFEST}")
        try:
            with self._archive.open(info) as file:
                text = file.read(info.file_size).decode("utf-8")
        except _ZIP_ERRORS as error:  # UnicodeDecodeError is a ValueError
            raise RecordError(f"{self._name}, {_MANIFEST} cannot be read: {_reason(error)}.") from None
        return parse_json(text, _MANIFEST)

    def _content(self, key: str, node: Node) -> _Content:
        name, shape = node["dtype"].string(), tuple(node["shape"].uint32_array())
        if name not in _DTYPES or len(shape) > _MOST_RANK:
            raise self._bad(
                f"{node.path} is an array of {shorten(name)} with {len(shape)} dimensions",
                f"one of {', '.join(_DTYPES)} with at most {_MOST_RANK}",
            )
        info = self._infos.get(_entry(key))
        if info is None:
            raise RecordError(f"{self._name} has no entry {shorten(_entry(key))}, which the manifest names.")
        dtype = np.dtype(name)
        size = len(npy_header(dtype, shape)) + prod(shape) * dtype.itemsize
        if info.file_size != size:
            raise RecordError(
                f"{self._name}, {shorten(_entry(key))} has {info.file_size} bytes; expected {size} "
                f"for {name} {list(shape)}."
            )
        return _Content(dtype, shape, info)

    # --- works ---

    def _work(self, node: Node) -> Work:
        level = node["level"].string()
        if level not in dml.FeatureLevel.__members__:
            raise self._bad(f"{node.path}.level is '{shorten(level)}'", "a feature level, such as LEVEL_6_4")
        tensors = tuple(
            RecordedTensor(
                each["path"].string(),
                each["output"].boolean(),
                each["owned"].boolean(),
                self._tensor(each["desc"]),
            )
            for each in node["tensors"].elements()
        )
        kind, desc = node["type"].string(), self._desc(node, tensors)
        if not isinstance(desc, str) and isinstance(desc, ShaderWork) is not (kind == COMPUTE_SHADER):
            expected = f"'{COMPUTE_SHADER}' where the work is a shader, and nowhere else"
            raise self._bad(f"{node.path}.type is '{shorten(kind)}'", expected)
        return Work(
            node["name"].string(),
            kind,
            dml.ExecutionFlags(node["flags"].uint32()),
            dml.FeatureLevel[level],
            desc,
            tensors,
        )

    def _tensor(self, node: Node) -> dml.BufferTensorDesc:
        desc = read_tensor_desc(node)
        if desc.data_type is dml.TensorDataType.UNKNOWN:
            raise self._bad(f"{node.path}.DataType is UNKNOWN", "a data type")
        return replace(desc, sizes=tuple(desc.sizes))

    def _desc(self, node: Node, tensors: tuple[RecordedTensor, ...]) -> Any:
        unknown, operator, shader = (node.get(name) for name in ("unknown", "operator", "shader"))
        if unknown is not None:
            return unknown.string()
        if shader is not None:
            return read_shader(shader, tensors, self._bytes)
        return self._graph(node["graph"]) if operator is None else read_operator_desc(operator)

    def _bytes(self, node: Node) -> str:
        """The key of a content that is an array of bytes."""
        key = self._key(node)
        found = self._found[key]
        if (found.dtype, len(found.shape)) != (np.dtype(np.uint8), 1):
            given = f"{found.dtype.name} {list(found.shape)}"
            raise self._bad(f"{node.path} is an array of {given}", "an array of uint8 with one dimension")
        return key

    def _graph(self, node: Node) -> GraphWork:
        nodes: list[Any] = []
        for each in node["nodes"].elements():
            constant = each.get("constant")
            if constant is None:
                nodes.append(read_operator_desc(each["operator"]))
            else:
                nodes.append(self._key(constant))
        names = [each.string() for each in node["names"].elements()]
        if len(names) != len(nodes):
            raise self._bad(
                f"{node.path}.names has {len(names)} elements", f"{len(nodes)}, one for each node"
            )
        return GraphWork(
            tuple(nodes),
            tuple(names),
            node["input_count"].uint32(),
            node["output_count"].uint32(),
            self._edges(node["input_edges"], 3),
            self._edges(node["output_edges"], 3),
            self._edges(node["intermediate_edges"], 4),
        )

    def _edges(self, node: Node, count: int) -> Any:
        edges = [(each, each.uint32_array()) for each in node.elements()]
        for each, numbers in edges:
            if len(numbers) != count:
                raise self._bad(f"{each.path} has {len(numbers)} numbers", f"{count}")
        return tuple(tuple(numbers) for _, numbers in edges)

    # --- dispatches ---

    def _written(self, node: Node, record: Record) -> Written:
        numbers = node.elements()
        if len(numbers) != 4:
            raise self._bad(f"{node.path} has {len(numbers)} elements", "4")
        before, buffer, offset, size = numbers
        return Written(before.uint32(), self._place(buffer, offset, record), size.uint64())

    def _place(self, buffer: Node, offset: Node, record: Record) -> Place:
        if buffer.uint32() >= len(record.buffers):
            raise self._bad(
                f"{buffer.path} is {buffer.uint32()}",
                f"less than {len(record.buffers)}, the number of buffers",
            )
        return Place(buffer.uint32(), offset.uint64())

    def _where(self, node: Node, record: Record) -> Place | None:
        if node.value is None:
            return None
        numbers = node.elements()
        if len(numbers) != 2:
            raise self._bad(f"{node.path} has {len(numbers)} elements", "2")
        buffer, offset = numbers
        return self._place(buffer, offset, record)

    def _dispatch(self, number: int, node: Node, works: list[Work], record: Record) -> Dispatch:
        at = node["work"].uint32()
        if at >= len(works):
            raise self._bad(f"{node.path}.work is {at}", f"less than {len(works)}, the number of works")
        work = works[at]
        contents, undefined = (self._keys(node[name], work) for name in ("contents", "undefined"))
        places = [each.string() for each in node["places"].elements()]
        if len(places) != len(work.tensors):
            raise self._bad(f"{node.path}.places has {len(places)} elements", f"{len(work.tensors)}")
        where = [self._where(each, record) for each in node["where"].elements()]
        if len(where) != len(work.tensors):
            raise self._bad(f"{node.path}.where has {len(where)} elements", f"{len(work.tensors)}")
        for i, tensor in enumerate(work.tensors):
            self._check(f"{node.path}.contents[{i}]", contents[i], tensor, tensor.desc.dtype)
            self._check(f"{node.path}.undefined[{i}]", undefined[i], tensor, np.dtype(np.bool_))
        return Dispatch(
            number,
            work,
            node["list"].string(),
            node["command"].uint32(),
            node["site"].string(),
            contents,
            undefined,
            tuple(places),
            tuple(where),
        )

    def _keys(self, node: Node, work: Work) -> tuple[str | None, ...]:
        elements = node.elements()
        if len(elements) != len(work.tensors):
            raise self._bad(
                f"{node.path} has {len(elements)} elements", f"{len(work.tensors)}, one for each tensor"
            )
        return tuple(None if each.value is None else self._key(each) for each in elements)

    def _key(self, node: Node) -> str:
        key = node.string()
        if key not in self._found:
            raise self._bad(
                f"{node.path} names the content '{shorten(key)}'", "one of the manifest's contents"
            )
        return key

    def _check(self, path: str, key: str | None, tensor: RecordedTensor, dtype: np.dtype[Any]) -> None:
        """The content has the type and sizes of the tensor."""
        if key is None:
            return
        found, sizes = self._found[key], tuple(tensor.desc.sizes)
        if (found.dtype, found.shape) != (dtype, sizes):
            raise self._bad(
                f"{path} is an array of {found.dtype.name} {list(found.shape)}",
                f"{dtype.name} {list(sizes)} for {shorten(tensor.path)}",
            )
