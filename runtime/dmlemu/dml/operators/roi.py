"""ROI_POOLING, ROI_ALIGN, ROI_ALIGN1 and ROI_ALIGN_GRAD: regions of interest of images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.places import Attribute
from ..declared.rules import AtLeast, Demand, Given, Ones, Rule, SameSizes, SameType, Sizes, Without
from ..declared.values import Between
from ..enums import InterpolationMode, ReduceFunction, TensorDataType
from ..structs import Size2D
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert, float64
from .families.gather import Sized
from .families.quantization import Given as Required
from .resample import half_up

if TYPE_CHECKING:
    from ..declared.descs import RoiAlignGradOperatorDesc, RoiPoolingOperatorDesc
    from ..declared.schema import OperatorDesc
    from ..enums import FeatureLevel
    from ..lowering.compile import Operand, Program


# --- pooling ---


def _pooled_sizes(desc: RoiPoolingOperatorDesc) -> Sized:
    yield 0, desc.roi_tensor.sizes[2], "ROITensor.Sizes[2]"
    yield 1, desc.input_tensor.sizes[1], "InputTensor.Sizes[1]"
    yield 2, desc.pooled_size.height, "PooledSize.Height"
    yield 3, desc.pooled_size.width, "PooledSize.Width"


class RoiPooling(Definition, of="ROI_POOLING"):
    """The maximum of each bin of a region: regions are divided into PooledSize.Width times PooledSize.Height.

    A row of ROITensor is a batch index and the corners x1, y1, x2, y2. Corners are multiplied by
    SpatialScale, in FLOAT32, and rounded, halves away from zero; the elements on the corners belong to the
    region, which has at least one element. Of its n elements along an axis, bin i has those from
    ``floor(i * n / bins)`` to before ``ceil((i + 1) * n / bins)``, so that bins may overlap; what is outside
    the input is left out.

    The documentation leaves open how corners are rounded, and what a bin without elements gives: here 0. A
    NaN is the maximum only of NaNs. The batch index is truncated, and one that is outside the batch is
    moved to the nearest item (a NaN to the first); MEM_INDEX_VALUE reports it.
    """

    desc: RoiPoolingOperatorDesc

    RULES = (
        SameType("input_tensor", "roi_tensor", "output_tensor"),
        AtLeast("pooled_size", 1),
        Ones("roi_tensor", "since each region is one row", but_last=2),
        Sizes(
            "roi_tensor",
            lambda desc: [(3, 5, "a batch index and two corners")],
            "`ROITensor.Sizes[3]` is 5: a batch index and two corners.",
        ),
        Sizes(
            "output_tensor",
            _pooled_sizes,
            "`OutputTensor.Sizes` are `ROITensor.Sizes[2]`, `InputTensor.Sizes[1]`, `PooledSize.Height` and "
            "`PooledSize.Width`.",
        ),
    )

    def lower(self, program: Program) -> None:
        regions = self.desc.roi_tensor
        program.call(
            "roi_pooling",
            program.read("input_tensor"),
            program.read("roi_tensor", sizes=regions.sizes[2:], strides=regions.effective_strides[2:]),
            program.write("output_tensor"),
            constants=kernels.pack("roi_pooling", scale=self.desc.spatial_scale),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        x = float64(inputs["input_tensor"])
        regions = np.asarray(inputs["roi_tensor"])[0, 0].astype(np.float32)
        scale, pooled = np.float32(desc.spatial_scale), desc.pooled_size
        y = np.zeros(desc.output_tensor.sizes)
        with np.errstate(all="ignore"):
            for r, (batch, x1, y1, x2, y2) in enumerate(regions):
                image = x[int(_clamped(np.trunc(batch), len(x) - 1))]
                rows = _bins(y1 * scale, y2 * scale, pooled.height, x.shape[2])
                columns = _bins(x1 * scale, x2 * scale, pooled.width, x.shape[3])
                for i, j in np.ndindex(pooled.height, pooled.width):
                    elements = image[:, rows[i], columns[j]]
                    if elements.size:
                        y[r, :, i, j] = np.fmax.reduce(elements, axis=(1, 2))
        return {"output_tensor": convert(y, desc.output_tensor.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [2, 2, 4, 5]),
            "roi_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 5]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [3, 2, 2, 3]),
            "spatial_scale": 0.5,
            "pooled_size": Size2D(3, 2),
        }

    PAGE_INPUTS: ClassVar[Mapping[str, Any]] = {"roi_tensor": [0, 2, 0, 9, 5]}

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {"input_tensor": [1, 1, 5, 6], "roi_tensor": [1, 1, 1, 5], "output_tensor": [1, 1, 2, 3]}


def _clamped(x: Any, most: float) -> Any:
    """From 0 to ``most``; NaN is 0."""
    return np.fmin(np.fmax(x, 0), most)


def _away(x: np.float32) -> Any:
    """Rounded, halves away from zero."""
    whole = np.trunc(x)
    return whole + np.sign(x) * (np.abs(x - whole) >= 0.5)


def _bins(start: np.float32, end: np.float32, bins: int, size: int) -> list[slice]:
    first, last = (float(corner if np.isinf(corner) else _away(corner)) for corner in (start, end))
    count, i = np.fmax(last - first + 1, 1), np.arange(bins)
    begins = _clamped(np.floor(i * count / bins) + first, size)
    ends = _clamped(np.ceil((i + 1) * count / bins) + first, size)
    return [slice(int(begin), int(end)) for begin, end in zip(begins, ends, strict=True)]


# --- aligned regions ---


class _MinimumSamples(Rule):
    """MinimumSamplesPerOutput is not more than MaximumSamplesPerOutput."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        most = desc.maximum_samples_per_output
        clause = f"is more than MaximumSamplesPerOutput ({most})"
        yield Demand(Attribute("minimum_samples_per_output"), Between(None, most), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return "`MinimumSamplesPerOutput` is at most `MaximumSamplesPerOutput`."


_OTHER_FUNCTIONS = [each for each in ReduceFunction if each.name not in ("AVERAGE", "MAX")]

_REGIONS: tuple[Rule, ...] = (
    Ones("roi_tensor", "since each region is one row", but_last=2),
    Sizes(
        "roi_tensor",
        lambda desc: [(-1, 4, "two corners")],
        "The last size of `ROITensor` is 4: two corners.",
    ),
    Ones("batch_indices_tensor", "since each region has one batch index", but_last=1),
    Sizes(
        "batch_indices_tensor",
        lambda desc: [(-1, desc.roi_tensor.sizes[-2], "the number of regions in ROITensor")],
        "`BatchIndicesTensor` has an index for each region.",
    ),
    Without("reduction_function", *_OTHER_FUNCTIONS),
    _MinimumSamples(),
)


class _Samples(NamedTuple):
    """The samples of a region along an axis: rows of output elements."""

    inside: Array
    low: Array
    """The first element that a sample takes."""
    high: Array
    """The second one, with weight ``weight``; 0: only the first."""
    weight: Array
    t: Array
    """How far the sample moves with the region's second corner; with the first one it is ``1 - t``."""

    def taps(self, o: int, k: int) -> list[tuple[int, float]]:
        """Element and weight."""
        low, high, w = int(self.low[o, k]), int(self.high[o, k]), float(self.weight[o, k])
        return [(low, 1 - w), (high, w)] if w > 0 else [(low, 1.0)]


class _Aligned(Definition):
    """What ROI_ALIGN and its gradient share: where the samples of regions lie."""

    desc: Any

    PAGE_INPUTS: ClassVar[Mapping[str, Any]] = {"roi_tensor": [1, 0.5, 4.5, 3.5], "batch_indices_tensor": [0]}

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        of_input, of_output = [1, 1, 6, 6], [1, 1, 2, 2]
        return {
            "input_tensor": of_input,
            "roi_tensor": [1, 4],
            "batch_indices_tensor": [1],
            "output_tensor": of_output,
            "input_gradient_tensor": of_output,
            "output_gradient_tensor": of_input,
            "output_roi_gradient_tensor": [1, 4],
            "spatial_scale_y": 1.0,
        }

    @property
    def _offsets(self) -> tuple[float, float]:
        """InputPixelOffset and OutputPixelOffset."""
        return self.desc.input_pixel_offset, self.desc.output_pixel_offset

    @property
    def _takes_maximum(self) -> bool:
        return bool(self.desc.reduction_function is ReduceFunction.MAX)

    @property
    def _linear(self) -> bool:
        return bool(self.desc.interpolation_mode is InterpolationMode.LINEAR)

    def call(self, program: Program, kernel: str, *operands: Operand) -> None:
        desc, (in_offset, out_offset) = self.desc, self._offsets
        constants = kernels.pack(
            "roi_align",
            takes_maximum=int(self._takes_maximum),
            linear=int(self._linear),
            minimum=desc.minimum_samples_per_output,
            maximum=desc.maximum_samples_per_output,
            aligned=int(getattr(desc, "align_regions_to_corners", False)),
            scale_x=desc.spatial_scale_x,
            scale_y=desc.spatial_scale_y,
            in_offset=in_offset,
            out_offset=out_offset,
            outside=getattr(desc, "out_of_bounds_input_value", 0.0),
        )
        program.call(kernel, *operands, constants=constants)

    def regions(self, program: Program) -> list[Operand]:
        """Corners and batch indices, without axes of size 1 before them."""
        read = []
        for name, count in (("roi_tensor", 2), ("batch_indices_tensor", 1)):
            tensor: BufferTensorDesc = getattr(self.desc, name)
            sizes, strides = tensor.sizes[-count:], tensor.effective_strides[-count:]
            read.append(program.read(name, sizes=sizes, strides=strides))
        return read

    def samples(self, start: np.float32, end: np.float32, outputs: int, size: int) -> _Samples:
        """Of a region from ``start`` to ``end``, along an axis of ``size`` input elements.

        Each step of a position is rounded to FLOAT32 (decision 0022).
        """
        desc, extent = self.desc, end - start
        in_offset, out_offset = (np.float32(offset) for offset in self._offsets)
        n = np.ceil(extent / np.float32(outputs))
        n = float(n) if np.isfinite(n) else 0
        n = max(int(np.clip(n, desc.minimum_samples_per_output, desc.maximum_samples_per_output)), 1)
        numbers = np.arange(outputs * n).reshape(outputs, n)
        intervals = outputs * n - bool(getattr(desc, "align_regions_to_corners", False))
        if intervals:
            step = extent / np.float32(intervals)
            x = (numbers.astype(np.float32) - out_offset) * step + start - in_offset
            t = (numbers - float(out_offset)) / intervals
        else:
            x = np.full((1, 1), (start + end) / np.float32(2) - in_offset)
            t = np.full((1, 1), 0.5)
        inside = (x >= -1) & (x <= size)
        clamped = _clamped(float64(x), size - 1)
        nearest = _clamped(float64(half_up(clamped.astype(np.float32))), size - 1)
        low = np.floor(clamped) if self._linear else nearest
        weight = clamped - low if self._linear else np.zeros_like(low)
        return _Samples(inside, low, low + 1, weight, t)

    def each_region(
        self, inputs: Mapping[str, Any], batches: int, height: int, width: int, outputs: Sequence[int]
    ) -> Iterator[tuple[int, int, _Samples, _Samples]]:
        """Its number, its batch item, and its samples down and across."""
        corners = np.asarray(inputs["roi_tensor"]).reshape(-1, 4).astype(np.float32)
        indices = np.asarray(inputs["batch_indices_tensor"]).reshape(-1)
        scales = np.array([self.desc.spatial_scale_x, self.desc.spatial_scale_y] * 2, np.float32)
        for r, corner in enumerate(corners):
            x1, y1, x2, y2 = corner * scales
            down = self.samples(y1, y2, outputs[0], height)
            across = self.samples(x1, x2, outputs[1], width)
            yield r, min(int(indices[r]), batches - 1), down, across


def _each_inside(down: _Samples, across: _Samples, i: int, j: int) -> Iterator[tuple[int, int]]:
    """The samples of an output element that lie inside the input: their numbers down and across."""
    for k in np.flatnonzero(down.inside[i]):
        for m in np.flatnonzero(across.inside[j]):
            yield int(k), int(m)


def _weighted(down: Sequence[tuple[int, float]], across: Sequence[tuple[int, float]]) -> Iterator[Any]:
    """Row, column and weight of the elements of a sample."""
    for y, wy in down:
        for x, wx in across:
            yield y, x, wy * wx


def _interpolated(
    planes: Array, down: Sequence[tuple[int, float]], across: Sequence[tuple[int, float]]
) -> Any:
    total: Any = None
    for y, x, w in _weighted(down, across):
        term = w * planes[..., y, x]
        total = term if total is None else total + term
    return total


def _larger(value: Any, best: Any) -> Any:
    """Whether it replaces the best until now: a NaN does not, and does not stay."""
    return (value > best) | np.isnan(best)


class RoiAlign(_Aligned, of="ROI_ALIGN ROI_ALIGN1"):
    """The average, or the maximum, of samples of the input in each part of a region of interest.

    Region r is a row x1, y1, x2, y2 of ROITensor, multiplied by SpatialScaleX and SpatialScaleY, in batch
    item ``BatchIndicesTensor[r]``. Along each axis it has OutputTensor.Sizes times n samples, n for each
    output element: ``n = ceil((x2 - x1) / OutputWidth)``, at least MinimumSamplesPerOutput (and 1) and at
    most MaximumSamplesPerOutput. Sample s lies at

        ``x = (s - OutputPixelOffset) * (x2 - x1) / (OutputWidth * n) + x1 - InputPixelOffset``

    With AlignRegionsToCorners the divisor is ``OutputWidth * n - 1``, and a single sample is in the middle.
    ROI_ALIGN has the offsets 0.5 and -0.5 and does not align.  Regions may be empty, or mirrored (x2 < x1).

    A sample at x < -1 or x > InputWidth, likewise y, is OutOfBoundsInputValue; others are moved to the
    nearest place between the first and the last element. LINEAR mixes floor(x) and floor(x) + 1 by
    distance, along both axes; NEAREST_NEIGHBOR takes ``floor(x + 0.5)``. An element of weight 0 has no
    influence.

    Corners, n and positions are computed in FLOAT32, as GPUs do: each step is rounded, first ``(x2 - x1) /
    (OutputWidth * n)``. Sums are FLOAT64, rounded once. The documentation leaves open how n is
    rounded, where a sample is out of bounds, and ties of NEAREST_NEIGHBOR. MAX ignores NaN samples unless
    all are. A batch index outside the batch is undefined there: here it is the last item, and
    MEM_INDEX_VALUE reports it.
    """

    RULES: ClassVar[Sequence[Rule]] = (
        SameType("input_tensor", "roi_tensor", "output_tensor"),
        *_REGIONS,
        Sizes(
            "output_tensor",
            lambda desc: [
                (0, desc.roi_tensor.sizes[-2], "the number of regions in ROITensor"),
                (1, desc.input_tensor.sizes[1], "InputTensor.Sizes[1]"),
            ],
            "`OutputTensor.Sizes[0]` is the number of regions, `OutputTensor.Sizes[1]` is "
            "`InputTensor.Sizes[1]`.",
        ),
    )

    @property
    def _offsets(self) -> tuple[float, float]:
        desc = self.desc
        return getattr(desc, "input_pixel_offset", 0.5), getattr(desc, "output_pixel_offset", -0.5)

    def lower(self, program: Program) -> None:
        operands = (program.read("input_tensor"), *self.regions(program), program.write("output_tensor"))
        self.call(program, "roi_align", *operands)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, sizes = float64(inputs["input_tensor"]), self.desc.output_tensor.sizes
        batches, _, height, width = x.shape
        y = np.zeros(sizes)
        with np.errstate(all="ignore"):
            for r, b, down, across in self.each_region(inputs, batches, height, width, sizes[2:]):
                for i, j in np.ndindex(*sizes[2:]):
                    values = [
                        _interpolated(x[b], down.taps(i, k), across.taps(j, m))
                        for k, m in _each_inside(down, across, i, j)
                    ]
                    y[r, :, i, j] = self._reduced(values, down.inside.shape[1] * across.inside.shape[1])
        return {"output_tensor": convert(y, self.desc.output_tensor.data_type)}

    def _reduced(self, values: list[Array], samples: int) -> Any:
        """The average or the maximum of ``samples`` samples, of which ``values`` are inside the input."""
        outside = float(np.float32(self.desc.out_of_bounds_input_value))
        missing = samples - len(values)
        if self._takes_maximum:
            candidates: list[Any] = [*values, outside] if missing else [*values]
            best, *others = candidates
            for value in others:
                best = np.where(_larger(value, best), value, best)
            return best
        total = sum(values[1:], values[0]) if values else 0.0
        return (total + missing * outside if missing else total) / samples

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(
                TensorDataType.FLOAT32, [9, 2, 4, 5]
            ),  # small numbers are indices
            "roi_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 4]),
            "batch_indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 3]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [3, 2, 2, 3]),
            "reduction_function": ReduceFunction.AVERAGE,
            "interpolation_mode": InterpolationMode.LINEAR,
            "spatial_scale_x": 1.0,
            "spatial_scale_y": 0.5,
            "input_pixel_offset": 0.5,
            "output_pixel_offset": -0.5,
            "out_of_bounds_input_value": 2.0,
            "minimum_samples_per_output": 1,
            "maximum_samples_per_output": 2,
            "align_regions_to_corners": False,
        }


class _NeedsInput(Rule):
    """InputTensor is given where its elements take part."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        takes_maximum = desc.reduction_function is ReduceFunction.MAX
        if takes_maximum or desc.output_roi_gradient_tensor is not None:
            like = (
                "output_gradient_tensor"
                if desc.output_gradient_tensor is not None
                else "input_gradient_tensor"
            )
            for demand in Required("input_tensor", like=like).demands(desc, level):
                why = "ReductionFunction is MAX" if takes_maximum else "OutputROIGradientTensor is given"
                yield demand._replace(clause=f"is missing, but {why}")

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return (
            "`InputTensor` is required if `OutputROIGradientTensor` is given or `ReductionFunction` is MAX."
        )


def _gradient_sizes(desc: RoiAlignGradOperatorDesc) -> Sized:
    yield 0, desc.roi_tensor.sizes[-2], "the number of regions in ROITensor"
    if desc.output_gradient_tensor is not None:
        yield 1, desc.output_gradient_tensor.sizes[1], "OutputGradientTensor.Sizes[1]"
    elif desc.input_tensor is not None:
        yield 1, desc.input_tensor.sizes[1], "InputTensor.Sizes[1]"


class RoiAlignGrad(_Aligned, of="ROI_ALIGN_GRAD"):
    """The gradients of ROI_ALIGN1: by its input, and by the corners of its regions.

    InputGradientTensor has the sizes of the forward output, OutputGradientTensor those of the forward
    input. Every sample that is not out of bounds (see ROI_ALIGN1) gets the gradient of its output element:
    divided by the number of samples for AVERAGE, the whole one for MAX if it is the largest sample, found
    in InputTensor; of equal samples the first, row by row, and samples out of bounds are not compared.
    OutputGradientTensor is the sum of these, times the weight with which the element enters the sample; 0
    where there are none.

    OutputROIGradientTensor follows from the chain rule: with the fraction t of the way from the first
    corner to the second, the position of a sample moves by ``SpatialScaleX * (1 - t)`` for x1 and
    ``SpatialScaleX * t`` for x2, and its value by the difference of the elements to its right and left; y
    likewise. (The page writes inputWidth - x and x for these factors: the same with AlignRegionsToCorners,
    offsets of 0, one sample and a scale of InputWidth - 1, the only case that it describes.)  A sample that
    lies on an element, or that was moved to the edge, does not change along that axis, nor does any with
    NEAREST_NEIGHBOR.

    Positions are those of ROI_ALIGN1, in FLOAT32. Sums are computed in FLOAT64, in the order of regions,
    channels, output elements and samples, and rounded once. Batch indices are treated as by ROI_ALIGN1.
    """

    desc: RoiAlignGradOperatorDesc

    RULES = (
        Given("output_gradient_tensor", "output_roi_gradient_tensor"),
        *_REGIONS,
        _NeedsInput(),
        SameType(
            "input_gradient_tensor",
            "input_tensor",
            "roi_tensor",
            "output_gradient_tensor",
            "output_roi_gradient_tensor",
        ),
        SameSizes("input_tensor", "output_gradient_tensor"),
        SameSizes("roi_tensor", "output_roi_gradient_tensor"),
        Sizes(
            "input_gradient_tensor",
            _gradient_sizes,
            "`InputGradientTensor.Sizes[0]` is the number of regions, `InputGradientTensor.Sizes[1]` is the "
            "number of channels of `OutputGradientTensor` and `InputTensor`.",
        ),
    )

    def lower(self, program: Program) -> None:
        desc = self.desc
        regions, gradient = desc.roi_tensor, desc.output_roi_gradient_tensor
        corners = (
            program.write("output_roi_gradient_tensor")
            if gradient is None
            else program.write(
                "output_roi_gradient_tensor",
                sizes=regions.sizes[-2:],
                strides=gradient.effective_strides[-2:],
            )
        )
        self.call(
            program,
            "roi_align_grad",
            program.read("input_tensor"),
            program.read("input_gradient_tensor"),
            *self.regions(program),
            program.write("output_gradient_tensor"),
            corners,
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        image = desc.output_gradient_tensor or desc.input_tensor
        assert image is not None
        batches, channels, height, width = image.sizes
        x, g = inputs.get("input_tensor"), float64(inputs["input_gradient_tensor"])
        x = np.zeros(image.sizes) if x is None else float64(x)
        planes, corners = np.zeros(image.sizes), np.zeros((len(g), 4))
        with np.errstate(all="ignore"):
            for r, b, down, across in self.each_region(inputs, batches, height, width, g.shape[2:]):
                for c, i, j in np.ndindex(channels, *g.shape[2:]):
                    for k, m, share in self._shares(x[b, c], g[r, c, i, j], down, across, i, j):
                        for row, column, w in _weighted(down.taps(i, k), across.taps(j, m)):
                            planes[b, c, row, column] += share * w
                        self._move(corners[r], x[b, c], share, down, across, i, j, k, m)
        results = {}
        if desc.output_gradient_tensor is not None:
            results["output_gradient_tensor"] = convert(planes, desc.output_gradient_tensor.data_type)
        if desc.output_roi_gradient_tensor is not None:
            tensor = desc.output_roi_gradient_tensor
            results["output_roi_gradient_tensor"] = convert(corners.reshape(tensor.sizes), tensor.data_type)
        return results

    def _shares(
        self, plane: Array, gradient: Any, down: _Samples, across: _Samples, i: int, j: int
    ) -> Iterator[tuple[int, int, Any]]:
        """The samples of an output element that get a part of its gradient, and that part."""
        inside = list(_each_inside(down, across, i, j))
        if not self._takes_maximum:
            samples = down.inside.shape[1] * across.inside.shape[1]
            yield from ((k, m, gradient / samples) for k, m in inside)
        elif inside:
            values = [_interpolated(plane, down.taps(i, k), across.taps(j, m)) for k, m in inside]
            best = 0
            for n, value in enumerate(values):
                best = n if _larger(value, values[best]) else best
            yield (*inside[best], gradient)

    def _move(
        self,
        corners: Array,
        plane: Array,
        share: Any,
        down: _Samples,
        across: _Samples,
        i: int,
        j: int,
        k: int,
        m: int,
    ) -> None:
        """Adds what a sample contributes to the gradient of its region's corners."""
        rows, columns = down.taps(i, k), across.taps(j, m)
        for axis, scale, along, t in (
            (0, self.desc.spatial_scale_x, columns, across.t[j, m]),
            (1, self.desc.spatial_scale_y, rows, down.t[i, k]),
        ):
            if len(along) == 2:
                (low, _), (high, _) = along
                slopes = [
                    w * (plane[n, high] - plane[n, low] if axis == 0 else plane[high, n] - plane[low, n])
                    for n, w in (rows if axis == 0 else columns)
                ]
                moved = share * sum(slopes[1:], slopes[0]) * float(np.float32(scale))
                corners[axis] += moved * (1 - t)
                corners[axis + 2] += moved * t

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [9, 2, 4, 5]),
            "input_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [3, 2, 2, 3]),
            "roi_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 4]),
            "batch_indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 3]),
            "output_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [9, 2, 4, 5]),
            "output_roi_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 4]),
            "reduction_function": ReduceFunction.AVERAGE,
            "interpolation_mode": InterpolationMode.LINEAR,
            "spatial_scale_x": 1.0,
            "spatial_scale_y": 0.5,
            "input_pixel_offset": 0.5,
            "output_pixel_offset": -0.5,
            "minimum_samples_per_output": 1,
            "maximum_samples_per_output": 2,
            "align_regions_to_corners": False,
        }
