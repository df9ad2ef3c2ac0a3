"""The settings in force: read from code, file and environment, and read again when a file changes.

What outlives a change is kept here: the store, the counts, what a verifier has learned, the secret of the cookies.
"""

import logging
import os
import secrets
from collections.abc import Callable
from typing import Any

from throttle.server.agent_table_file import AgentTableFile
from throttle.server.agents import classify as classify_agent
from throttle.server.caller import Classify
from throttle.server.config import ConfigFile, Loaded, settings_from
from throttle.server.reverse_dns import SystemResolver
from throttle.server.rule import MICROSECONDS
from throttle.server.rulebook import Rulebook
from throttle.server.settings import Settings, SettingsDict
from throttle.server.stores import Pause, Store
from throttle.server.stores.named import store_named
from throttle.server.tally import Tallies
from throttle.server.verify import Verifier

logger = logging.getLogger("throttle")


class SettingsInForce:
    """Gives the `Rulebook` of the settings as they stand. Raises ValueError for settings that make no sense.

    `store` is overridden by the file and the environment. `gate` gives what a rulebook's rules are prepared for: that
    store, or what stands in front of it. `hooks` are the rulebook's own.
    """

    def __init__(
        self,
        config: str | os.PathLike[str] | None,
        store: Store | str,
        from_code: SettingsDict,
        gate: Callable[[Settings], Store],
        tallies: Tallies,
        classify: Classify,
        verify: Verifier | None,
        clock: Callable[[], float],
        **hooks: Any,
    ) -> None:
        self._config = None if config is None else ConfigFile(config)
        self._from_code = from_code
        self.loaded = self._load()
        """what was read last, and could be used"""
        self.store = store_named(self.loaded.store or store)
        self.book: Rulebook
        """once settings are in use"""
        self._gate = gate
        self._tallies = tallies
        self._classify = classify
        self._clock = clock
        self._hooks = hooks
        self._agent_table: AgentTableFile | None = None
        self.verifier = verify
        """the one in use, or the last that was"""
        self._is_own_verifier = verify is not None
        self._verifies_by: tuple[str | None, bool] | None = None
        self._own_secret = secrets.token_bytes(32)

    def _load(self) -> Loaded:
        if self._config is None:
            return settings_from({}, os.environ, **self._from_code)
        return self._config.load(**self._from_code)

    def use(self, settings: Settings) -> Rulebook:
        """Put settings in force, all at once. Hits, load and sleepers stay."""
        classify = self._classify
        if settings.agent_table is not None:
            if classify is not classify_agent:
                raise ValueError("agent_table= is for the throttle's own classifier, so leave out classify=")
            if self._agent_table is None or self._agent_table.path != settings.agent_table:
                self._agent_table = AgentTableFile(settings.agent_table)
            classify = self._agent_table.classifier.classify
        self.book = Rulebook(
            settings,
            self._gate(settings),
            self._tallies,
            classify=classify,
            verify=self._verifier(settings),
            secret=self._own_secret if settings.cookie_secret is None else settings.cookie_secret.encode(),
            **self._hooks,
        )
        if settings.limits.paused:
            self.store.paused = Pause(None, settings.limits.pause_early)
        return self.book

    def _verifier(self, settings: Settings) -> Verifier | None:
        """The one in use, with all that it has learned, unless the settings name other sources."""
        if not settings.verifies:
            return None
        sources = settings.crawler_ranges, settings.reverse_dns
        if not self._is_own_verifier and sources != self._verifies_by:
            self.close()
            self._verifies_by = sources
            resolver = SystemResolver() if settings.reverse_dns else None
            self.verifier = Verifier(settings.crawler_ranges, resolver=resolver, clock=self._clock)
        return self.verifier

    def look(self, now: int) -> tuple[Rulebook, float]:
        """Look whether a file has changed; a broken one changes nothing. Returns also when to look again: in a second,
        or never, where there is no file.
        """
        if self._agent_table is not None and self.book.settings.agent_table is not None:
            self._agent_table.look()
        if self._config is not None and self._config.has_changed():
            self._reread(self._config)
        is_watching = self._config is not None or self.book.settings.agent_table is not None
        return self.book, now + MICROSECONDS if is_watching else float("inf")

    def _reread(self, config: ConfigFile) -> None:
        was_paused = self.book.settings.limits.paused
        try:
            loaded = self._load()
            self.use(loaded.settings)
        except ValueError as error:
            logger.error("configuration not re-read, the old one stays in force: %s", error)
            return
        if loaded.store != self.loaded.store:
            logger.warning(
                "store=%r in %s counts when the site is started again, not before", loaded.store, config.path
            )
        self.loaded = loaded
        if was_paused and not loaded.settings.limits.paused:
            self.store.paused = None
        logger.info("configuration read again from %s", config.path)

    def close(self) -> None:
        """The site is shutting down."""
        if self.verifier is not None:
            self.verifier.close()
