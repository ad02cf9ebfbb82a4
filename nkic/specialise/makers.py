"""Kernels returned by a function of the file: `-k 'scaled_by(3)'` calls it."""

from __future__ import annotations

import ast
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.evaluate.interpreter import Interpreter


def made_kernel(interpreter: Interpreter) -> Any:
    """Call the function and return its result; the command line gives literals as arguments."""
    kernel = interpreter.resolved.kernel
    assert kernel.maker is not None
    name = kernel.maker.name
    args, named = _arguments(kernel.making)

    def call() -> Any:
        maker = interpreter.world.runtime(kernel.module).get(name)
        return interpreter.machine.call(maker, args, named)

    return interpreter.run(call)


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
