"""Timing samples of a dispatch and the lines that DxDispatch prints about them."""

from __future__ import annotations

from collections.abc import Sequence

from ...frozen import Frozen
from .errors import quoted

__all__ = ["Samples", "dispatch_lines"]


class Samples(Frozen):
    """Milliseconds per iteration; ``lost`` earlier ones were overwritten in the query heap."""

    values: Sequence[float]
    lost: int = 0

    def split(self, warmup: int) -> tuple[Sequence[float], Sequence[float]]:
        """(cold, hot): up to ``warmup`` samples are cold, but one is always hot."""
        cold = min(max(len(self.values), 1) - 1, max(warmup - self.lost, 0))
        return self.values[:cold], self.values[cold:]


def dispatch_lines(name: str, cpu: Samples, gpu: Samples, warmup: int, verbosity: int) -> list[str]:
    """The lines printed after a dispatch: one line, or with ``verbosity`` 1 statistics, 2 every sample."""
    head = f"Dispatch {quoted(name)}: {len(cpu.values)} iterations"
    if verbosity == 0:
        times = f", {_median(cpu.split(warmup)[1]):.4f} ms median (CPU)"
        if gpu.values:
            times += f", {_median(gpu.split(warmup)[1]):.6f} ms median (GPU)"
        return [head + times]
    lines = [head]
    for title, index in (("(Cold) ", 0), ("(Hot)  ", 1)):
        for who, samples in (("CPU", cpu), ("GPU", gpu)):
            chosen = samples.split(warmup)[index]
            if chosen:
                lines.append(f"{who} Timings {title}: {_statistics(chosen)}")
    if gpu.lost:
        lines.append(f"GPU samples buffer has {gpu.lost} samples overwritten.")
    if verbosity >= 2:
        lines.append("The timings of each iteration: ")
        lines += [_iteration(i, cpu, gpu) for i in range(len(cpu.values))]
    return lines


def _iteration(i: int, cpu: Samples, gpu: Samples) -> str:
    line = f"iteration {i}: {cpu.values[i]:.4f} ms (CPU)"
    if gpu.values and i >= gpu.lost:
        line += f", {gpu.values[i - gpu.lost]:.4f} ms (GPU)"
    return line


def _median(samples: Sequence[float]) -> float:
    """The upper one of two middle samples."""
    return sorted(samples)[len(samples) // 2]


def _statistics(samples: Sequence[float]) -> str:
    average = sum(sorted(samples)) / len(samples)
    return (
        f"{len(samples)} samples, {average:.4f} ms average, {min(samples):.4f} ms min, "
        f"{_median(samples):.4f} ms median, {max(samples):.4f} ms max"
    )
