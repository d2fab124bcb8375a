"""An endpoint gets as many requests at a time as it takes, and a refusal now and then costs nothing."""

import asyncio

import pytest

from tracing.llm.http.pace import Width


@pytest.mark.parametrize(("every", "least"), [(30, 64), (2, 1)])
def test_refusals_here_and_there_are_no_limit_and_many_are(every: int, least: int) -> None:
    width = Width(64)
    widths = [width.note(refused=number % every == 0) or width.allowed for number in range(1, 3000)]
    assert min(widths) >= least
    assert (width.allowed < 8) == (every == 2)


def test_it_comes_near_to_what_is_allowed_at_a_time_within_a_few_rounds_and_back_when_that_ends() -> None:
    width, refused = Width(64), 0
    for round_ in range(40):
        at_once = width.allowed
        for number in range(at_once):
            width.note(refused=number >= 8)
            refused += number >= 8 and round_ >= 10
    assert 7 <= width.allowed <= 9
    assert refused < 40
    for _ in range(64 * 64):
        width.note(refused=False)
    assert width.allowed == 64


def test_a_turn_passes_on_when_the_one_whose_turn_it_was_is_cancelled() -> None:
    async def run() -> int:
        width, turns = Width(1), 0
        held = width.turn()

        async def take() -> None:
            nonlocal turns
            async with width.turn():
                turns += 1

        await held.__aenter__()
        first, second = asyncio.create_task(take()), asyncio.create_task(take())
        await asyncio.sleep(0)
        await held.__aexit__(None, None, None)
        first.cancel()
        await asyncio.wait_for(second, 5)
        return turns

    assert asyncio.run(run()) == 1
