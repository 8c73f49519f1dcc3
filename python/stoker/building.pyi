from typing import Any, Mapping

from .graph import Value

class _Names:
    def __getattr__(self, name: str) -> Any: ...

layers: _Names
networks: _Names
losses: _Names
optimizers: _Names

def minimize(loss: Value, optimizer: str | Mapping[str, Any] = "adam", *, clip_norm: float = 0.0, only: str | None = None) -> None: ...
