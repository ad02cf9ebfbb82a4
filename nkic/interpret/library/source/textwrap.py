"""The line-based functions of `textwrap`."""


def dedent(text):
    """Remove the blanks that all lines start with."""
    lines = [line if line.strip(" \t") else "" for line in text.split("\n")]
    heads = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line]
    common = min(heads, default="")
    for head in heads:
        while not head.startswith(common):
            common = common[:-1]
    return "\n".join(line[len(common) :] for line in lines)


def indent(text, prefix, predicate=str.strip):
    lines = text.splitlines(keepends=True)
    return "".join(prefix + line if predicate(line) else line for line in lines)
