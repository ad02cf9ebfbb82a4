"""`string`, all but the constants."""


def capwords(s, sep=None):
    return (" " if sep is None else sep).join(word.capitalize() for word in s.split(sep))


class Template:
    __slots__ = ("template",)

    def __init__(self, template):
        self.template = template

    def substitute(self, /, *args, **named):
        return self.__filled(args, named, safe=False)

    def safe_substitute(self, /, *args, **named):
        return self.__filled(args, named, safe=True)

    def get_identifiers(self):
        return list(dict.fromkeys(name for _, name in _fields(self.template) if name))

    def is_valid(self):
        return all(name != "" for _, name in _fields(self.template))

    def __filled(self, args, named, safe):
        if len(args) > 1 or not hasattr(args[0] if args else {}, "keys"):
            raise TypeError("a template takes one mapping and keyword arguments")
        values, pieces, at = args[0] if args else {}, [], 0
        for written, name in _fields(self.template):
            if name and (name in named or name in values or not safe):
                pieces.append(str(named[name] if name in named else values[name]))
            elif name == "" and not safe:
                lines = f"{self.template[:at]}|".splitlines()
                place = f"line {len(lines)}, col {len(lines[-1])}"
                raise ValueError(f"Invalid placeholder in string: {place}")
            else:
                pieces.append("$" if written == "$$" else written)
            at += len(written)
        return "".join(pieces)


def _fields(text):
    """Yield each piece of text as it is written, and the name in it: "" for a `$` alone."""
    at = 0
    while (start := text.find("$", at)) >= 0:
        yield text[at:start], None
        if text[start + 1 : start + 2] == "$":
            at, name = start + 2, None
        elif text[start + 1 : start + 2] == "{":
            end = text.find("}", start)
            name = text[start + 2 : max(end, 0)]
            name = name if name.isascii() and name.isidentifier() else ""
            at = end + 1 if name else start + 1
        else:
            at = start + 1
            while at < len(text) and text[at].isascii() and (text[at].isalnum() or text[at] == "_"):
                at += 1
            name = text[start + 1 : at]
            if not name.isidentifier():
                at, name = start + 1, ""
        yield text[start:at], name
    yield text[at:], None
