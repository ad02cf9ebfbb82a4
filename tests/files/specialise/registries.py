# test: compile
"""Decorators on module level that note what they decorate: Python runs them when it imports."""

import functools

import nki
import nki.isa as nisa
import nki.language as nl

TABLE = {}


def register(name):
    def noted(function):
        TABLE[name] = function
        return function

    return noted


@register("doubled")
def doubled(x):
    return 2 * x


@functools.singledispatch
def kind(x):
    return 1


@kind.register(int)
def kind_of_int(x):
    return 2


@nki.jit
def kernel():
    assert sorted(TABLE) == ["doubled"]
    assert TABLE["doubled"](4) == 8
    assert (kind("text"), kind(3)) == (1, 2)
    out = nl.ndarray((2, 2), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((2, 2), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out
