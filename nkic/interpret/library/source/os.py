"""`os`: an environment without variables."""

from collections.abc import Mapping


class _Environment(Mapping):
    __slots__ = ()

    def __getitem__(self, key):
        raise KeyError(key)

    def __len__(self):
        return 0

    def __iter__(self):
        return iter(())

    def copy(self):
        return {}

    def __repr__(self):
        return "environ({})"


environ = _named(_Environment, "os.environ")()


def getenv(key, default=None):
    return default
