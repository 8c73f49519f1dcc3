from typing import Any

class native:
    function: Any
    address: int
    def __init__(self, function: Any) -> None: ...

def address_of(function: Any, n_arguments: int | None = None) -> int: ...
