"""Context managers and special methods that record instructions."""

from contextlib import ExitStack, contextmanager
import nki
import nki.isa as nisa
import nki.language as nl


def out_of(t):
    o = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=o, src=t)
    return o


class Adds:
    def __init__(self, t, k):
        self.t, self.k = t, k

    def __enter__(self):
        nisa.tensor_scalar(self.t, self.t, nl.add, self.k)
        return self

    def __exit__(self, kind, *more):
        nisa.tensor_scalar(self.t, self.t, nl.multiply, self.k)
        return kind is KeyError


@contextmanager
def scaled(t, k):
    nisa.tensor_scalar(t, t, nl.multiply, k)
    try:
        yield
    finally:
        nisa.tensor_scalar(t, t, nl.subtract, k)


@nki.jit
def leaving_(a):
    t = nl.load(a)

    def early(n):
        with Adds(t, 1.0), scaled(t, 2.0), Adds(t, 3.0):
            if n == 0:
                return 1
            if n == 1:
                raise KeyError
            nisa.tensor_scalar(t, t, nl.add, 9.0)

    for n in range(3):
        early(n)
    for i in range(3):
        with Adds(t, 4.0), scaled(t, 5.0):
            if i == 0:
                continue
            if i == 1:
                break
    with ExitStack() as stack:
        stack.enter_context(scaled(t, 2.0))
        stack.callback(nisa.tensor_scalar, t, t, nl.add, 6.0)
    try:
        with scaled(t, 7.0):
            raise ValueError
    except ValueError:
        nisa.tensor_scalar(t, t, nl.add, 8.0)
    finally:
        nisa.tensor_scalar(t, t, nl.add, 9.0)
    return out_of(t)


@nki.jit
def special_(a):
    t = nl.load(a)

    class T:
        def __init__(self, x):
            self.x = x

        def __add__(self, o):
            nisa.tensor_scalar(self.x, self.x, nl.add, o)
            return self

        def __iadd__(self, o):
            nisa.tensor_scalar(self.x, self.x, nl.add, o)
            return self

        def __getitem__(self, i):
            nisa.tensor_scalar(self.x, self.x, nl.add, float(i))
            return self

        def __setitem__(self, i, v):
            nisa.tensor_scalar(self.x, self.x, nl.add, float(v))

        def __delitem__(self, i):
            nisa.tensor_scalar(self.x, self.x, nl.add, float(i))

        def __len__(self):
            nisa.tensor_scalar(self.x, self.x, nl.add, 1.0)
            return 2

        def __iter__(self):
            for i in range(2):
                nisa.tensor_scalar(self.x, self.x, nl.add, float(i))
                yield i

        def __bool__(self):
            nisa.tensor_scalar(self.x, self.x, nl.add, 1.5)
            return True

        def __contains__(self, o):
            nisa.tensor_scalar(self.x, self.x, nl.add, 2.5)
            return True

        def __eq__(self, o):
            nisa.tensor_scalar(self.x, self.x, nl.add, 3.5)
            return True

        def __lt__(self, o):
            nisa.tensor_scalar(self.x, self.x, nl.add, 3.5)
            return True

        def __neg__(self):
            nisa.tensor_scalar(self.x, self.x, nl.multiply, -1.0)
            return self

        def __str__(self):
            nisa.tensor_scalar(self.x, self.x, nl.add, 4.5)
            return "s"

        def __format__(self, s):
            nisa.tensor_scalar(self.x, self.x, nl.add, 4.5)
            return "s"

        def __call__(self, k=1.0):
            nisa.tensor_scalar(self.x, self.x, nl.add, k)
            return self

        def __matmul__(self, o):
            nisa.tensor_scalar(self.x, self.x, nl.add, 4.5)
            return self

        @property
        def p(self):
            nisa.tensor_scalar(self.x, self.x, nl.add, 5.5)
            return 1

        @p.setter
        def p(self, v):
            nisa.tensor_scalar(self.x, self.x, nl.add, 6.5)

        def __getattr__(self, n):
            nisa.tensor_scalar(self.x, self.x, nl.add, 7.5)
            return 1

        def __hash__(self):
            nisa.tensor_scalar(self.x, self.x, nl.add, 0.5)
            return 1

    v = T(t)
    v = v + 1.0
    v += 2.0
    v[3]
    v[4] = 5
    del v[6]
    if v:
        pass
    n = len(v) + v.p + v.q
    v.p = 3
    for i in v:
        pass
    x, y = v
    assert v
    if 3 in v and not (v == 3) or v < 2:
        pass
    -v
    v(2.0)(k=3.0)
    v @ v
    d = {v: 1}
    s = sorted([v, v])
    q = [v[i] for i in range(2)]
    z = sum(v)
    g = (k for k in v)
    list(g)
    u = v if v else None
    while v:
        break
    lam = lambda: v(1.0)
    lam()
    match v:
        case T(p=1):
            v(2.0)
    h = list(map(lambda i: v(1.0), range(2)))
    b = any(v(2.0) for _ in range(2))
    return out_of(t)


@nki.jit
def deco_(a):
    t = nl.load(a)

    def each(n):
        def wrap(f):
            def inner(*args):
                for _ in range(n):
                    f(*args)

            return inner

        return wrap

    @each(2)
    @each(2)
    def step(k):
        nisa.tensor_scalar(t, t, nl.add, k)

    step(1.0)

    class Once:
        nisa.tensor_scalar(t, t, nl.add, 3.0)
        val = [nisa.tensor_scalar(t, t, nl.add, float(i)) for i in range(2)]

    def default(x=nisa.tensor_scalar(t, t, nl.add, 4.0)):
        pass

    default()
    (lambda: nisa.tensor_scalar(t, t, nl.add, 5.0))()
    [
        nisa.tensor_scalar(
            t,
            t,
            nl.add,
            float(i),
        )
        for i in range(3)
        if nisa.tensor_scalar(t, t, nl.add, 1.0)
    ]
    nisa.tensor_scalar(t[:, 0:4], t[:, 0:4], nl.add, 2.0)
    nisa.tensor_scalar(t, t, nl.add, 1.0)
    x = nisa.tensor_scalar(t, t, nl.add, 1.0)
    return out_of(t)
