"""The syntax tree, in one import: `from nkic.syntax import nodes`.

There is one frozen class per construct, named as in Python's own `ast`. Every node starts with its
`span`, exact to the character. Differences from `ast`, and the reasons:

* Operators are their text ("+", "not in", "and"), so that messages can print them.
* There is no `ctx`: the position of a Name tells whether it is read or written.
* `async` is a flag. Names of definitions have a span of their own (`name_span`).
* Nodes compare and hash by identity, so later stages can key tables by node.

Chains lean on one side and may be as deep as the file is long: `a + b + c …`, `a.b.c …`, `f()()…`
on their left, `elif` on `orelse`. Traverse them with `nkic.syntax.walk` or a loop, not recursively.
All other nesting is bounded, see `nkic.parse.limits`.
"""

from nkic.syntax.base import Node as Node
from nkic.syntax.expressions import *  # noqa: F403
from nkic.syntax.patterns import *  # noqa: F403
from nkic.syntax.statements import *  # noqa: F403
