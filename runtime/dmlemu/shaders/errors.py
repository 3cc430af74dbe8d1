"""What is wrong with a shader: malformed bytes, or something that is not emulated."""

from __future__ import annotations

__all__ = ["MalformedShader", "ShaderError", "UnsupportedShader"]


class ShaderError(ValueError):
    """Why a container is not a compute shader that runs here."""


class MalformedShader(ShaderError):
    """The bytes are not what the format says; ``where`` names the part and the place in it."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} ({where})")
        self.what, self.where = what, where


class UnsupportedShader(ShaderError):
    """The shader may be right, and uses what is not emulated."""
