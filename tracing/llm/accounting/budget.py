"""Hard limits on what a run may spend on models, checked before each call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tracing.errors import BudgetExceededError, PartSpentError, ShareSpentError
from tracing.llm.settings import Limits

COUNTED = ("calls", "tokens", "money")

_LOOK_S = 1.0
"""Time between two looks at the clock of a call that waits for others to settle."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What has been spent: calls, tokens (prompt plus completion) and money."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: Spending) -> Spending:
        return Spending(self.calls + other.calls, self.tokens + other.tokens, self.money + other.money)

    def __sub__(self, other: Spending) -> Spending:
        return Spending(self.calls - other.calls, self.tokens - other.tokens, self.money - other.money)


@dataclass(frozen=True, slots=True)
class Holdback:
    """What is kept of a budget for what comes later."""

    seconds: float = 0.0
    spending: Spending = Spending()


@dataclass(frozen=True, slots=True)
class _Part:
    """What may be spent from a moment on; None is no limit.

    Attributes:
        key: the setting that says so; None for a share.
        before: what was spent by then.
        calls, tokens, money: that may be spent.
        until: the time in the run when it ends.
    """

    key: str | None
    before: Spending
    calls: float | None = None
    tokens: float | None = None
    money: float | None = None
    until: float | None = None

    def remaining(self, name: str, spent: Spending) -> float | None:
        allowed = getattr(self, name)
        return None if allowed is None else max(0.0, allowed - getattr(spent - self.before, name))

    def refusal(self, total: Spending) -> BudgetExceededError | None:
        """Why a total is more than this part allows; None if it is not."""
        for name in COUNTED:
            allowed = getattr(self, name)
            if allowed is None or getattr(total - self.before, name) <= allowed:
                continue
            if self.key is None:
                return ShareSpentError(f"its share of {allowed:g} {name} is spent")
            return PartSpentError(f"{self.key}: {allowed} {name} are made, and no more are allowed; raise {self.key}")
        return None


class Budget:
    """Spending against limits; thread-safe.

    A call first reserves the most it may cost and afterwards settles its real cost, so concurrent calls cannot
    exceed a limit together. What is refused raises a `BudgetExceededError`.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self._opened = clock()
        self._repeated = 0.0
        self._lock = threading.Lock()
        self._settled = threading.Condition(self._lock)
        self._spent = Spending()
        self._reserved = Spending()
        self._under_way = 0
        self._whole = _Part(None, Spending(), limits.calls, limits.tokens, limits.money)
        self._parts: list[_Part] = []
        self._beside, self._is_beside = Spending(), False
        """What no part counts, and whether what is being spent belongs to it."""
        self._holdback: Callable[[], Holdback] = Holdback
        self._timed = True

    @property
    def spent(self) -> Spending:
        """What settled calls have cost so far."""
        with self._lock:
            return self._spent

    @property
    def seconds(self) -> float:
        """Seconds since the budget was opened."""
        return self._clock() - self._opened

    def since(self, seconds: float) -> float:
        """Seconds since an earlier value of `seconds`."""
        return max(0.0, self.seconds - seconds)

    def go_to(self, seconds: float) -> None:
        """Set the clock to a time before the run was resumed, while that part is repeated from the cache.

        Work that ran concurrently then is repeated in any order, so the latest time counts.
        """
        with self._lock:
            self._repeated = max(self._repeated, seconds)
            self._opened = self._clock() - self._repeated

    def remaining_seconds(self) -> float | None:
        """Seconds until calls are refused, not below 0; None without a limit."""
        whole, share = self.remaining_time()
        if whole is not None:
            whole = max(0.0, whole - self._holdback().seconds)
        return min((seconds for seconds in (whole, share) if seconds is not None), default=None)

    def remaining_time(self) -> tuple[float | None, float | None]:
        """Seconds left of the whole time budget, and of the share that is being spent; None without a limit.

        What is kept of it (`keeping`) is not taken off.
        """
        ends = [part.until for part in self._parts if part.until is not None]
        limited = self.limits.seconds is not None and self._timed
        whole = max(0.0, (self.limits.seconds or 0.0) - self.seconds) if limited else None
        return whole, max(0.0, min(ends) - self.seconds) if ends else None

    def remaining_calls(self) -> tuple[float | None, float | None]:
        """Calls left of the whole budget, and of the parts that are being spent; None without a limit."""
        with self._lock:
            return self._whole.remaining("calls", self._spent), self._remaining_of_parts("calls")

    def _remaining_of_parts(self, name: str) -> float | None:
        remaining = [part.remaining(name, self._counted) for part in self._parts]
        return min((amount for amount in remaining if amount is not None), default=None)

    def check_time(self) -> None:
        """Refuse once the time budget, or the share that is being spent, is used up, or what is left is kept."""
        whole, share = self.remaining_time()
        if whole == 0.0 and self.limits.seconds is not None:
            raise _exceeded("seconds", self.limits.seconds, round(self.seconds))
        if whole is not None and whole <= self._holdback().seconds:
            raise kept_back("time")
        if share == 0.0:
            raise ShareSpentError("its share of the time is over")

    @contextmanager
    def keeping(self, holdback: Callable[[], Holdback]) -> Iterator[None]:
        """Inside, refuse calls that would take of what is kept, which is asked for each time."""
        self._holdback = holdback
        try:
            yield
        finally:
            self._holdback = Holdback

    @contextmanager
    def untimed(self) -> Iterator[None]:
        """Inside, the time budget refuses nothing: what has begun may end."""
        self._timed = False
        try:
            yield
        finally:
            self._timed = True

    def reserve(self, most: Spending) -> None:
        """Reserve `most`, the most that the next call may cost, or refuse it if it could exceed a limit.

        Calls under way reserve more than they come to cost. What only they leave no room for waits until they settle.
        """
        with self._settled:
            while True:
                self.check_time()
                refusal = self._refusal(self._spent + self._reserved + most)
                if refusal is None:
                    self._reserved, self._under_way = self._reserved + most, self._under_way + 1
                    return
                if not self._under_way or self._refusal(self._spent + most) is not None:
                    raise refusal
                self._settled.wait(_LOOK_S)

    def _refusal(self, total: Spending) -> BudgetExceededError | None:
        """Why a total is too much; None if it is not."""
        held_back = self._holdback().spending
        for name in COUNTED:
            limit = getattr(self.limits, name)
            if limit is not None and getattr(total, name) > limit:
                return _exceeded(name, limit, getattr(self._spent, name), getattr(self._reserved, name))
            if limit is not None and getattr(total + held_back, name) > limit:
                return kept_back(name)
        parts = () if self._is_beside else self._parts
        return next(filter(None, (part.refusal(total - self._beside) for part in parts)), None)

    @contextmanager
    def part(self, key: str, calls: int | None) -> Iterator[None]:
        """Allow at most `calls` inside, besides the limits of the whole; `key` names the setting that says so."""
        with self._lock:
            part = _Part(key, self._counted, calls=calls)
        with self._within(part):
            yield

    @contextmanager
    def beside_parts(self) -> Iterator[None]:
        """Inside, only the limits of the whole count calls, tokens and money; no part and no share does."""
        with self._lock:
            before, self._is_beside = self._spent, True
        try:
            yield
        finally:
            with self._lock:
                self._beside, self._is_beside = self._beside + self._spent - before, False

    @property
    def _counted(self) -> Spending:
        return self._spent - self._beside

    @contextmanager
    def share(self, fraction: float) -> Iterator[None]:
        """Allow this fraction of all that is left and not kept inside; what is not spent of it is left to others."""
        with self._lock:
            allowed: dict[str, float | None] = {}
            held_back = self._holdback().spending
            for name in COUNTED:
                whole = self._whole.remaining(name, self._spent)
                unkept = None if whole is None else max(0.0, whole - getattr(held_back, name))
                limits = [limit for limit in (unkept, self._remaining_of_parts(name)) if limit is not None]
                allowed[name] = fraction * min(limits) if limits else None
            time_left = self.remaining_seconds()
            until = None if time_left is None else self.seconds + fraction * time_left
            part = _Part(None, self._counted, **allowed, until=until)
        with self._within(part):
            yield

    @contextmanager
    def _within(self, part: _Part) -> Iterator[None]:
        with self._lock:
            self._parts.append(part)
        try:
            yield
        finally:
            with self._lock:
                self._parts.remove(part)

    def settle(self, reserved: Spending, spent: Spending) -> None:
        """Replace a reservation by what the call really cost."""
        with self._settled:
            self._reserved, self._under_way = self._reserved - reserved, self._under_way - 1
            self._spent = self._spent + spent
            self._settled.notify_all()


def kept_back(name: str) -> BudgetExceededError:
    """The refusal of what would take of the time, calls, tokens or money that are kept for the test."""
    verb = "are" if name in ("calls", "tokens") else "is"
    return BudgetExceededError(f"the remaining {name} {verb} reserved for the test conversations")


def _exceeded(name: str, limit: float, spent: float, reserved: float = 0) -> BudgetExceededError:
    also = f", up to {reserved:g} more under way" if reserved else ""
    key = "minutes" if name == "seconds" else name  # of a configuration's budget
    return BudgetExceededError(
        f"the budget of {limit:g} {name} does not allow the next model call ({spent:g} spent{also}); "
        f"raise the limit {key!r}"
    )
