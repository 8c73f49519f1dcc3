from typing import Any

class Explanation(dict[str, Any]):
    def svg(self) -> str: ...

class Sheet:
    png: bytes
    n_samples: int
    height: int
    width: int
    def __init__(self, png: bytes, n_samples: int, height: int, width: int) -> None: ...
    def save(self, path: Any) -> None: ...
