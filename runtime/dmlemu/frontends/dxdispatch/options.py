"""The command-line options of DxDispatch."""

from __future__ import annotations

import argparse
from pathlib import Path

from dmlemu import d3d12, dml
from dmlemu.errors import Strictness

from ...frozen import Frozen

__all__ = ["OnnxInputs", "Options", "add_onnx_inputs", "add_options", "onnx_inputs_from", "options_from"]

_QUEUES = {"direct": d3d12.CommandListType.DIRECT, "compute": d3d12.CommandListType.COMPUTE}
_BARRIERS = {"none": (False, False), "uav": (True, False), "uav+aliasing": (True, True)}
_LEVELS = {level.name.removeprefix("LEVEL_").replace("_", "."): level for level in dml.FeatureLevel}

# Options for features the emulator does not have: parsed so that the refusal can name them.
_UNSUPPORTED = {
    "PIX captures": ("-c --pix_capture_type", "-o --pix_capture_name"),
    "HLSL dispatchables": ("--print_hlsl_disassembly!",),
    "shader caches": ("--clear_shader_caches!",),
    "DirectX components": ("-S --show_dependencies!",),
    "Xbox": ("--xbox_allow_precompile!",),
    "DRED": ("--enable_dred!",),
    "clocks and background work of a driver": (
        "--disable_background_processing!",
        "--set_stable_power_state!",
    ),
    "swap chains": ("--present_separator!",),
    "these options of ONNX Runtime": (
        "-e --onnx_session_config_entry",
        "-l --onnx_graph_optimization_level",
        "-L --onnx_logging_level",
        "-x --enable_ort_extensions!",
        "--enable_onnx_profiling!",
    ),
}


class OnnxInputs(Frozen):
    """What an ONNX model is run on, as the command line says it: ``-b``, ``-f``, ``-F``, ``--inputs``."""

    bindings: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    denotations: tuple[str, ...] = ()
    file: Path | None = None


class Options(Frozen):
    """What to run and how; the defaults are DxDispatch's, but for the strictness."""

    model: Path | None = None
    input_path: Path | None = None
    output_path: Path | None = None
    allow_paths: bool = False
    print_commands: bool = False
    debug: bool = False
    strictness: Strictness = Strictness.STRICT
    adapter: str = ""
    show_adapters: bool = False
    queue_type: d3d12.CommandListType = d3d12.CommandListType.DIRECT
    uav_barrier: bool = True
    aliasing_barrier: bool = False
    disable_gpu_timeout: bool = False
    dml_feature_level: dml.FeatureLevel = dml.FeatureLevel.LEVEL_5_0
    dispatch_iterations: int = 1
    dispatch_repeat: int = 1
    milliseconds_to_run: int | None = None
    dispatch_interval: int = 0
    warmup_samples: int = 1
    timing_verbosity: int = 0
    max_gpu_time_measurements: int = 8192
    onnx_inputs: OnnxInputs = OnnxInputs()
    print_onnx_bindings: bool = False
    numerics: str | None = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of DxDispatch to ``parser``."""
    parser.add_argument(
        "model", type=Path, nargs="?", metavar="MODEL", help="the model to run: .json or .onnx"
    )
    parser.add_argument("-m", "--model", type=Path, dest="model_option", help=argparse.SUPPRESS)
    parser.add_argument(
        "--input_path",
        type=Path,
        help="where relative names of input files start (default: the model's folder)",
    )
    parser.add_argument(
        "--output_path",
        "--output-dir",
        type=Path,
        help="where relative names of output files start (default: the current folder)",
    )
    parser.add_argument(
        "--allow-paths",
        action="store_true",
        help="let the model read and write any file, not only those in its folder, the current folder "
        "and the two above",
    )
    parser.add_argument(
        "--print_commands", action="store_true", help="print when each command starts and ends"
    )
    _add_direct_x(parser.add_argument_group("DirectX options"))
    _add_timing(parser.add_argument_group("timing options"))
    onnx = parser.add_argument_group("options of ONNX models")
    add_onnx_inputs(onnx)
    onnx.add_argument(
        "-p", "--print_onnx_bindings", action="store_true", help="list inputs and outputs with their shapes"
    )
    for what, names in _UNSUPPORTED.items():
        for name in names:
            _add_unsupported(parser, what, name)


def _add_direct_x(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-d", "--debug", action="store_true", help="the DirectML device prints its errors itself, too"
    )
    group.add_argument(
        "--strictness",
        choices=[each.value for each in Strictness],
        default="strict",
        help="which checks run (default: strict)",
    )
    group.add_argument(
        "-a", "--adapter", default="", help="run on the first adapter whose name contains this"
    )
    group.add_argument("-s", "--show_adapters", action="store_true", help="list the adapters")
    group.add_argument(
        "-q",
        "--queue_type",
        choices=_QUEUES,
        default="direct",
        help="type of the queue and the list (default: direct)",
    )
    group.add_argument(
        "--post_dispatch_barriers",
        choices=_BARRIERS,
        default="uav",
        help="barriers recorded after each dispatch (default: uav)",
    )
    group.add_argument(
        "--dml_feature_level",
        choices=_LEVELS,
        default="5.0",
        metavar="N.N",
        help="the minimum feature level of the device (default: 5.0)",
    )
    group.add_argument(
        "--disable_gpu_timeout", action="store_true", help="set the flag DISABLE_GPU_TIMEOUT of the queue"
    )
    # The emulated adapter has memory of its own, so custom heaps are never used anyway.
    group.add_argument("--disable_custom_heaps", action="store_true", help=argparse.SUPPRESS)
    group.add_argument("--disable_agility_sdk", action="store_true", help=argparse.SUPPRESS)


def _add_timing(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-i",
        "--dispatch_iterations",
        type=_uint32,
        default=1,
        metavar="N",
        help="bind, dispatch and wait N times (default: 1)",
    )
    group.add_argument(
        "-r",
        "--dispatch_repeat",
        type=_positive,
        default=1,
        metavar="N",
        help="dispatches per iteration (default: 1)",
    )
    group.add_argument(
        "-t",
        "--milliseconds_to_run",
        type=_uint32,
        metavar="MS",
        help="iterate for this long, whatever -i says",
    )
    group.add_argument(
        "-I",
        "--dispatch_interval",
        type=_uint32,
        default=0,
        metavar="MS",
        help="shortest time of an iteration (default: 0)",
    )
    group.add_argument(
        "-w",
        "--warmup_samples",
        type=_uint32,
        default=1,
        metavar="N",
        help="first samples that are not counted (default: 1)",
    )
    group.add_argument(
        "-v",
        "--timing_verbosity",
        type=int,
        choices=(0, 1, 2),
        default=0,
        help="0: one line, 1: initialisation and statistics, 2: every iteration",
    )
    group.add_argument(
        "--max_gpu_time_measurements",
        type=_uint32,
        default=8192,
        metavar="N",
        help="pairs of timestamps that are kept (default: 8192); 0: no GPU times",
    )


def add_onnx_inputs(group: argparse._ArgumentGroup) -> None:
    """Adds the options that say what an ONNX model is run on."""
    group.add_argument(
        "-b",
        "--binding_shape",
        action="append",
        default=[],
        metavar="NAME=FILE.npy|SHAPE",
        help="the array of an input, or its shape (1,3,224,224) if the array is made by rule",
    )
    group.add_argument(
        "-f",
        "--onnx_free_dim_name_override",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="the size of a dimension that the model names",
    )
    group.add_argument(
        "-F",
        "--onnx_free_dim_denotation_override",
        action="append",
        default=[],
        metavar="DENOTATION=SIZE",
        help="the size of dimensions of inputs that the model denotes so, such as DATA_BATCH",
    )
    group.add_argument("--inputs", type=Path, metavar="FILE.npz", help="the arrays of inputs, by their names")
    group.add_argument(
        "--numerics",
        choices=("directml", "onnx"),
        help="whose results there are where ONNX says nothing, such as for a NaN in Max (default: directml)",
    )


def onnx_inputs_from(arguments: argparse.Namespace) -> OnnxInputs:
    """What :func:`add_onnx_inputs` has added, from the result of argparse."""
    return OnnxInputs(
        tuple(arguments.binding_shape),
        tuple(arguments.onnx_free_dim_name_override),
        tuple(arguments.onnx_free_dim_denotation_override),
        arguments.inputs,
    )


def options_from(arguments: argparse.Namespace) -> Options:
    """The options from the result of argparse."""
    uav, aliasing = _BARRIERS[arguments.post_dispatch_barriers]
    run_for = arguments.milliseconds_to_run
    return Options(
        model=arguments.model_option or arguments.model,
        input_path=arguments.input_path,
        output_path=arguments.output_path,
        allow_paths=arguments.allow_paths,
        print_commands=arguments.print_commands,
        debug=arguments.debug,
        strictness=Strictness(arguments.strictness),
        adapter=arguments.adapter,
        show_adapters=arguments.show_adapters,
        queue_type=_QUEUES[arguments.queue_type],
        uav_barrier=uav,
        aliasing_barrier=aliasing,
        disable_gpu_timeout=arguments.disable_gpu_timeout,
        dml_feature_level=_LEVELS[arguments.dml_feature_level],
        dispatch_iterations=arguments.dispatch_iterations if run_for is None else 2**32 - 1,
        dispatch_repeat=arguments.dispatch_repeat,
        milliseconds_to_run=run_for,
        dispatch_interval=arguments.dispatch_interval,
        warmup_samples=arguments.warmup_samples,
        timing_verbosity=arguments.timing_verbosity,
        max_gpu_time_measurements=arguments.max_gpu_time_measurements,
        onnx_inputs=onnx_inputs_from(arguments),
        print_onnx_bindings=arguments.print_onnx_bindings,
        numerics=arguments.numerics,
    )


def _uint32(text: str) -> int:
    if not text.isdecimal() or len(text) > 10 or int(text) > 2**32 - 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 0 to 4294967295")
    return int(text)


def _positive(text: str) -> int:
    value = _uint32(text)
    if not value:
        raise argparse.ArgumentTypeError("0 dispatches cannot be measured")
    return value


def _add_unsupported(parser: argparse.ArgumentParser, what: str, names: str) -> None:
    class Refuse(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
            parser.error(f"{self.option_strings[-1]}: {what} are not supported")

    takes_value = not names.endswith("!")
    nargs = None if takes_value else 0
    parser.add_argument(*names.rstrip("!").split(), action=Refuse, nargs=nargs, help=argparse.SUPPRESS)
