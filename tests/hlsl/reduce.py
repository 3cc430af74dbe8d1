"""Makes a random shader that runs wrongly as short as it gets: python -m tests.hlsl.reduce SEED WAVE

A statement after the other is left out while the result stays as bad as it was: different from what is
expected, refused, or a crash.  With ``safe`` behind the numbers it is the shader for lavapipe, with
``lavapipe`` it runs there.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from dmlemu.shaders.dxc import HlslError

from . import ours
from .cases import Case, differences
from .oracle import Lavapipe, OracleError
from .random_shaders import RandomShader

__all__ = ["reduced", "verdict"]


def verdict(case: Case, run: Callable[[Case], dict[str, bytes]], seconds: int = 60) -> tuple[str, str]:
    """What kind of result a case has, and more about it; in a process of its own, which may crash."""
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        os.close(readable)
        signal.alarm(seconds)
        os.write(writable, "\n".join(_verdict(case, run)).encode(errors="replace")[:60000])
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as stream:
        kind, _, text = stream.read().decode(errors="replace").partition("\n")
    status = os.waitpid(child, 0)[1]
    return (f"signal {status & 127}", "") if status else (kind, text)


def _verdict(case: Case, run: Callable[[Case], dict[str, bytes]]) -> tuple[str, str]:
    try:
        found = differences(case, run(case))
    except (HlslError, OracleError) as error:
        return f"refused: {_reason(str(error))}", str(error)
    except Exception as error:
        return type(error).__name__ + str(error)[:40], str(error)
    return ("different", "\n".join(found)) if found else ("same", "")


def _reason(messages: str) -> str:
    """The last error in a compiler's messages without its place, so that no other one stands for it."""
    found = [line.partition("error: ")[2] for line in messages.splitlines() if "error: " in line]
    return found[-1] if found else messages[:80]


def reduced(shader: RandomShader, wave: int, run: Callable[[Case], dict[str, bytes]]) -> Case:
    kind = verdict(shader.case(wave), run)[0]
    if kind != "same":
        while sum(_shorten(shader, wave, run, kind, part.parts or []) for part in shader.sequences[::-1]):
            pass
    return shader.case(wave)


def _shorten(
    shader: RandomShader, wave: int, run: Callable[[Case], dict[str, bytes]], kind: str, parts: list[object]
) -> bool:
    """Leaves out what it can of a sequence, from the end; whether it did."""
    done, step = False, max(1, len(parts) // 2)
    while step:
        at = len(parts)
        while at > 0:
            begin = max(0, at - step)
            removed = parts[begin:at]
            del parts[begin:at]
            try:
                still = verdict(shader.case(wave), run)[0] == kind
            except Exception:  # a variable that is no longer declared
                still = False
            if still:
                done = True
            else:
                parts[begin:begin] = removed
            at = begin
        step //= 2
    return done


def main(seed: int, wave: int, lavapipe: bool, on_lavapipe: bool) -> None:
    def on_oracle(case: Case) -> dict[str, bytes]:
        with Lavapipe.opened(wave) as device:
            return device.run(case)

    run = on_oracle if on_lavapipe else lambda case: ours.run(case, wave)
    case = reduced(RandomShader(seed, lavapipe), wave, run)
    print(case.source, f"// {case.target} {' '.join(case.arguments)}, {case.groups[0]} groups", sep="\n")
    print(*verdict(case, run), sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), "safe" in sys.argv, "lavapipe" in sys.argv)
