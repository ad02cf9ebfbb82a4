"""Attempts to escape from a restricted Python, grouped by the weakness ("door") they try.

Every attempt is the body of a kernel. `WHY` tells for each door why it fails; the tests run
every attempt and check that no host function was called and no later compilation is affected.
"""

from __future__ import annotations

WHY = {
    "classes": "a kernel's class is an object of the interpreter's, its parents a tuple of such",
    "code generation": "dataclasses, named tuples and enumerations are the interpreter's own; "
    "nothing writes source and runs it",
    "patterns": "a pattern reads attributes as any other code does: through the tables",
    "names": "every binding goes through one function, and a bound name is a key of a dict",
    "functions": "a function offers its name and its documentation, and is not a Python function",
    "frames": "generators and exceptions hold no frame that a table names",
    "text": "format fields read attributes through the tables",
    "builtins": "what is not in the table of builtins does not exist",
    "modules": "a module is a table; host modules are names that refuse every use",
    "shared values": "classes that evaluations share belong to nobody, and refuse assignment",
    "operators": "special methods are found in the kernel's classes, never in Python's",
}

_GENERATED = (
    "x,)\\n__import__('os').system('touch pwned')\\ndef g(other,self):\\n if 1:\\n  if 1:\\n"
    "   return (self.x"
)

ATTEMPTS: dict[str, list[str]] = {
    "classes": [
        "return ().__class__.__bases__[0].__subclasses__()",
        "return object.__subclasses__()",
        "return type.__subclasses__(type)",
        "return [].__class__.__base__.__subclasses__()",
        "return type.mro(int)[0].__dict__",
        "class A: pass\nreturn A.__mro__[1].__subclasses__()",
        "class A: pass\nA.__bases__ = (int,)",
        "class A: pass\nA().__class__ = int",
        "class M(type): pass",
        "class A(metaclass=lambda *a, **k: nl): pass\nreturn A.x",
        "class B:\n    match (lambda self, bases: (type(kernel),)):\n"
        "        case __mro_entries__: pass\nclass X(B()): pass",
        "def f(): pass\nK = type(f)\nclass X(K): pass",
        "class A(type(nl)): pass",
        "class A:\n    __class__ = type(kernel)\nreturn A().__globals__",
        "return type('X', (object,), {'__del__': print})",
        "return super(object, object).__getattribute__('__subclasses__')()",
        "class A(Exception):\n    def __reduce__(self): return (print, ('x',))\n"
        "return A().__reduce__()",
        "class A:\n    def __init_subclass__(cls): cls.__subclasshook__ = print\n"
        "class B(A): pass\nreturn B.__subclasshook__.__self__",
        "class A:\n    __slots__ = ('__dict__', '__globals__')\nreturn A().__globals__",
    ],
    "code generation": [
        "from dataclasses import dataclass\nclass C(nl.NKIObject): pass\n"
        f'setattr(C, "{_GENERATED}", 1)\ndataclass(init=False)(C)',
        "from dataclasses import dataclass\n@dataclass(init=False)\nclass C:\n"
        f'    match {{"{_GENERATED}": 1}}:\n        case __annotations__: pass',
        f'from dataclasses import make_dataclass\nreturn make_dataclass("C", ["{_GENERATED}"])',
        f'from collections import namedtuple\nreturn namedtuple("C", ["{_GENERATED}"])',
        f'from collections import namedtuple\nreturn namedtuple("{_GENERATED}", ["x"])',
        f'from typing import NamedTuple\nreturn NamedTuple("C", [("{_GENERATED}", int)])',
        f'from enum import Enum\nreturn Enum("C", ["{_GENERATED}"])',
        "from dataclasses import dataclass, field\n@dataclass\nclass C:\n"
        "    x: int = field(default_factory=__import__)\nreturn C()",
        "from dataclasses import dataclass\n@dataclass\nclass C:\n"
        '    x: \'open("pwned", "w")\' = 1\n'
        "return C()",
        "from typing import get_type_hints\nclass C:\n    x: '__import__(\"os\")'\n"
        "return get_type_hints(C)",
        "from dataclasses import dataclass\n@dataclass\nclass C:\n    __import__: int = 1\n"
        "return C.__init__.__globals__",
        "from functools import wraps\n@wraps(kernel)\ndef f(): pass\nreturn f.__wrapped__.__code__",
        "from string import Formatter\n"
        "return Formatter().vformat('{0.__globals__}', (kernel,), {})",
    ],
    "patterns": [
        "def f(): pass\nK = type(f)\nclass X:\n    __match_args__ = ('__globals__',)\n"
        "match f:\n    case X(g): return g",
        "match kernel:\n    case object(__globals__=g): return g['__builtins__']",
        "match (x for x in []):\n    case object(gi_frame=g): return g.f_globals",
        "match 1:\n    case int(__class__=c): return c.__subclasses__()",
        "class X:\n    __match_args__ = ('__class__', '__dict__')\nmatch X():\n"
        "    case X(c, d): return d",
        "match {'a': 1}:\n    case {'a': __builtins__}: return __builtins__['open']",
        "class X:\n    __match_args__ = ['__globals__']\nmatch X():\n    case X(a): return a",
    ],
    "names": [
        "match 1:\n    case __builtins__: return __builtins__",
        "for __builtins__ in [{}]: pass\nreturn open",
        "(__builtins__ := {})\nreturn open",
        "import math as __builtins__",
        "from math import floor as __import__",
        "def __build_class__(*a): return a\nclass A: pass",
        "try: 1 / 0\nexcept ZeroDivisionError as __loader__: return __loader__",
        "[__builtins__ for __builtins__ in [1]]\nreturn __builtins__",
        "global __builtins__\n__builtins__ = {}\nreturn open",
        "lambda __class__: 0\nreturn __spec__",
        "class A:\n    def f(self, __globals__): return __globals__\nreturn A().f(1)",
        "with nl.no_reorder() as __builtins__: pass",
        "return __loader__.get_data('/etc/passwd')",
        "return __file__, __spec__, __path__",
    ],
    "functions": [
        "return kernel.__code__.co_consts",
        "return (lambda: 0).__globals__['__builtins__']",
        "def f(): return x\nf.__code__ = kernel.__code__",
        "def f(a=[]): pass\nreturn f.__defaults__, f.__closure__, f.__kwdefaults__",
        "return [].append.__self__.__class__.__base__",
        "return print.__self__.open('/etc/passwd')",
        "return ''.join.__func__, ''.join.__self__.__globals__",
        "return len.__call__.__self__.__module__.__loader__",
        "from functools import partial\nreturn partial(print).func.__self__",
        "from functools import lru_cache\n@lru_cache\ndef f(): pass\n"
        "return f.__wrapped__.__globals__",
        "class A:\n    def f(self): pass\nreturn A().f.__func__.__globals__",
        "return nl.ndarray.__call__.__globals__",
        "return nki.jit._apply, nki.jit._options",
        "return kernel.function, kernel.func",
        "class A:\n    @property\n    def x(self): pass\nreturn A.x.fget.__code__",
        "import operator\nreturn operator.attrgetter('__globals__')(kernel)",
        "import operator\nreturn operator.methodcaller('__getattribute__', '__globals__')(kernel)",
        "return getattr(kernel, ''.join(['__glo', 'bals__']))",
        "return setattr(kernel, '__code__', 1)",
    ],
    "frames": [
        "return (x for x in [1]).gi_frame.f_back.f_globals",
        "def g():\n    yield 1\nreturn g().gi_frame, g().gi_code",
        "try: 1 / 0\nexcept ZeroDivisionError as e: return e.__traceback__.tb_frame",
        "try: 1 / 0\n"
        "except ZeroDivisionError as e: return e.with_traceback(None).__traceback__.tb_next",
        "try: [][1]\nexcept IndexError as e: return e.__context__.__traceback__.tb_frame",
        "try: x.y\nexcept NameError as e: return e.nkic_frames",
        "try: nl.nope\nexcept AttributeError as e: return e.obj.__dict__",
        "class E(Exception): pass\ntry: raise E\nexcept E as e: return e.nkic_value",
        "import sys\nreturn sys._getframe().f_globals",
        "import sys\nreturn sys.exc_info()[2].tb_frame",
        "import inspect\nreturn inspect.currentframe()",
        "class CM:\n    def __enter__(self): pass\n"
        "    def __exit__(self, t, v, tb): self.tb = tb; return True\n"
        "c = CM()\nwith c: 1 / 0\nreturn c.tb.tb_frame",
    ],
    "text": [
        'return "{0.__class__.__mro__}".format(1)',
        'return "{0.__globals__}".format(kernel)',
        'return "{a.__init__.__globals__}".format_map({"a": nl})',
        'return str.format("{0.__code__}", kernel)',
        'return f"{kernel.__globals__}"',
        "class A:\n    def __format__(self, s): return open(s)\nreturn format(A(), '/etc/passwd')",
        "class A:\n    def __str__(self): return __import__('os').getcwd()\nreturn str(A())",
        'return "%(__globals__)s" % {"x": kernel}',
        "class A(str):\n    def format(self, *a): return a[0].__globals__\n"
        "return A().format(kernel)",
    ],
    "builtins": [
        "return open('/etc/passwd').read()",
        "return eval('1 + 1')",
        "return exec('x = 1')",
        "return compile('1', '', 'eval')",
        "return __import__('os').system('touch pwned')",
        "return globals()['__builtins__']",
        "return vars(nl)",
        "return breakpoint()",
        "return input()",
        "return memoryview(b'x')",
        "return exit()",
        "return help()",
        "raise SystemExit(3)",
        "raise KeyboardInterrupt",
        "raise BaseException('x')",
        "return getattr(__builtins__, 'open')",
        "return iter(open, 1)",
        "return [*map(eval, ['1'])]",
        "return id(nl)",
        "return dir(nl)[0].__class__.__subclasses__()",
    ],
    "modules": [
        "import os\nreturn os.system('touch pwned')",
        "from os import system\nreturn system('touch pwned')",
        "import subprocess as s\nreturn s.run(['touch', 'pwned'])",
        "import ctypes\nreturn ctypes.CDLL(None)",
        "import builtins\nreturn builtins.open('pwned', 'w')",
        "import importlib\nreturn importlib.import_module('os')",
        "import nki.language.trace as t\nreturn t.active()",
        "import nkic.compiler.pipeline as p\nreturn p.gc",
        "from nkic.stdlib import _promoted\nreturn _promoted.__globals__",
        "import math\nreturn math.__loader__",
        "import math\nmath.pi = 3\nreturn math.pi",
        "import collections.abc as c\nreturn c.sys.modules",
        "import dataclasses\nreturn dataclasses.sys.modules['os'].system('touch pwned')",
        "import functools\nreturn functools.recursive_repr.__globals__",
        "import enum\nreturn enum.bltns.open",
        "import typing\nreturn typing.sys.modules",
        "import numpy as np\nreturn np.load('/etc/passwd')",
        "import numpy as np\nreturn np.lib.npyio",
        "from typing import *\nreturn sys.modules",
        "import os\nreturn os.environ.__class__.__init__.__globals__",
        "return nl.__dict__",
        "return nl.trace",
        "return nisa.nc_matmul._row",
        "return nl.float32.__class__.__init__.__globals__",
        "return nl.tile_size._target.__class__",
    ],
    "shared values": [
        "from dataclasses import dataclass\ndataclass(frozen=True)(nl.NKIObject)",
        "from functools import total_ordering\ntotal_ordering(nl.NKIObject)",
        "nl.NKIObject.x = 1",
        "nl.NKIObject.__init__ = print",
        "setattr(nl.NKIObject, '__eq__', lambda a, b: True)",
        "object.__setattr__(nl.NKIObject, 'x', 1)",
        "type.__setattr__(nl.NKIObject, 'x', 1)",
        "int.x = 1",
        "str.join = print",
        "Exception.__str__ = lambda e: 'x'",
        "nl.float32.name = 'int8'",
        "nl.tile_size.pmax = 1",
        "nl.x = 1",
        "del nl.float32",
        "nisa.engine.vector = 1",
        "nl.add.name = 'subtract'",
        "nisa.nc_matmul._row = 1",
        "import math\nsetattr(math, 'floor', print)",
        "import enum\nenum.Enum.x = 1",
        "from abc import ABC\nABC.register(int)",
        "from typing import NamedTuple\nNamedTuple.x = 1",
        "print.name = 'x'",
        "kernel.schedule = 1",
        "class A(nl.NKIObject): pass\nA.__bases__[0].x = 1",
        "class A(nl.NKIObject): pass\nsuper(A, A).x = 1",
    ],
    "operators": [
        "class A:\n    def __getattr__(self, n): return kernel.__globals__\nreturn A().x",
        "class A:\n    def __class_getitem__(cls, i): return cls.__subclasses__()\nreturn A[1]",
        "class A:\n    def __get__(self, o, t): return t.__subclasses__()\n"
        "class B:\n    a = A()\nreturn B().a",
        "class A:\n    def __del__(self): print('x')\nA()",
        "class A:\n    def __getattribute__(self, n): return object\nA().x",
        "class A:\n    __getattr__ = getattr\nreturn A().__globals__",
        "class A:\n    __call__ = kernel\n    __eq__ = open\nreturn A() == 1",
        "class A:\n    def __index__(self): return __builtins__\nreturn [1][A()]",
        "class A:\n    def __hash__(self): return open\nreturn {A(): 1}",
        "import functools, operator\n"
        "return functools.reduce(operator.getitem, ['__globals__'], kernel)",
    ],
}
