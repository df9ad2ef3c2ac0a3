"""DNS for tests: the zones are dicts, and nothing leaves the process. All values are made up."""

import asyncio
from collections.abc import Sequence


class Zones:
    """`reverse` and `forward` map an address to names and a name to addresses; an exception stands for a failure."""

    def __init__(self) -> None:
        self.reverse: dict[str, list[str] | Exception] = {}
        self.forward: dict[str, list[str] | Exception] = {}
        self.delay = 0.1
        self.asked: list[str] = []
        self.asking = 0
        self.asking_most = 0

    async def names(self, address: str) -> Sequence[str]:
        return await self._answer(self.reverse, address)

    async def addresses(self, name: str) -> Sequence[str]:
        return await self._answer(self.forward, name)

    async def _answer(self, zone: dict[str, list[str] | Exception], text: str) -> Sequence[str]:
        self.asked.append(text)
        self.asking += 1
        self.asking_most = max(self.asking_most, self.asking)
        try:
            await asyncio.sleep(self.delay)
        finally:
            self.asking -= 1
        answer = zone.get(text, [])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def host(self, address: str, name: str) -> None:
        """A host of somebody who runs both zones."""
        self.reverse[address] = [name]
        self.forward[name.lower().removesuffix(".")] = [address]
