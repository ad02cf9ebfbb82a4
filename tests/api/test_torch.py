"""Kernels called from PyTorch, compared with PyTorch's own arithmetic."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from nkic import CompileError, RunError

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'nkic[torch]'")
SHAPE = (256, 1024)
DTYPES = ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "uint8"]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def nki_add(into: Any, a: Any, b: Any) -> Any:
    """The documentation's example of a caller: a grid with one tile per instance."""
    out = torch.zeros(a.shape, dtype=a.dtype)
    into[a.shape[0] // 128, a.shape[1] // 512](a, b, out)
    return out


@pytest.mark.parametrize("name", DTYPES)
def test_tensors_of_every_dtype_come_and_go(drop_in: ModuleType, name: str) -> None:
    x = torch.arange(32).reshape(4, 8).to(getattr(torch, name))
    found = drop_in.converted(x, name)
    assert type(found) is torch.Tensor and found.dtype is x.dtype
    assert torch.equal(found.float(), x.float())


def test_bfloat16_adds_as_pytorch_does(drop_in: ModuleType) -> None:
    a, b = torch.randn(128, 8).bfloat16(), torch.randn(128, 8).bfloat16()
    assert torch.equal(drop_in.add(a, b), a + b)


def test_views_and_several_results(drop_in: ModuleType) -> None:
    a, b = torch.randn(8, 128).T, torch.randn(128, 16)[:, ::2]
    total, rest = drop_in.sum_and_difference(a, b)
    assert torch.equal(total, a + b) and torch.equal(rest, a - b)


def test_64_bit_numbers_are_refused(drop_in: ModuleType) -> None:
    x = torch.zeros(4, 4, dtype=torch.float64)
    with pytest.raises(CompileError, match="array of float64, which is not an NKI dtype"):
        drop_in.add(x, x)
    with pytest.raises(CompileError, match="is int64"):  # a dtype of device scalars only
        drop_in.add(x.long(), x.long())


def test_the_example_of_the_documentation(drop_in: ModuleType) -> None:
    a, b = torch.randn(SHAPE), torch.randn(SHAPE)
    c = nki_add(drop_in.into, a, b)
    assert torch.equal(c, a + b)
    torch.testing.assert_close(a * b * c, a * b * (a + b))


def test_nki_jit_of_torch_neuronx(drop_in: ModuleType) -> None:
    from torch_neuronx import nki_jit

    kernel = nki_jit(drop_in.into.func)
    a = torch.randn(SHAPE)
    assert torch.equal(nki_add(kernel, a, a), a + a)


def test_nki_op_of_torch_neuronx(drop_in: ModuleType) -> None:
    from torch_neuronx import nki_op

    @nki_op("nkic_tests::nki_op", mutates_args={})  # type: ignore[untyped-decorator]
    def operator(x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
        out = torch.zeros_like(x)
        drop_in.into[1, 1](x, x, out)
        return out

    x = torch.randn(128, 512)
    assert torch.equal(operator(x), x + x)
    assert torch.equal(torch.ops.nkic_tests.nki_op(x), x + x)


def test_gradients_through_a_function(drop_in: ModuleType) -> None:
    class NkiAdd(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return nki_add(drop_in.into, a, b)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0], grads[0]

    import torch_xla.core.xla_model as xm

    device = xm.xla_device()  # the example's device lines unchanged; the device is the CPU
    a, b = (torch.randn(SHAPE).to(device).detach().requires_grad_() for _ in range(2))
    (a * b * NkiAdd.apply(a, b)).sum().backward()
    xm.mark_step()
    c, d = (x.detach().clone().requires_grad_() for x in (a, b))
    (c * d * (c + d)).sum().backward()
    torch.testing.assert_close(a.grad, c.grad)
    torch.testing.assert_close(b.grad, d.grad)


def test_what_is_written_and_returned(drop_in: ModuleType) -> None:
    a, b = torch.randn(128, 8), torch.randn(128, 8)
    total = a + b
    assert torch.equal(drop_in.accumulated(a, b), total) and torch.equal(a, total)


def test_several_ranks(drop_in: ModuleType) -> None:
    a, b = torch.randn(8, 4), torch.randn(8, 4)
    found = drop_in.summed_over_ranks.ranks([(a,), (b,)])
    assert all(torch.equal(one, a + b) for one in found)


def test_an_update_counts_as_one_for_autograd(drop_in: ModuleType) -> None:
    a = torch.randn(SHAPE)
    out = torch.zeros(SHAPE)
    before = out._version
    drop_in.into[2, 2](a, a, out)
    assert out._version > before
    with pytest.raises(RunError, match="requires a gradient"):
        drop_in.into[2, 2](a, a, out.requires_grad_())


def test_a_call_inside_compiled_code(drop_in: ModuleType) -> None:
    def model(a: Any, b: Any) -> Any:
        return drop_in.add(a, b) * a

    a, b = torch.randn(128, 8), torch.randn(128, 8)
    torch.testing.assert_close(torch.compile(model, backend="eager")(a, b), (a + b) * a)


# ---- custom operators ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def operator(drop_in: ModuleType) -> Any:
    from nkic.nki.torch_ops import custom_op

    return custom_op("nkic_tests::add", drop_in.add, backward=lambda ctx, grad: (grad, grad))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_operators_are_traced_through(operator: Any, backend: str) -> None:
    @torch.compile(backend=backend, fullgraph=True)  # type: ignore[untyped-decorator]
    def model(a: Any, b: Any) -> Any:
        return operator(a, b) * a

    a, b = (torch.randn(128, 8, requires_grad=True) for _ in range(2))
    found = model(a, b)
    torch.testing.assert_close(found, (a + b) * a)
    found.sum().backward()
    torch.testing.assert_close(a.grad, (2 * a + b).detach())
    torch.testing.assert_close(b.grad, a.detach())


def test_operators_pass_pytorchs_own_checks(operator: Any) -> None:
    a, b = (torch.randn(128, 8, requires_grad=True) for _ in range(2))
    torch.library.opcheck(operator, (a, b))


@pytest.mark.filterwarnings("ignore:Input #")  # float64 inputs become float32: NKI has no float64
def test_gradients_are_those_of_differences(operator: Any) -> None:
    a, b = (torch.randn(2, 3, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(operator, (a, b), eps=1e-2, atol=1e-2, rtol=1e-2)


def test_results_without_data_have_shape_and_dtype(drop_in: ModuleType, operator: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(64, 4, dtype=torch.bfloat16)
        found = operator(x, x)
    assert (found.shape, found.dtype) == ((64, 4), torch.bfloat16)


def test_operators_that_write_an_argument(drop_in: ModuleType) -> None:
    from nkic.nki.torch_ops import custom_op

    made = custom_op("nkic_tests::into", drop_in.into[1, 1], outputs=0, mutates=("c",))
    a, c = torch.randn(128, 512), torch.zeros(128, 512)
    assert made(a, a, c) is None
    assert torch.equal(c, a + a)


def test_what_no_operator_can_take(drop_in: ModuleType) -> None:
    from nkic.nki.torch_ops import custom_op

    with pytest.raises(CompileError, match="default of `engine` is a engine"):
        custom_op("nkic_tests::scaled", drop_in.scaled)
    with pytest.raises(CompileError, match="no parameter `d`"):
        custom_op("nkic_tests::other", drop_in.into, mutates=("d",))


# ---- bare kernels, not custom operators ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cast"), [("float64", "`.to(torch.float32)`"), ("int64", "`.to(torch.int32)`")]
)
def test_a_cast_is_pytorchs(drop_in: ModuleType, name: str, cast: str) -> None:
    x = torch.zeros(4, 4, dtype=getattr(torch, name))
    with pytest.raises(CompileError) as caught:
        drop_in.add(x, x)
    assert cast in str(caught.value)


@pytest.mark.parametrize("backend", [None, "eager", "aot_eager"])
def test_a_gradient_through_a_bare_kernel_says_how(
    drop_in: ModuleType, backend: str | None
) -> None:
    def model(a: Any, b: Any) -> Any:
        return drop_in.add(a, b) + a

    a, b = torch.randn(128, 8, requires_grad=True), torch.randn(128, 8)
    found = (torch.compile(model, backend=backend) if backend else model)(a, b)
    torch.testing.assert_close(found, (a + b + a))
    with pytest.raises(RunError, match="kernel `add` has no gradient") as caught:
        found.sum().backward()
    assert "torch.autograd.Function" in str(caught.value) and "custom_op" in str(caught.value)


def test_without_gradients_results_are_plain(drop_in: ModuleType) -> None:
    a, b = torch.randn(128, 8, requires_grad=True), torch.randn(128, 8)
    with torch.no_grad():
        assert not drop_in.add(a, b).requires_grad
    assert not drop_in.add(a.detach(), b).requires_grad


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_kernel_as_the_backward_of_compiled_code(drop_in: ModuleType, backend: str) -> None:
    class Twice(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return drop_in.add(a, a)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return drop_in.add(gradient, gradient)

    a = torch.randn(128, 8, requires_grad=True)
    found = torch.compile(lambda a: Twice.apply(a) * 3, backend=backend)(a)
    found.sum().backward()
    torch.testing.assert_close(found, 6 * a)
    assert torch.equal(a.grad, torch.full_like(a, 6.0))
