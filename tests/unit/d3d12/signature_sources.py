"""Root signatures as plain data, for DXC, which takes them as text, and for the structs of ours.

A signature is a dict of ``flags``, ``parameters`` and ``samplers``; nothing here needs more than Python, so
that make_signatures.py runs where DXC is installed.
"""

from __future__ import annotations

import random
from typing import Any

Signature = dict[str, Any]

UNBOUNDED = APPEND = 0xFFFF_FFFF
_LETTERS = {"CBV": "b", "SRV": "t", "UAV": "u", "Sampler": "s"}
_VISIBILITIES = ["ALL", "VERTEX", "HULL", "DOMAIN", "GEOMETRY", "PIXEL", "AMPLIFICATION", "MESH"]
_DATA = ["DATA_VOLATILE", "DATA_STATIC_WHILE_SET_AT_EXECUTE", "DATA_STATIC"]
_RANGE_FLAGS = ["DESCRIPTORS_VOLATILE", *_DATA, "DESCRIPTORS_STATIC_KEEPING_BUFFER_BOUNDS_CHECKS"]
_ROOT_FLAGS = [
    "ALLOW_INPUT_ASSEMBLER_INPUT_LAYOUT",
    "DENY_VERTEX_SHADER_ROOT_ACCESS",
    "DENY_HULL_SHADER_ROOT_ACCESS",
    "DENY_DOMAIN_SHADER_ROOT_ACCESS",
    "DENY_GEOMETRY_SHADER_ROOT_ACCESS",
    "DENY_PIXEL_SHADER_ROOT_ACCESS",
    "ALLOW_STREAM_OUTPUT",
    "LOCAL_ROOT_SIGNATURE",
    "DENY_AMPLIFICATION_SHADER_ROOT_ACCESS",
    "DENY_MESH_SHADER_ROOT_ACCESS",
    "CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED",
    "SAMPLER_HEAP_DIRECTLY_INDEXED",
]
_SAMPLER_WORDS = {
    "filter": ("FILTER_", ["MIN_MAG_MIP_POINT", "ANISOTROPIC", "COMPARISON_MIN_MAG_LINEAR_MIP_POINT"]),
    "addressU": ("TEXTURE_ADDRESS_", ["WRAP", "MIRROR", "CLAMP", "BORDER", "MIRROR_ONCE"]),
    "addressV": ("TEXTURE_ADDRESS_", ["WRAP", "MIRROR", "CLAMP", "BORDER", "MIRROR_ONCE"]),
    "addressW": ("TEXTURE_ADDRESS_", ["WRAP", "MIRROR", "CLAMP", "BORDER", "MIRROR_ONCE"]),
    "comparisonFunc": ("COMPARISON_", ["NEVER", "LESS", "LESS_EQUAL", "GREATER", "ALWAYS"]),
    "borderColor": (
        "STATIC_BORDER_COLOR_",
        ["TRANSPARENT_BLACK", "OPAQUE_BLACK", "OPAQUE_WHITE", "OPAQUE_BLACK_UINT", "OPAQUE_WHITE_UINT"],
    ),
}


def text(given: Signature, version: str) -> str:
    """The signature in the language of HLSL's attribute RootSignature, for version ``1_0`` or ``1_1``."""
    flags = [f"RootFlags({' | '.join(given['flags'])})"] if given["flags"] else []
    parameters = [_parameter(each, version) for each in given["parameters"]]
    return ", ".join([*flags, *parameters, *map(_sampler, given["samplers"])])


def _parameter(given: dict[str, Any], version: str) -> str:
    seen = f"visibility=SHADER_VISIBILITY_{given['visibility']}"
    if given["kind"] == "Table":
        return f"DescriptorTable({', '.join([*(_range(each, version) for each in given['ranges']), seen])})"
    register = f"space={given['space']}, {seen}"
    if given["kind"] == "Constants":
        return f"RootConstants(num32BitConstants={given['count']}, b{given['register']}, {register})"
    letter = _LETTERS[given["kind"]]
    return f"{given['kind']}({letter}{given['register']}, {register}{_flags(given, version)})"


def _flags(given: dict[str, Any], version: str) -> str:
    return f", flags={' | '.join(given['flags'])}" if given["flags"] and version == "1_1" else ""


def _range(given: dict[str, Any], version: str) -> str:
    count = "unbounded" if given["count"] == UNBOUNDED else given["count"]
    offset = "" if given["offset"] == APPEND else f", offset={given['offset']}"
    register = f"{_LETTERS[given['kind']]}{given['register']}, space={given['space']}"
    return f"{given['kind']}({register}, numDescriptors={count}{offset}{_flags(given, version)})"


def _sampler(given: dict[str, Any]) -> str:
    words = [f"{name}={prefix}{given[name]}" for name, (prefix, _) in _SAMPLER_WORDS.items()]
    numbers = [f"{name}={given[name]}" for name in ("mipLODBias", "maxAnisotropy", "minLOD", "maxLOD")]
    place = f"s{given['register']}, space={given['space']}"
    seen = f"visibility=SHADER_VISIBILITY_{given['visibility']}"
    return f"StaticSampler({', '.join([place, *words, *numbers, seen])})"


def drawn(seed: int) -> Signature:
    """A signature of a seed; about half of them break a rule."""
    draw = random.Random(seed)
    parameters = [_drawn_parameter(draw) for _ in range(draw.choice([0, 1, 1, 2, 3, 5]))]
    samplers = [_drawn_sampler(draw) for _ in range(draw.choice([0, 0, 0, 1, 2]))]
    flags = draw.sample(_ROOT_FLAGS, draw.choice([0, 0, 1, 3]))
    return {"flags": flags, "parameters": parameters, "samplers": samplers}


def _rare(draw: random.Random, usual: Any, seldom: Any) -> Any:
    return usual if draw.randrange(8) else seldom


def _drawn_place(draw: random.Random) -> dict[str, Any]:
    return {
        "register": draw.choice([0, 1, 2, 3, 7, 100, _rare(draw, 3, 0xFFFF_FFFE)]),
        "space": draw.choice([0, 0, 0, 1, 5, 0xFFFF_FFEF, _rare(draw, 0, 0xFFFF_FFF0)]),
    }


def _drawn_visibility(draw: random.Random) -> str:
    return draw.choice(_VISIBILITIES[:1] * 4 + _VISIBILITIES)


def _drawn_parameter(draw: random.Random) -> dict[str, Any]:
    kind = draw.choice(["Table", "Table", "Constants", "CBV", "SRV", "UAV"])
    made: dict[str, Any] = {"kind": kind, "visibility": _drawn_visibility(draw)}
    if kind == "Table":
        of = draw.choice(
            [
                ["Sampler"],
                ["CBV", "SRV", "UAV"],
                ["CBV", "SRV", "UAV"],
                _rare(draw, ["Sampler"], list(_LETTERS)),
            ]
        )
        made["ranges"] = [_drawn_range(draw, draw.choice(of)) for _ in range(draw.randint(1, 4))]
        return made
    made |= _drawn_place(draw)
    if kind == "Constants":
        return made | {"count": draw.choice([1, 2, 4, 9])}
    return made | {"flags": draw.sample(_DATA, draw.choice([0, 0, 1, 1, 1, _rare(draw, 1, 2)]))}


def _drawn_range(draw: random.Random, kind: str) -> dict[str, Any]:
    flags = _RANGE_FLAGS if kind != "Sampler" or not draw.randrange(4) else _RANGE_FLAGS[:1]
    return _drawn_place(draw) | {
        "kind": kind,
        "count": draw.choice([1, 1, 2, 3, 8, UNBOUNDED, _rare(draw, 4, 0)]),
        "offset": draw.choice([APPEND, APPEND, APPEND, 0, 5, _rare(draw, 40, 0xFFFF_FFFF - 2)]),
        "flags": draw.sample(flags, draw.choice([0, 0, 1, min(2, len(flags))])),
    }


def _drawn_sampler(draw: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {name: draw.choice(words) for name, (_, words) in _SAMPLER_WORDS.items()}
    return (
        made
        | _drawn_place(draw)
        | {
            "mipLODBias": draw.choice([0.0, -16.0, 15.99, _rare(draw, 0.5, 16.5)]),
            "maxAnisotropy": draw.choice([0, 1, _rare(draw, 16, 17)]),
            "minLOD": draw.choice([0.0, -3.5, 2.25]),
            "maxLOD": draw.choice([0.0, 1.5, 3.4e38]),
            "visibility": _drawn_visibility(draw),
        }
    )


def _range_of(kind: str, register: int, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "register": register, "space": 0, "count": 1, "offset": APPEND, "flags": []} | more


def _parameter_of(kind: str, register: int, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "register": register, "space": 0, "visibility": "ALL", "flags": []} | more


WRITTEN: dict[str, Signature] = {
    "empty": {"flags": [], "parameters": [], "samplers": []},
    "constants": {
        "flags": ["CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED"],
        "parameters": [_parameter_of("Constants", 1, space=2, count=3)],
        "samplers": [],
    },
    "every kind": {
        "flags": [],
        "parameters": [
            _parameter_of("CBV", 0),
            _parameter_of("SRV", 0, flags=["DATA_STATIC"]),
            _parameter_of("UAV", 0, visibility="PIXEL"),
            {
                "kind": "Table",
                "visibility": "ALL",
                "ranges": [_range_of("SRV", 3, count=4), _range_of("UAV", 1, count=UNBOUNDED, offset=9)],
            },
            {"kind": "Table", "visibility": "ALL", "ranges": [_range_of("Sampler", 1, count=2)]},
        ],
        "samplers": [_drawn_sampler(random.Random(0))],
    },
}
"""By name; their bytes are kept, and those of drawn ones only as a digest."""
DRAWN = range(600)
