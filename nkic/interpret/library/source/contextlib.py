"""`contextlib`, all but `contextmanager`."""


class nullcontext:
    def __init__(self, enter_result=None):
        self.enter_result = enter_result

    def __enter__(self):
        return self.enter_result

    def __exit__(self, *_):
        return None


class suppress:
    def __init__(self, *exceptions):
        self._exceptions = exceptions

    def __enter__(self):
        return None

    def __exit__(self, kind, value, traceback):
        return kind is not None and isinstance(value, self._exceptions)


class ExitStack:
    def __init__(self):
        self._exit_callbacks = []

    def __enter__(self):
        return self

    def enter_context(self, cm):
        cls = type(cm)
        try:
            enter, leave = cls.__enter__, cls.__exit__
        except AttributeError:
            name = f"{cls.__module__}.{cls.__qualname__}"
            text = f"'{name}' object does not support the context manager protocol"
            raise TypeError(text) from None
        result = enter(cm)
        self._exit_callbacks.append(lambda *details: leave(cm, *details))
        return result

    def push(self, exit):
        leave = getattr(type(exit), "__exit__", None)
        bound = exit if leave is None else lambda *details: leave(exit, *details)
        self._exit_callbacks.append(bound)
        return exit

    def callback(self, callback, /, *args, **named):
        self._exit_callbacks.append(lambda *_: callback(*args, **named) and None)
        return callback

    def pop_all(self):
        moved = self.__class__()
        moved._exit_callbacks, self._exit_callbacks = self._exit_callbacks, []
        return moved

    def close(self):
        self.__exit__(None, None, None)

    def __exit__(self, kind, value, traceback):
        pending, raised = value, None
        while self._exit_callbacks:
            leave = self._exit_callbacks.pop()
            details = (None, None, None) if pending is None else (type(pending), pending, None)
            try:
                if leave(*details) and pending is not None:
                    pending = raised = None
            except Exception as error:
                pending = raised = error
        if raised is not None:
            _reraise(raised)
        return kind is not None and pending is None
