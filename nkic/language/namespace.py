"""Namespaces: the modules that nkic provides to kernels."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple

from nkic.base.device import KernelError, Missing
from nkic.base.diagnostics import Guess, did_you_mean

# ------------------------------------------------------------------------------------------------
# Names in PyTorch, JAX and NumPy for functions with a different name in `nki.language`.
# Only names that differ by more than a spelling correction are listed.

MEANT = {
    "gelu_tanh": "gelu_apprx_tanh",
    "gelu_new": "gelu_apprx_tanh",
    "gelu_fast": "gelu_apprx_tanh",
    "gelu_pytorch_tanh": "gelu_apprx_tanh",
    "gelu_sigmoid": "gelu_apprx_sigmoid",
    "quick_gelu": "gelu_apprx_sigmoid",
    "swish": "silu",
    "logistic": "sigmoid",
    "expit": "sigmoid",
    "leaky_relu": "prelu",
    "atan": "arctan",
    "amax": "max",
    "amin": "min",
    "pow": "power",
    "mul": "multiply",
    "sub": "subtract",
    "div": "divide",
    "true_divide": "divide",
    "remainder": "mod",
    "neg": "negative",
    "inverse": "reciprocal",
    "bitwise_not": "invert",
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "lt": "less",
    "le": "less_equal",
    "empty": "ndarray",
    "times": "multiply",
    "mult": "multiply",
    "absolute": "abs",
    "half": "float16",
    "bf16": "bfloat16",
    "fp16": "float16",
}

_REPEAT = ("broadcast_to", "nl.broadcast_to(t, shape) repeats the elements of a tile")
_PRODUCT = ("matmul", "nl.matmul(x, y) multiplies two matrices")
# Names of functions whose arguments differ: the member of `nki.language` that does it, and how.
OTHERWISE = {
    "tile": _REPEAT,
    "repeat": _REPEAT,
    "expand": _REPEAT,
    "dot": _PRODUCT,
    "mm": _PRODUCT,
    "bmm": _PRODUCT,
    "einsum": _PRODUCT,
    "array": ("shared_constant", "nl.shared_constant(array) puts known numbers into HBM"),
    "unsqueeze": ("expand_dims", "nl.expand_dims(t, axis) adds a dimension of size 1"),
    "masked_fill": ("where", "nl.where(condition, x, y) chooses element by element"),
    "clip": ("minimum", "nl.minimum(nl.maximum(t, low), high) keeps values within bounds"),
    "clamp": ("minimum", "nl.minimum(nl.maximum(t, low), high) keeps values within bounds"),
    "argmax": ("max", "nisa.max8, then nisa.nc_find_index8, find the places of the largest values"),
    "topk": ("max", "nisa.max8 finds the 8 largest values, nisa.nc_find_index8 their places"),
    "layer_norm": ("mean", "nisa.bn_stats and nisa.bn_aggr compute mean and variance"),
}


def meant(name: str, names: Container[str]) -> str:
    """Return a `Guess` at the member of `names` that another library's name means, or ""."""
    meaning = MEANT.get(name, "")
    return Guess(name, meaning, False) if meaning in names else ""


def otherwise(name: str, names: Container[str]) -> str:
    """Return how to do what another library's function does, or ""."""
    member, text = OTHERWISE.get(name, ("", ""))
    return text if member in names else ""


class Absent(NamedTuple):
    """The error for a name that a module does not have."""

    slug: str
    text: str
    help: str


class Namespace:
    """A provided module. Its members are read-only attributes.

    `absent` has errors for names that other versions of NKI, or other modules of this name, have.
    `lazy` makes a value on first access, `watched` on every access, for deprecated names. `advice`
    is the help for unknown names without a near match, `elsewhere` the help for names of other
    modules.
    """

    def __init__(
        self,
        name: str,
        contents: Mapping[str, Any],
        absent: Mapping[str, Absent] | None = None,
        lazy: Mapping[str, Callable[[], Any]] | None = None,
        watched: Mapping[str, Callable[[], Any]] | None = None,
        advice: str = "",
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        self.__dict__.update(contents)
        self.__dict__["@name"] = name
        self.__dict__["@absent"] = dict(absent or {})
        self.__dict__["@lazy"] = dict(lazy or {})
        self.__dict__["@watched"] = dict(watched or {})
        self.__dict__["@advice"] = advice
        self.__dict__["@elsewhere"] = elsewhere or {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # Python protocols probe for these
        if name in self.__dict__["@watched"]:
            return self.__dict__["@watched"][name]()
        make = self.__dict__["@lazy"].get(name)
        if make is None:
            raise self._missing(name)
        value = self.__dict__[name] = make()
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        raise KernelError(
            "hidden-attribute",
            f"`{self.__dict__['@name']}.{name}` cannot be assigned",
            help="keep the value in a variable of your own",
        )

    def __repr__(self) -> str:
        return f"<module '{self.__dict__['@name']}'>"

    def _missing(self, name: str) -> KernelError:
        module = self.__dict__["@name"]
        absent: Absent | None = self.__dict__["@absent"].get(name)
        if absent is not None:
            return Missing(absent.slug, absent.text, name, absent.help)
        text = f"`{module}` has no `{name}`"
        return Missing("unknown-attribute", text, name, lambda: self._nearest(name))

    def _nearest(self, name: str) -> str:
        """Return advice on an unknown name: first a misspelt one, then one of other libraries."""
        names, near = names_of(self), suggested(self, name)
        there = self.__dict__["@elsewhere"].get(name) or meant(name, names)
        if there and not (isinstance(near, Guess) and near.sure):
            return there
        how = otherwise(name, names)
        return " ".join(filter(None, (near, how))) if how else near or self.__dict__["@advice"]


def missing(namespace: Namespace, name: str) -> KernelError | None:
    contents = namespace.__dict__
    exists = name in contents or name in contents["@lazy"] or name in contents["@watched"]
    return None if exists or name.startswith("_") else namespace._missing(name)


def submodule(parent: Namespace, name: str) -> Absent:
    absent: Absent | None = parent.__dict__["@absent"].get(name)
    text = f"`{parent.__dict__['@name']}` has no module `{name}`"
    return absent or Absent("import-failed", text, suggested(parent, name))


def suggested(namespace: Namespace, name: str) -> str:
    """Return a `Guess` at the member that `name` means, or ""; deprecated members come last."""
    return did_you_mean(name, names_of(namespace), namespace.__dict__["@watched"])


def names_of(namespace: Namespace) -> list[str]:
    contents = namespace.__dict__
    names = {*contents, *contents["@lazy"], *contents["@watched"]}
    return sorted(name for name in names if not name.startswith(("_", "@")))
