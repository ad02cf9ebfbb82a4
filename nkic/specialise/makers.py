"""The functions of kernels: undecorated ones, and those that a function of the file makes.

`-k 'scaled_by(3)'` calls such a function.
"""

from __future__ import annotations

import ast
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.evaluate.calls import bind, enter_cells
from nkic.evaluate.interpreter import Interpreter
from nkic.evaluate.objects import Function
from nkic.language.objects import Kernel
from nkic.syntax import nodes


def made_kernel(interpreter: Interpreter) -> Any:
    """Call the function and return its kernel; the command line gives literals as arguments.

    The kernel is what the function returns, or else what it defines under the kernel's name: it may
    return several values, or a function that launches the kernel.
    """
    kernel = interpreter.resolved.kernel
    assert kernel.maker is not None
    name = kernel.maker.name
    args, named = _arguments(kernel.making)

    def call() -> Any:
        maker, m = interpreter.world.runtime(kernel.module).get(name), interpreter.machine
        if not isinstance(maker, Function) or maker.code.is_generator:
            return plain(m.call(maker, args, named))
        frame = bind(m, maker, args, named)
        enter_cells(maker.code, frame, maker.cells)
        result = m.run(maker.code, frame)
        returned = plain(result[0]) if result is not None else None
        if isinstance(returned, Function) and returned.code.node is kernel.node:
            return returned
        return plain(maker.code.locals(frame).get(kernel.name, returned))

    return interpreter.run(call)


def undecorated(interpreter: Interpreter) -> Any:
    """Return the kernel's function without its decorators, which are meant for host code."""
    kernel = interpreter.resolved.kernel
    args = kernel.node.args
    plain = (*args.posonlyargs, *args.args)
    arguments: list[tuple[nodes.Arg, nodes.Expression | None]] = [
        *zip(plain[len(plain) - len(args.defaults) :], args.defaults, strict=True),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ]

    def make() -> Any:
        runtime = interpreter.world.runtime(kernel.module)
        defaults = {
            arg.name: runtime.evaluate(value) for arg, value in arguments if value is not None
        }
        return runtime.function(kernel.node, "", (), lambda function: {}, defaults)

    return interpreter.run(make)


def plain(kernel: Any) -> Any:
    """Return the function of a kernel."""
    while isinstance(kernel, Kernel):
        kernel = kernel.function
    return kernel


def _arguments(making: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    try:
        call = ast.parse(making, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError(making)
        args = tuple(ast.literal_eval(value) for value in call.args)
        return args, {
            keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise KernelError(
            "argument-kind",
            f"`{making}` cannot be called: its arguments are not literals",
            help="write numbers, text in quotes, and tuples, lists and dicts of these",
        ) from error
