"""Senders and receivers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

from . import _fontana, errors

Event = dict[str, Any]
Self = TypeVar("Self", bound="Session")


@contextmanager
def raising() -> Iterator[None]:
    """Errors of the module as exceptions of this package."""
    try:
        yield
    except _fontana.Failed as failed:
        kind, code, message = failed.args
        error = errors.named(kind)(message, code)
    else:
        return
    raise error


class Session:
    """A session, which runs on threads of its own.

    It is an iterator over its events: dictionaries, with the names and fields of the program's
    events. A session waits if a thousand of them are not taken, and neither ``join`` nor ``stop``
    was called. At the end of a ``with`` block it is stopped.
    """

    def __init__(self, session: _fontana.Session) -> None:
        self._session = session
        self._ended: tuple[Event, list[str]] | None = None
        self._stopped = False

    def __iter__(self: Self) -> Self:
        return self

    def __next__(self) -> Event:
        event = self._session.next_event()
        if event is None:
            raise StopIteration
        return event

    def __aiter__(self: Self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await asyncio.to_thread(self._session.next_event)
        if event is None:
            raise StopAsyncIteration
        return event

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._end()

    def stop(self) -> None:
        """Requests the end. What was received is saved."""
        self._stopped = True
        self._session.stop()

    def join(self) -> Event:
        """Waits for the end. Returns the report: the event ``summary``.

        Raises ``NotComplete`` if not everything is complete, and the session was not stopped.
        """
        report, failures = self._end()
        if report["code"] != 0 and not (self._stopped and report["verdict"] == "interrupted"):
            raise errors.NotComplete(report, failures)
        return report

    def _end(self) -> tuple[Event, list[str]]:
        with raising():
            ended = self._session.join()
        self._ended = ended or self._ended
        if self._ended is None:
            raise errors.Argument("the session has ended with an error before", 2)
        return self._ended


class Sender(Session):
    """A running sender."""

    @property
    def ticket(self) -> str:
        """What receivers take."""
        return self._session.ticket or ""

    @property
    def description(self) -> Event:
        """What is sent: the event ``session``."""
        return self._session.description or {}


class Receiver(Session):
    """A running receiver."""

    @property
    def written(self) -> int:
        """Bytes of the buffer that are verified, from its beginning."""
        return self._session.written

    def wait(self, start: int, stop: int) -> bool:
        """Waits until the bytes from ``start`` to ``stop`` of the buffer are verified.

        They do not change any more then. Events that come meanwhile are dropped. False: the session
        has ended without these bytes, and ``join`` says why.
        """
        with raising():
            return self._session.wait(start, stop)
