"""Final methods: subclasses cannot override them, and assignments to a class or an object cannot replace them."""

from abc import ABCMeta
from collections.abc import Callable
from functools import update_wrapper
from inspect import getattr_static
from types import MethodType
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


class FinalMethod:
    """A method that an assignment to an object cannot replace.

    It is a data descriptor, which Python uses even if the object's own dict has an entry of that name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Makes a final method from a function."""
        self.function = function
        update_wrapper(cast(Any, self), function)

    def __get__(self, owner: Any, kind: type[Any] | None = None) -> Any:
        return self.function if owner is None else MethodType(self.function, owner)

    def __set__(self, owner: Any, value: object) -> None:
        raise TypeError(_refusal(type(owner).__name__, self.function.__name__))


def final(function: Function) -> Function:
    """Makes a method final in classes of the metaclass :class:`FinalMeta`."""
    return cast(Function, FinalMethod(function))


class FinalMeta(ABCMeta):
    """The metaclass of classes with final methods; it raises errors when a class or an assignment would replace one."""

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **kwargs: Any
    ) -> None:
        """Makes a class and checks that it replaces no final method.

        Args:
            name: Name of the class.
            bases: The classes that it derives from.
            namespace: Attributes of the class body by name.
            **kwargs: Keyword arguments of the class statement, which are not used.

        Raises:
            TypeError: The class, or one of its bases that comes earlier in the method resolution order, has another
                attribute with the name of a final method.
        """
        super().__init__(name, bases, namespace)
        for final_name, method in _final_methods(cls).items():
            if getattr_static(cls, final_name) is not method:
                raise TypeError(_refusal(name, final_name))

    def __setattr__(cls, name: str, value: object) -> None:
        if name in _final_methods(cls):
            raise TypeError(_refusal(cls.__name__, name))
        super().__setattr__(name, value)


def _final_methods(cls: type) -> dict[str, FinalMethod]:
    """Returns the final methods of a class and its bases by name.

    If several classes define one, it is the method of the last class in the method resolution order.
    """
    return {
        name: method
        for base in cls.__mro__
        for name, method in vars(base).items()
        if isinstance(method, FinalMethod)
    }


def _refusal(owner: str, name: str) -> str:
    return f"{owner} overrides {name}, which is final; override _release or allowed_senders instead"
