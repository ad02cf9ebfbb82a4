"""Kernels called from JAX, compared with JAX's own arithmetic."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from nkic import CompileError, RunError

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install 'nkic[jax]'")
jnp = jax.numpy
SHAPE = (256, 1024)


def arrays(shape: tuple[int, ...] = SHAPE, dtype: Any = "float32") -> tuple[Any, Any]:
    first, second = jax.random.split(jax.random.PRNGKey(0))
    return jax.random.normal(first, shape, dtype), jax.random.normal(second, shape, dtype)


def same(found: Any, wanted: Any) -> None:
    assert isinstance(found, jax.Array)
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-6, atol=1e-6)


def nki_add(kernel: Any, a: Any, b: Any) -> Any:
    """The documentation's example of a caller: a grid with one tile per instance."""
    from jax_neuronx import nki_call

    return nki_call(
        kernel,
        a,
        b,
        grid=(a.shape[0] // 128, a.shape[1] // 512),
        out_shape=jax.ShapeDtypeStruct(a.shape, dtype=a.dtype),
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float8_e5m2", "int32"])
def test_arrays_come_and_go(drop_in: ModuleType, dtype: str) -> None:
    x = jnp.arange(32).reshape(4, 8).astype(dtype)
    found = drop_in.converted(x, dtype)
    assert isinstance(found, jax.Array) and found.dtype == x.dtype
    assert (found.astype("float32") == x.astype("float32")).all()


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_example_of_the_documentation(drop_in: ModuleType, wrapped: bool) -> None:
    def tutorial(a: Any, b: Any) -> Any:
        return a * b * nki_add(drop_in.into.func, a, b)

    a, b = arrays()
    same((jax.jit(tutorial) if wrapped else tutorial)(a, b), a * b * (a + b))


def test_the_kernel_is_a_custom_call(drop_in: ModuleType) -> None:
    a, b = arrays()
    lowered = jax.jit(lambda a, b: nki_add(drop_in.into.func, a, b)).lower(a, b)
    assert "stablehlo.custom_call" in lowered.as_text()
    (line,) = [x for x in lowered.compile().as_text().splitlines() if " custom-call(" in x]
    assert "f32[256,1024]" in line and "nki_call.into" in line


def test_gradients_through_custom_vjp(drop_in: ModuleType) -> None:
    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def add(a: Any, b: Any) -> Any:
        return nki_add(drop_in.into.func, a, b)

    add.defvjp(lambda a, b: (add(a, b), (a, b)), lambda res, grad: (grad, grad))

    @jax.jit  # type: ignore[untyped-decorator]
    def tutorial(a: Any, b: Any) -> Any:
        out = add(a, b) * a * b
        grad = jax.grad(lambda x, y: (add(x, y) * x * y).sum(), argnums=(0, 1))(a, b)
        return out, *grad

    a, b = arrays()
    out, grad_a, grad_b = tutorial(a, b)
    same(out, (a + b) * a * b)
    wanted = jax.grad(lambda x, y: ((x + y) * x * y).sum(), argnums=(0, 1))(a, b)
    np.testing.assert_allclose(grad_a, wanted[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(grad_b, wanted[1], rtol=1e-5, atol=1e-5)


def test_kernels_are_called_in_traced_functions(drop_in: ModuleType) -> None:
    a, b = arrays((128, 8))
    same(jax.jit(lambda a, b: drop_in.add(a, b=b) * 2)(a, b), (a + b) * 2)
    total, rest = jax.jit(drop_in.sum_and_difference)(a, b)
    same(total, a + b)
    same(rest, a - b)


def test_kernels_that_return_their_results(drop_in: ModuleType) -> None:
    from jax_neuronx import nki_call

    a, b = arrays((128, 8))
    shape = jax.ShapeDtypeStruct((128, 8), "float32")
    same(nki_call(drop_in.add, a, b, out_shape=shape), a + b)
    total, rest = nki_call(drop_in.sum_and_difference, a, b, out_shape=(shape, shape))
    same(total, a + b)
    same(rest, a - b)


def test_vmap_runs_the_kernel_for_each(drop_in: ModuleType) -> None:
    a, b = arrays((3, 16, 8))
    same(jax.vmap(drop_in.add)(a, b), a + b)
    same(jax.vmap(drop_in.add, in_axes=(0, None))(a, b[0]), a + b[0])


def test_errors_come_when_the_function_is_traced(drop_in: ModuleType) -> None:
    a, _ = arrays((128, 8))
    with pytest.raises(CompileError, match="float33"):
        jax.jit(drop_in.wrong).lower(a)


@pytest.mark.parametrize(
    ("shape", "dtype", "says"),
    [((128, 9), "float32", r"out_shape is float32\[128, 9\]"), ((128, 8), "int32", "int32")],
)
def test_results_must_be_as_described(
    drop_in: ModuleType, shape: tuple[int, int], dtype: str, says: str
) -> None:
    from jax_neuronx import nki_call

    a, b = arrays((128, 8))
    with pytest.raises(CompileError, match=says):
        nki_call(drop_in.add, a, b, out_shape=jax.ShapeDtypeStruct(shape, dtype))


def test_arrays_of_jax_are_not_written(drop_in: ModuleType) -> None:
    a, b = arrays((128, 512))
    with pytest.raises(RunError, match=r"writes its argument `c`, and arrays of JAX") as caught:
        drop_in.into[1, 1](a, b, jnp.zeros((128, 512)))
    assert "return `c` from the kernel" in str(caught.value)
    with pytest.raises(CompileError, match="writes its argument `c`"):
        jax.jit(drop_in.into[1, 1])(a, b, a)


def test_what_is_written_and_returned_is_a_new_array(drop_in: ModuleType) -> None:
    from jax_neuronx import nki_call

    a, b = arrays((128, 8))
    total = a + b
    for call in (drop_in.accumulated, jax.jit(drop_in.accumulated)):
        found = call(a, b)
        same(found, total)
    same(
        nki_call(drop_in.accumulated, a, b, out_shape=jax.ShapeDtypeStruct(a.shape, a.dtype)), total
    )
    same(a + b, total)  # the arguments are unchanged
