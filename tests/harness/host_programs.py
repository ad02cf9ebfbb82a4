"""Random programs for a promise: whoever evaluates a kernel, the artifact is the same.

A program is a module with data, classes, functions and a kernel that uses them; the arguments of a
call; and what host code changes in the module before the call. The kernel is a function of the
module, or one that a factory makes. All numbers are small integers.
"""

import random
from dataclasses import dataclass, field

HEADS = {
    "beta1": (
        "import neuronxcc.nki as nki\nimport neuronxcc.nki.isa as nisa\n"
        "import neuronxcc.nki.language as nl\n"
    ),
    "0.7": "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n",
}
IMPORTS = (
    "import dataclasses\nimport enum\nimport functools\nimport itertools\n"
    "from collections import defaultdict, deque\nfrom typing import NamedTuple\n\n"
)
OPERATORS = ("nl.add", "nl.multiply", "nl.maximum", "nl.minimum", "nl.subtract")
DTYPES = ("nl.float32", "nl.bfloat16", "nl.float16")
CLASSES = """
@dataclasses.dataclass
class Cfg:
    n: int = 1
    sizes: list = dataclasses.field(default_factory=lambda: [1, 2])

    def total(self):
        return self.n + sum(self.sizes)


class Pair(NamedTuple):
    x: int
    y: int = 2


class Kind(enum.Enum):
    ONE = 1
    TWO = 2


class Base:
    step = 1
    seen = [1]

    def __init__(self, n):
        self.n = n

    @property
    def twice(self):
        return self.n * 2

    @classmethod
    def stride(cls, by={default}):
        return cls.step * by

    @staticmethod
    def plain(x):
        return x + {number}

    def moved(self, x={default}):
        return x + self.n + self.step


class Child(Base):
    def moved(self, x=2):
        return super().moved(x) + len(self.seen)
"""
FUNCTIONS = """
def logged(function):
    calls = []

    @functools.wraps(function)
    def inner(*args, **named):
        calls.append(len(args))
        return function(*args, **named) + len(calls) * 0 + {number} * 0

    return inner


def helper(x, by={default}, *, plus={number}):
    return x * by + plus


@logged
def marked(x, by={default}):
    return x + by


def other(x, by=1, *, plus=0):
    return x + by + plus + {number}


def counted(n):
    for i in range(n):
        yield i + {default}


def adder(k):
    seen = [k]

    def add(x):
        seen.append(x)
        return x + k + len(seen)

    return add


def nested(x):
    total = x

    def inner(y):
        nonlocal total
        total += y
        return total

    return inner(1) + inner({default})
"""


@dataclass
class Program:
    """A module, the name of its kernel, the arguments, and the statements of host code.

    `command` has the arguments and the kernel's name for the command line.
    """

    text: str
    kernel: str
    arguments: str
    command: tuple[str, tuple[str, ...]]
    changes: list[str] = field(default_factory=list)


class Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.version = self.random.choice(("beta1", "0.7"))
        self.atoms = ["2", "3", "5"]
        self.operators = list(OPERATORS)
        self.dtypes = list(DTYPES)
        self.changes: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.fresh = 0

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # ---- expressions ---------------------------------------------------------------------------

    def number(self, depth: int = 0) -> str:
        """Return an expression whose value is an integer."""
        if depth > 2 or self.chance(0.5):
            return self.random.choice(self.atoms)
        x, y = self.number(depth + 1), self.number(depth + 1)
        forms = [f"({x} + {y})", f"max({x}, {y})", f"({x} if {y} % 2 else {y})", f"abs({x} - {y})"]
        forms += [
            f"sum([{x}, {y}])",
            f"len([n for n in range({x} % 5)])",
            f"(lambda v: v + {x})({y})",
        ]
        return self.random.choice(forms)

    def operator(self) -> str:
        return self.random.choice(self.operators)

    # ---- the module ----------------------------------------------------------------------------

    def module(self) -> str:
        parts = [HEADS[self.version] + IMPORTS]
        scalar = self.random.randint(1, 4)
        parts.append(f"SCALE = {scalar}\nITEMS = [1, {scalar}]\nTABLE = {{'a': 1, 'b': [2, 3]}}\n")
        parts.append("MARK = object()\nSHAPE = (4, 8)\n")
        self.atoms += [
            "SCALE",
            "len(ITEMS)",
            "ITEMS[-1]",
            "TABLE['a']",
            "sum(TABLE['b'])",
            "SHAPE[1]",
        ]
        given = {"default": "SCALE", "number": str(self.random.randint(0, 3))}
        self.offer("SCALE = 7", "ITEMS.append(6)", "TABLE['a'] = 5", "TABLE['b'][0] = 9")
        self.offer("ITEMS = [8]", "SHAPE = (2, 2)")
        if self.chance(0.7):
            parts.append(_filled(CLASSES, given))
            parts.append(self.objects())
        if self.chance(0.8):
            parts.append(_filled(FUNCTIONS, given))
            parts.append(self.functions())
        parts.append(f"OP = {self.operator()}\nDT = {self.random.choice(DTYPES)}\n")
        parts.append("OPS = {'first': OP, 'second': nl.add}\n")
        self.operators += ["OP", "OPS['first']", "OPS['second']"]
        self.dtypes += ["DT"] * 3
        self.offer(f"OP = {self.operator()}", "DT = nl.float16", "OPS['second'] = nl.maximum")
        return "\n".join(parts)

    def offer(self, *changes: str) -> None:
        """Add statements about the module's names that host code may run."""
        self.changes += changes

    def objects(self) -> str:
        self.atoms += ["CFG.n", "CFG.total()", "Cfg(2).total()", "PAIR.x", "Pair(1).y", "OBJECT.n"]
        self.atoms += ["OBJECT.twice", "OBJECT.moved()", "Child(3).moved(1)", "Base.stride()"]
        self.atoms += ["Child.stride(2)", "Base.plain(1)", "Kind.TWO.value", "KIND.value"]
        self.atoms += ["sum(Child.seen)", "len(QUEUE)", "len(LISTS['x'])", "CFGS[0].n"]
        self.offer("CFG.n = 6", "CFG.sizes.append(4)", "PAIR = Pair(4, 4)", "OBJECT.n = 5")
        self.offer("OBJECT.step = 3", "Base.step = 4", "Base.seen.append(2)", "Child.seen = [7, 7]")
        self.offer("KIND = Kind.ONE", "QUEUE.append(1)", "LISTS['x'].append(1)", "CFGS[0].n = 8")
        self.offer("Base.moved.__defaults__ = (9,)", "CFG = Cfg(9, ITEMS)", "OBJECT = Base(7)")
        return (
            "CFG = Cfg(3)\nPAIR = Pair(1)\nOBJECT = Child(2)\nKIND = Kind.TWO\n"
            "QUEUE = deque([1, 2], 4)\nLISTS = defaultdict(list)\nCFGS = [CFG, Cfg()]\n"
        )

    def functions(self) -> str:
        self.atoms += ["helper(2)", "helper(1, plus=4)", "marked(3)", "other(1)", "nested(2)"]
        self.atoms += [
            "sum(counted(3))",
            "next(counted(2))",
            "FUNCTIONS['h'](2)",
            "TEN(2)",
            "PICK(3)",
        ]
        self.atoms += [
            "FUNCTIONS['l'](1)",
            "ADD(2)",
            "adder(1)(2)",
            "KEPT(2)",
            "len(helper.__name__)",
        ]
        self.offer("helper = other", "FUNCTIONS['h'] = other", "helper.__defaults__ = (5,)")
        self.offer("PICK = other", "ADD = adder(9)", "TEN = functools.partial(other, by=3)")
        self.offer("helper.__kwdefaults__ = {'plus': 2}", "KEPT = nested", "marked = other")
        return (
            "TEN = functools.partial(helper, by=10)\nPICK = helper\nADD = adder(4)\n"
            "FUNCTIONS = {'h': helper, 'l': lambda x: x + SCALE, 'm': lambda x: x}\n"
            "KEPT = ADD\n"
        )

    # ---- the kernel ----------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def value(self) -> str:
        return f"float({self.number()} % 7)"

    def statement(self) -> None:
        common = [self.loop, self.branch, self.function, self.attempt, self.shown, self.local]
        former = [self.computed] * 4 + [self.kept] * 4 + [self.converted, self.summed]
        present = [self.scaled] * 4 + [self.joined] * 2 + [self.copied, self.parts]
        self.random.choice(common + (former if self.version == "beta1" else present))()

    def block(self, low: int = 1, high: int = 3) -> None:
        self.depth += 1
        self.line("pass")
        for _ in range(self.random.randint(low, high)):
            self.statement()
        self.depth -= 1

    def loop(self) -> None:
        if self.depth > 3:
            return
        kinds = ["range", "nl.static_range"]
        kinds += ["nl.affine_range", "nl.sequential_range"] * 2
        name, atoms = self.name(), list(self.atoms)
        self.line(f"for {name} in {self.random.choice(kinds)}({self.number()} % 3 + 1):")
        self.atoms += [name, f"({name} * 2)"]
        self.block()
        self.atoms = atoms

    def branch(self) -> None:
        if self.depth > 3:
            return
        self.line(f"if {self.number()} % 2:")
        self.block(1, 2)
        self.line("else:")
        self.block(1, 2)

    def attempt(self) -> None:
        name = self.name()
        self.line("try:")
        self.line(f"    {name} = [1, 2][{self.number()} % 4]")
        self.line("except IndexError as error:")
        self.line(f"    {name} = len(error.args)")
        self.atoms = [*self.atoms, name] if self.depth == 1 else self.atoms

    def shown(self) -> None:
        self.line(f'print({self.number()}, f"{{{self.number()}:>3}}", {self.operator()})')

    def local(self) -> None:
        name = self.name()
        self.line(f"{name} = {self.number()}")
        if self.depth == 1:
            self.atoms.append(name)

    def function(self) -> None:
        """A nested function that records, with a default and a variable of the kernel."""
        if self.depth > 2:
            return
        name = self.name()
        self.line(f"def {name}(t, k={self.number()}):")
        atoms = list(self.atoms)
        self.atoms.append("k")
        self.block(1, 2)
        self.atoms = atoms
        self.line(f"{name}(t0)")
        if self.chance(0.5):
            self.line(f"{name}(t1, k={self.number()})")

    # Statements of NKI 0.7

    def scaled(self) -> None:
        tile = self.random.choice(("t0", "t1"))
        self.line(
            f"nisa.tensor_scalar(dst={tile}, data={tile}, op0={self.operator()}, "
            f"operand0={self.value()})"
        )

    def joined(self) -> None:
        self.line(f"nisa.tensor_tensor(dst=t1, data1=t0, data2=t1, op={self.operator()})")

    def copied(self) -> None:
        name = self.name()
        dtype = self.random.choice(self.dtypes)
        self.line(f"{name} = nl.ndarray((128, 32), dtype={dtype}, buffer=nl.sbuf)")
        self.line(f"nisa.tensor_copy(dst={name}, src=t0)")
        self.line(f"nisa.tensor_copy(dst=t1, src={name})")

    def parts(self) -> None:
        self.line(
            f"for part in [t0[:, j * 8 : j * 8 + 8] for j in range({self.number()} % 3 + 1)]:"
        )
        self.line(f"    nisa.memset(dst=part, value={self.value()})")

    # Statements of Beta 1

    def computed(self) -> None:
        tile = self.random.choice(("t0", "t1"))
        function = self.random.choice(("nl.add", "nl.multiply", "nl.maximum"))
        self.line(f"{tile}[...] = {function}({self.random.choice(('t0', 't1'))}, {self.value()})")

    def kept(self) -> None:
        """A result that is assigned, and sometimes used again."""
        name, tile = self.name(), self.random.choice(("t0", "t1"))
        self.line(f"{name} = nl.add(t0, {self.value()})")
        self.line(f"{tile}[...] = {name}")
        use = self.random.choice(
            (
                "",
                "",
                f"t1[...] = nl.add({name}, t1)",
                f"t0[:, 0:8] = {name}[:, 8:16]",
                f"{name} += t0",
            )
        )
        if use:
            self.line(use)

    def converted(self) -> None:
        self.line(f"t1[...] = nl.copy(t0, dtype={self.random.choice(self.dtypes)})")

    def summed(self) -> None:
        name = self.name()
        self.line(f"{name} = nl.zeros((32, 32), dtype=nl.float32, buffer=nl.psum)")
        self.line(f"for turn in nl.affine_range({self.number()} % 2 + 1):")
        self.line(f"    {name} += nl.matmul(t0, t1, transpose_x=True)")
        self.line(f"t1[0:32, 0:32] = {name}")

    # ---- the whole -----------------------------------------------------------------------------

    def kernel(self, name: str, parameters: str) -> list[str]:
        self.lines = []
        self.line("out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)")
        if self.version == "beta1":
            self.line("t0 = nl.load(a)")
            self.line("t1 = nl.load(a)")
        else:
            for tile in ("t0", "t1"):
                self.line(f"{tile} = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)")
                self.line(f"nisa.dma_copy(dst={tile}, src=a)")
        for _ in range(self.random.randint(3, 7)):
            self.statement()
        self.line(f"print({', '.join(self.random.sample(self.atoms, 3))})")
        if self.version == "beta1":
            self.line("nl.store(out, nl.add(t0, t1))")
        else:
            self.line("nisa.tensor_tensor(dst=t0, data1=t0, data2=t1, op=nl.add)")
            self.line("nisa.dma_copy(dst=out, src=t0)")
        self.line("return out")
        return ["@nki.jit", f"def {name}(a{parameters}):", *self.lines, ""]

    def program(self) -> Program:
        text = self.module()
        given = self.arguments("Cfg(" in text)
        parameters = "".join(f", {name}{default}" for name, default, _, _ in given)
        python = ", ".join(f"{name}={value}" for name, _, value, _ in given if value)
        consts = tuple(
            f"{name}={value}" for name, _, value, value_ in given if value for value in [value_]
        )
        is_made = self.chance(0.4)
        if is_made:
            made = str(self.random.randint(1, 4))
            self.atoms += ["k0"] * 3
            lines = self.kernel("kernel", parameters)
            head = f"def make(k0, op0={self.random.choice(OPERATORS)}):"
            body = [head, *(f"    {line}" for line in lines)]
            text += "\n\n" + "\n".join(
                [*body, "    return kernel", "", f"KERNEL = make({made})", ""]
            )
            command = (f"make({made}).kernel", consts)
        else:
            text += "\n\n" + "\n".join(self.kernel("kernel", parameters))
            command = ("kernel", consts)
        changes: list[str] = []
        if self.chance(0.6):
            changes = self.random.sample(self.changes, min(len(self.changes), 4))
        return Program(text, "KERNEL" if is_made else "kernel", python, command, changes)

    def arguments(self, has_classes: bool) -> list[tuple[str, str, str, str]]:
        """Return name, default, value in Python and value on the command line of each argument."""
        found = []
        number, dtype = self.random.randint(1, 6), self.random.choice(DTYPES)
        operator, default = self.operator(), self.random.choice(("3", "SCALE", "1e-5"))
        offered = [
            ("n", "", str(number), str(number)),
            ("dt", "", dtype, dtype),
            ("op", "", self.random.choice(OPERATORS[:3]), ""),
            ("sizes", "", "(1, 2)", "(1, 2)"),
            ("word", "", "'x y'", '"x y"'),
            ("left", f"={default}", "", ""),
            ("given", "=4", "5", "5"),
            ("kind", f"={dtype}", "", ""),
            ("flag", "=None", "True", "True"),
        ]
        if has_classes:
            offered += [("cfg", "", "Cfg(2)", "Cfg(2)"), ("mode", "", "Kind.ONE", "Kind.ONE")]
        for one in self.random.sample(offered, self.random.randint(0, 4)):
            name, default, value, command = one
            found.append((name, default, value, command or value))
        atoms = {"n": "n", "sizes": "sizes[1]", "word": "len(word)", "given": "given"}
        atoms |= {
            "cfg": "cfg.total()",
            "mode": "mode.value",
            "left": "int(left)",
            "flag": "(3 if flag else 4)",
        }
        self.atoms += [atoms[name] for name, *_ in found if name in atoms for _ in range(2)]
        self.operators += ["op" for name, *_ in found if name == "op"]
        self.dtypes += ["dt" for name, *_ in found if name == "dt"]
        del operator
        return sorted(found, key=lambda one: bool(one[1]))  # those with defaults come last


def _filled(text: str, given: dict[str, str]) -> str:
    for name, value in given.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def program(seed: int) -> Program:
    return Writer(seed).program()
