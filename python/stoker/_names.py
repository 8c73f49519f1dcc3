"""What recipes can name, with their keys, out of the reference that the library prints (docs/recipe.md): for help() and completion."""

from . import _core

_known = {}  # "layer": {"dense": its text}


def texts(kind):
    """By name, all of a table of the reference: what it means, or its section, which has keys and defaults, too."""
    if kind not in _known:
        import re  # takes as long to import as all of Stoker
        parts = re.split(r"^## (\S+)$", _core.reference(), flags=re.M)
        section = dict(zip(parts[1::2], (text.strip() for text in parts[2::2])))
        rows = re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", section[kind], flags=re.M)
        _known[kind] = {name: section.get("%s.%s" % (kind, name), meaning) for name, meaning in rows}
    return _known[kind]


class Names:
    """Attributes are functions, by the names of recipes. kind: of their table in docs/recipe.md."""

    def __init__(self, kind):
        self._kind = kind

    def _function(self, name):
        raise NotImplementedError

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        function = self._function(name)
        function.__name__ = function.__qualname__ = name
        function.__doc__ = texts(self._kind).get(name)
        return function

    def __dir__(self):
        import keyword
        return sorted({*super().__dir__(), *(name for name in texts(self._kind) if not keyword.iskeyword(name))})
