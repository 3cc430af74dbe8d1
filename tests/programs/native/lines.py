"""A Python program that calls hosted.cpp, which makes mistakes, from all kinds of lines:
``lines.py LIBRARY KIND...``.

Runs under any Python from 3.9 on, which need not have dmlemu.  test_python_lines.py reads the comments.
"""

import asyncio
import ctypes
import pathlib
import sys
import tempfile
import threading

library = ctypes.CDLL(sys.argv[1])
holding = ctypes.PyDLL(sys.argv[1])  # whose functions are called with the lock of this Python


def plain():
    library.make_mistake()  # plain


def with_the_lock():
    holding.make_mistake()  # with_the_lock


def in_a_thread():
    thread = threading.Thread(target=plain)
    thread.start()
    thread.join()


def on_a_thread_without_python():
    library.make_mistake_elsewhere()


def in_größe():
    library.make_mistake()  # in_größe


def 在中文():
    library.make_mistake()  # 在中文


class Network:
    def forward(self):
        library.make_mistake()  # in_a_method


def in_a_method():
    Network().forward()  # calls_a_method


def deep(depth):
    if depth:
        return deep(depth - 1)  # deeper
    return library.make_mistake()  # deepest


def in_a_recursion():
    deep(200)


def in_generated_code():
    """Twice, so that the second code may be where the first one was."""
    for name in ("<first one>", "<other one>"):
        exec(compile("\n\nlibrary.make_mistake()\n", name, "exec"), globals())  # generated


def in_a_generator():
    def generate():
        yield library.make_mistake()  # generator

    next(generate())  # next


def in_a_coroutine():
    async def work():
        library.make_mistake()  # coroutine

    asyncio.run(work())


def in_a_package():
    """Whose lines are not the program's."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "ποδ", "site-packages", "layers.py")
        file.parent.mkdir(parents=True)
        file.write_text("def call(function):\n    function()\n")
        sys.path.insert(0, str(file.parent))
        import layers

        layers.call(holding.make_mistake)  # package


def under_another_name():
    """As a script whose name is not ASCII."""
    exec(compile("library.make_mistake()", "/home/ποδ/Ωmega.py", "exec"), globals())  # renamed


def is_unusual():
    """Says that frames have another size than those of its version."""
    size = ctypes.c_ssize_t.from_address(id(type(sys._getframe())) + 32)
    size.value += 8
    library.start()
    size.value -= 8


if "is_unusual" in sys.argv:
    is_unusual()
else:
    library.start()
for kind in sys.argv[2:]:
    if kind != "is_unusual":
        globals()[kind]()  # main
