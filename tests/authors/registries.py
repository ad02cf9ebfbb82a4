"""Classes that note their subclasses."""

import nki
import nki.isa as nisa
import nki.language as nl

KINDS = {}


class Base:
    kinds = []

    def __init_subclass__(cls, key=None, **kw):
        super().__init_subclass__(**kw)
        cls.kinds.append(cls)
        KINDS[key or cls.__name__.lower()] = cls

    def go(self, t):
        pass


class Here(Base):
    def go(self, t):
        nisa.tensor_scalar(t, t, nl.add, 2.0)


class There(Here, key="x"):
    def go(self, t):
        super().go(t)
        nisa.tensor_scalar(t, t, nl.multiply, 3.0)


class Plain:
    pass


class Later(Base):
    pass


def out_of(t):
    o = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=o, src=t)
    return o


@nki.jit
def by_table(a):
    t = nl.load(a)
    print(list(KINDS))
    for c in KINDS.values():
        c().go(t)
    return out_of(t)


@nki.jit
def by_class(a):
    t = nl.load(a)
    print([c.__name__ for c in Base.kinds])
    for c in Base.kinds:
        c().go(t)
    return out_of(t)


@nki.jit
def by_one(a):
    t = nl.load(a)
    There().go(t)
    print([c.__name__ for c in There.kinds], list(KINDS))
    return out_of(t)
