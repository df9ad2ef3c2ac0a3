"""One TOML file, keyword arguments, environment: who overrides whom, and what an error says."""

from pathlib import Path

import pytest
from starlette.applications import Starlette

from throttle import Delay, Limits, ThrottleMiddleware
from throttle.operate.sentences import policy_in_sentences
from throttle.server.config import ConfigError, ConfigFile, load

WHOLE = """
enforce = false
store = "memory"
preset = "connotea"
trusted_proxies = ["10.0.0.0/8", "unix"]
forwarded_header = "x-forwarded-for"
exempt_prefixes = ["/static"]
banned_agents = ["BadBot"]
api_paths = ["/api"]
status = {hit_stack = 429}

[limits]
load_max = 30
all_crawlers_seconds = "off"
defer_delay = {maximum = 10}
pause_exempt = ["192.0.2.1"]

[[path_limits]]
path = "/search"
methods = ["GET", "HEAD"]
stack_hits = 5
"""


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "throttle.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_every_part_of_a_file_is_read(tmp_path: Path) -> None:
    settings, store = load(written(tmp_path, WHOLE), {})
    assert store == "memory"
    assert settings.enforce is False
    assert settings.limits == Limits(
        load_max=30, all_crawlers_seconds=None, defer_delay=Delay(maximum=10), pause_exempt=("192.0.2.1",)
    )
    (search,) = settings.path_limits
    assert (search.path, search.methods) == ("/search", ("GET", "HEAD"))
    assert (search.limits.stack_hits, search.limits.load_max) == (5, 30)
    assert settings.statuses == {"*": 503, "hit_stack": 429}


def test_the_file_overrides_the_code_and_the_environment_overrides_the_file(tmp_path: Path) -> None:
    file = ConfigFile(
        written(tmp_path, "api_paths = ['/api']\n[limits]\nload_max = 30"),
        {"THROTTLE_LOAD_MAX": "40", "THROTTLE_ENFORCE": "no", "THROTTLE_TRUSTED_PROXIES": "10.0.0.1, 10.0.0.2"},
    )
    settings, store = file.load(limits=Limits(load_max=20, stack_hits=7), api_paths=["/x"], ipv6_prefix=56)
    assert (settings.limits.load_max, settings.limits.stack_hits) == (40, 7)
    assert (settings.api_paths, settings.ipv6_prefix, settings.enforce) == (("/api",), 56, False)
    assert settings.trusted_proxies == ("10.0.0.1", "10.0.0.2")
    assert store is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[limits]\nstack_hit = 5", "limits: unknown key 'stack_hit'; did you mean 'stack_hits'?"),
        ("[limits]\nload_max = 0", "limits: Limits(load_max=0): a whole number from 1"),
        ('[limits]\nstack_seconds = "15s"', "stack_seconds='15s'"),
        ("[limits]\ndefer_delay = 3", "limits.defer_delay: a table is needed"),
        ("[limits]\ndefer_delay = {minimum = 40}", "0 <= minimum <= maximum"),
        ("limits = 3", "limits: a table is needed"),
        ("enforced = true", "unknown key 'enforced'; did you mean 'enforce'?"),
        ('enforce = "yes"', "enforce='yes': True or False"),
        ("store = 3", "store=3"),
        ('preset = "modrn"', "preset='modrn': one of connotea, modern"),
        ('trusted_proxies = ["10.0.0.0/99"]', "10.0.0.0/99"),
        ('trusted_proxies = "10.0.0.0/8"', "trusted_proxies='10.0.0.0/8'"),
        ("[[path_limits]]\nstack_hits = 3", "path_limits: each needs a path"),
        ('[[path_limits]]\npath = "search"', "each beginning with /"),
        ('[[path_limits]]\npath = "/s"\nmethods = ["get"]', "methods"),
        ('[[path_limits]]\npath = "/s"\nhits = 3', "unknown key 'hits'"),
        ('[[path_limits]]\npath = "/s"\npaused = true', "paused: there is no pause of a path"),
        ("path_limits = 3", "path_limits"),
        ("status = 42", "status"),
        ("a = ", "not TOML"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_an_error_is_one_line_that_names_the_file_the_key_and_what_is_allowed(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("THROTTLE_ENFORCE", "maybe"), ("THROTTLE_LOAD_MAX", "many"), ("THROTTLE_TRUSTED_PROXIES", "localhost")],
)
def test_an_error_of_the_environment_is_called_that(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError, match="environment") as caught:
        load(written(tmp_path, ""), {name: value})
    assert value in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(ConfigError, match=path.name):
            load(path, {})
    with pytest.raises(ConfigError, match="larger than"):
        load(written(tmp_path, "#" * 2_000_000), {})


def test_a_file_may_name_the_modern_preset_and_switch_parts_of_it_off(tmp_path: Path) -> None:
    text = "preset = 'modern'\n[limits]\ncookies = false\nnetwork_hits = 'off'\nshare_hits = 9"
    settings, _ = load(written(tmp_path, text), {})
    assert settings.limits == Limits.modern(cookies=False, network_hits=None, share_hits=9)


def test_the_environment_may_hold_the_secret_and_no_error_shows_it(tmp_path: Path) -> None:
    settings, _ = load(written(tmp_path, ""), {"THROTTLE_SECRET": "a secret of the site"})
    assert settings.cookie_secret == "a secret of the site"
    for text, environ in (("", {"THROTTLE_SECRET": "too short"}), ("cookie_secret = 'too short'", {})):
        with pytest.raises(ConfigError, match="cookie_secret: a text of at least 16 characters") as error:
            load(written(tmp_path, text), environ)
        assert "too short" not in str(error.value)


@pytest.mark.parametrize(
    "prefixes", ["[24]", "[24, 48, 64]", "[7, 48]", "[24, 129]", "'24'", "[24.0, 48]", "[true, 4]"]
)
def test_the_bits_of_networks_are_checked(tmp_path: Path, prefixes: str) -> None:
    with pytest.raises(ConfigError, match=r"network_prefixes=.*two whole numbers"):
        load(written(tmp_path, f"network_prefixes = {prefixes}"), {})


def test_a_modern_policy_reads_as_sentences(tmp_path: Path) -> None:
    settings, _ = load(written(tmp_path, "preset = 'modern'"), {})
    text = "\n".join(policy_in_sentences(settings))
    assert "A browser is given a signed cookie, and is counted by it" in text
    assert "What its pages load is counted apart: at most 100 in 15 s." in text
    assert "at most 300 pages and 3000 of what they load in 15 s for the browsers of one network" in text
    assert "at most 60 requests in 15 s for the robots of one network; while 8 others run" in text
    assert "at most 2 of one network" in text
    assert "a robot served 3 times within 24 h, at least 10 s apart" in text
    assert "A network is a /24 of IPv4 and a /48 of IPv6; a wider one a /16 and a /32." in text


def test_a_policy_reads_as_sentences(tmp_path: Path) -> None:
    settings, _ = load(written(tmp_path, WHOLE), {})
    text = "\n".join(policy_in_sentences(settings))
    for sentence in (
        "Dry run: nobody is refused",
        "A person's browser is served at once, whatever the load, unless it made more than 10 requests in 15 s.",
        "while fewer than 30 other requests run, unless it was served at the same address within 30 s",
        "for 1 s for each running request, at most 10 s; at most 10 wait",
        "For /search and below, by GET or HEAD, counted apart:",
        "    A person's browser is served at once, whatever the load, unless it made more than 5 requests in 15 s.",
        "Banned, and answered 403: agents with BadBot.",
        "Refusals are answered 503, 429 for hit_stack.",
    ):
        assert sentence in text, sentence
    assert "any known crawler" not in text


def test_the_environment_counts_without_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THROTTLE_ENFORCE", "0")
    assert ThrottleMiddleware(Starlette()).is_enforced is False
    monkeypatch.setenv("THROTTLE_ENFORCE", "never")
    with pytest.raises(ConfigError, match="THROTTLE_ENFORCE"):
        ThrottleMiddleware(Starlette())


def test_a_keyword_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ConfigError, match="load_max"):
        ThrottleMiddleware(Starlette(), load_max=3)  # type: ignore[call-arg]


def test_a_network_in_the_pause_that_is_none_is_an_error_before_any_request_meets_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pause_exempt: 'nonsense' is no address"):
        load(written(tmp_path, '[limits]\npause_exempt = ["nonsense"]'), {})


def test_the_load_that_the_environment_sets_is_that_of_path_limits_too(tmp_path: Path) -> None:
    file = written(tmp_path, "[limits]\nload_max = 30\n[[path_limits]]\npath = '/s'\nstack_hits = 5")
    settings, _ = load(file, {"THROTTLE_LOAD_MAX": "40"})
    assert settings.limits.load_max == settings.path_limits[0].limits.load_max == 40


def test_a_pause_of_the_site_may_stand_beside_path_limits(tmp_path: Path) -> None:
    settings, _ = load(written(tmp_path, "[limits]\npaused = true\n[[path_limits]]\npath = '/s'"), {})
    assert settings.limits.paused
    text = "\n".join(policy_in_sentences(settings))
    assert text.count("The site is paused") == 1


def test_what_is_asked_beside_the_agent_reads_as_sentences(tmp_path: Path) -> None:
    text = "crawler_ranges = 'lists'\n[limits]\nneed_fetch_metadata = true\nverify_crawlers = true\n"
    (tmp_path / "throttle.toml").write_text(text)
    said = "\n".join(policy_in_sentences(load(tmp_path / "throttle.toml", {}).settings))
    assert "sends neither Sec-Fetch-Mode nor Accept-Language" in said
    assert "Crawlers are verified by the lists in lists, reverse DNS." in said
    (tmp_path / "throttle.toml").write_text("reverse_dns = false\n[limits]\nverify_crawlers = true\n")
    said = "\n".join(policy_in_sentences(load(tmp_path / "throttle.toml", {}).settings))
    assert "Crawlers are verified by nothing: name crawler_ranges, or allow reverse_dns." in said


def test_a_load_limit_may_be_left_to_each_process_in_the_file_and_in_the_environment(tmp_path: Path) -> None:
    file = written(tmp_path, "[limits]\nload_max = 'auto'\n[[path_limits]]\npath = '/s'\nload_max = 5")
    settings, _ = load(file, {})
    assert (settings.limits.load_max, settings.path_limits[0].limits.load_max) == ("auto", 5)
    assert settings.finds_load_max
    settings, _ = load(written(tmp_path, "[limits]\nload_max = 30"), {"THROTTLE_LOAD_MAX": "auto"})
    assert settings.limits.load_max == "auto"
