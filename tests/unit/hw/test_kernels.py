"""The kernels in C as Python reaches them: names, constants, threads and forked processes."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from dmlemu_hw import _kernels, kernels, packets
from dmlemu_hw.descriptors import Descriptor, DescriptorKind

TYPES = {"float32": 1, "uint32": 3, "uint8": 5, "int32": 6, "int8": 8}
TABLE = 0x1000  # GPU address of the descriptor table


def dispatch(kernel, *arrays, **constants):
    """Runs a kernel on contiguous arrays (None: absent) as the command processor does."""
    descriptors, tensors, segments = b"", [], []
    for slot, array in enumerate(arrays):
        if array is None:
            descriptors += Descriptor(DescriptorKind.UNWRITTEN).encode()
            tensors.append(packets.tensor(packets.SLOT_NONE, packets.READ, 0, [], [], 0))
            continue
        address = 0x10000000 * (slot + 1)
        segments.append((address, array.nbytes, kernels.ffi.cast("uint8_t *", array.ctypes.data)))
        descriptors += Descriptor(DescriptorKind.UAV, address=address, size=array.nbytes).encode()
        strides = [stride // array.itemsize for stride in array.strides]
        kind = TYPES[array.dtype.name]
        tensors.append(packets.tensor(slot, packets.READ_WRITE, kind, array.shape, strides, array.nbytes))
    heap = kernels.ffi.from_buffer("uint8_t[]", bytearray(descriptors))
    writer = packets.PacketWriter()
    writer.dispatch(kernels.number(kernel), TABLE, tensors, kernels.pack(kernel, **constants), 0)
    packet = writer.bytes()
    memory = kernels.ffi.new("dmlk_segment[]", [(TABLE, len(descriptors), heap), *segments])
    fault = kernels.ffi.new("dmlk_fault *")
    status = kernels.lib.dmlk_dispatch(
        kernels.ffi.from_buffer(packet), len(packet), memory, len(segments) + 1, fault
    )
    assert status == kernels.constant("DMLK_OK")


def results() -> dict[str, bytes]:
    """What kernels make of tensors large enough for several threads."""
    random = np.random.default_rng(1)
    a = random.standard_normal((1100, 1000)).astype(np.float32)
    outputs = {}
    outputs["add"] = np.zeros_like(a)
    dispatch("add", a, a, outputs["add"])
    outputs["sum"] = np.zeros((1, 1000), np.float32)
    dispatch("reduce_sum", a, outputs["sum"], axes_mask=1)
    outputs["gemm"] = np.zeros((1100, 1100), np.float32)
    dispatch("gemm", a, a, None, outputs["gemm"], trans_b=1, alpha=1)
    for name, channels, groups in (("convolution", 8, 1), ("depthwise", 30, 30)):
        for last in (False, True):
            image = random.integers(0, 255, (1, channels, 64, 64)).astype(np.uint8)
            filters = random.integers(-128, 127, (30, channels // groups, 3, 3)).astype(np.int8)
            result = np.zeros((1, 30, 62, 62), np.int32)
            if last:
                image, result = (np.asarray(x.transpose(0, 2, 3, 1), order="C") for x in (image, result))
                image, result = (x.transpose(0, 3, 1, 2) for x in (image, result))
            dispatch(
                "convolution_integer",
                *(image, None, filters, None, None, result),
                spatial=2,
                groups=groups,
                strides=(1, 1),
                dilations=(1, 1),
            )
            outputs[f"{name} {'channels last' if last else 'NCHW'}"] = result
    return {name: array.tobytes() for name, array in outputs.items()}


def test_numbers_and_names_are_inverse():
    names = [kernels.name(number) for number in range(kernels.count())]
    assert len(set(names)) == len(names) == kernels.count()
    assert [kernels.number(name) for name in names] == list(range(kernels.count()))


def test_functions_of_a_family_are_kernels():
    """By their own names, with the constants of the family."""
    assert kernels.family("sigmoid") == kernels.family("bit_xor") == "element_wise"
    assert kernels.family("gemm") == "gemm"
    assert kernels.pack("elu", alpha=1.5) == kernels.pack("celu", alpha=1.5) != kernels.pack("elu")
    with pytest.raises(ValueError, match="No kernel is named 'element_wise'"):
        kernels.family("element_wise")


def test_unknown_kernels_are_named():
    with pytest.raises(ValueError, match="No kernel is named 'gem'"):
        kernels.number("gem")
    with pytest.raises(ValueError, match="No kernel is named 'gem'"):
        kernels.pack("gem", alpha=1)
    for number in (-1, kernels.count()):
        with pytest.raises(ValueError, match="is not below the number of kernels"):
            kernels.name(number)


def test_constants_of_the_headers():
    assert kernels.constant("DMLK_FLOAT16") == 2
    assert kernels.constant("DMLK_SLOT_NONE") == 2**32 - 1
    for name in ("DMLK_NOTHING", "dmlk_dispatch"):
        with pytest.raises(ValueError, match="define no constant"):
            kernels.constant(name)


def test_pack_lays_out_the_struct():
    assert kernels.pack("copy") == b""
    assert kernels.pack("gemm", trans_b=1, beta=0.5) == np.array([0, 1, 0, 0x3F000000], "<u4").tobytes()
    packed = kernels.pack("convolution_integer", spatial=2, strides=np.array([3, 4]))
    assert packed == np.array([2, 0, 3, 4, 0, 0, 0, 0], "<u4").tobytes()


def test_pack_refuses_what_does_not_fit():
    with pytest.raises(TypeError, match=r"has no constant 'gamma' \(fields: trans_a, trans_b, alpha, beta\)"):
        kernels.pack("gemm", gamma=1)
    with pytest.raises(TypeError, match=r"has no constant 'axis' \(fields: none\)"):
        kernels.pack("copy", axis=1)
    with pytest.raises(TypeError):
        kernels.pack("gemm", alpha="1")
    with pytest.raises(OverflowError):
        kernels.pack("reduce_sum", axes_mask=-1)
    with pytest.raises(OverflowError):
        kernels.pack("reduce_sum", axes_mask=2**32)
    with pytest.raises(IndexError):
        kernels.pack("convolution_integer", strides=(1, 2, 3))


@pytest.mark.parametrize("threads", [1, 3])
def test_results_do_not_depend_on_threads(threads):
    program = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
    program += "import hashlib, test_kernels\n"
    program += "for name, data in test_kernels.results().items():\n"
    program += "    print(name, hashlib.sha256(data).hexdigest())"
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "OMP_NUM_THREADS": str(count)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for count in (2, threads)
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].splitlines()) == 7


COUNT = "from dmlemu_hw import kernels; print(kernels.threads())"


def counted(command: list[str], **variables: str) -> tuple[str, str]:
    """The number of threads that another process reports, and what it says on stderr."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    done = subprocess.run(
        [*command, sys.executable, "-c", COUNT], env=environment | variables, capture_output=True, text=True
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.parametrize(
    ("given", "expected"), [("3", "3"), (" 5 , 2", "5"), ("100000", "512"), ("0", None), ("4x", None)]
)
def test_the_environment_sets_the_number_of_threads(given: str, expected: str | None) -> None:
    count, message = counted([], OMP_NUM_THREADS=given)
    if expected is None:
        assert message == (
            f"dmlemu: OMP_NUM_THREADS is '{given}'; expected a number above 0. "
            "The kernels use a thread for each CPU.\n"
        )
        assert 1 <= int(count) <= len(os.sched_getaffinity(0))
    else:
        assert (count, message) == (expected, "")


@pytest.mark.skipif(shutil.which("taskset") is None, reason="needs taskset, of util-linux")
def test_the_affinity_mask_limits_the_number_of_threads() -> None:
    assert counted(["taskset", "-c", str(min(os.sched_getaffinity(0)))]) == ("1", "")


def in_another_process(lines: str, **variables: str) -> None:
    """Runs them where this file is imported as ``test_kernels``; they fail by raising."""
    start = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", start + lines], env=os.environ | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_kernels_run_where_no_thread_can_be_made() -> None:
    in_another_process(
        """
import os, resource, test_kernels
x = test_kernels.np.ones((1000, 1000), "float32")
out = test_kernels.np.empty_like(x)
used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
before = len(os.listdir("/proc/self/task"))
resource.setrlimit(resource.RLIMIT_AS, (used + (6 << 20),) * 2)  # the stack of a thread has 8 MiB
test_kernels.dispatch("add", x, x, out)
assert (out == 2).all() and len(os.listdir("/proc/self/task")) == before
""",
        OMP_NUM_THREADS="4",
        OPENBLAS_NUM_THREADS="1",
    )


def test_kernels_stay_when_their_library_is_closed() -> None:
    """Their threads run its code until the process ends."""
    in_another_process(
        f"""
import _ctypes, ctypes
_ctypes.dlclose(ctypes.CDLL({_kernels.__file__!r})._handle)
assert {os.path.basename(_kernels.__file__)!r} in open("/proc/self/maps").read()
"""
    )


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that is what is tested
def test_forked_processes_run_kernels():
    expected = results()  # by now the threads exist, which the child will not have
    child = os.fork()
    if child == 0:
        os._exit(0 if results() == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
