"""A program in two parts: an initializer, which runs once and computes the folded constants, and the main part, which runs in each call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Initialized(Generic[T]):
    """``main`` runs in each call. The i-th result of ``initializer`` is the constant of ``main`` whose storage is ``FoldedConstant(i)``; None where
    no constant is folded. From one stage to the next both are graphs, fused graphs, or lowered graphs."""

    main: T
    initializer: T | None = None

    def map(self, f: Callable[[T], U]) -> Initialized[U]:
        """Both parts at the next stage; the same object where ``f`` changes neither, so that nothing is printed and verified again."""
        main, initializer = f(self.main), None if self.initializer is None else f(self.initializer)
        if main is self.main and initializer is self.initializer:
            return cast("Initialized[U]", self)
        return Initialized(main, initializer)

    @property
    def parts(self) -> tuple[T, ...]:
        """Both, or only the main part."""
        return (self.main,) if self.initializer is None else (self.main, self.initializer)

    def __str__(self) -> str:
        return str(self.main) if self.initializer is None else f"initializer, runs once:\n{self.initializer}\n\nmain, runs in each call:\n{self.main}"
