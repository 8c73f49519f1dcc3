import os
from typing import Any

def from_torch(module: Any, example: Any, path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]: ...
