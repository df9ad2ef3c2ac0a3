"""Mixes: what they may say, what is said of those that may not, and those that come along."""

import csv
import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from throttle.load.mix import MixError, built_in, mix_from, read_mix
from throttle.load.places import Links

PEOPLE = '[who.people]\nkind = "people"\ncount = 2\n'


def read(text: str):
    return mix_from(tomllib.loads(text))


@pytest.mark.parametrize("name", built_in())
def test_each_mix_that_comes_along_can_be_read_and_has_people(name):
    assert any(group.kind == "people" for group in read_mix(name).groups)


def test_the_mix_of_opencitations_has_the_means_of_its_figures():
    text = (files("throttle.load") / "mixes" / "opencitations_daily_traffic.csv").read_text()
    days = [day for day in csv.DictReader(text.splitlines()) if day["date"] < "2026-05-01"]
    assert len(days) == 120

    def mean(name):
        return sum(int(day[name]) for day in days) / len(days) / 86_400

    people, bots, llm = read_mix("opencitations").groups
    assert people.count / people.think_seconds == pytest.approx(mean("human"), rel=0.01)
    assert bots.rate == pytest.approx(mean("generic_bot"), rel=0.01)
    assert llm.rate == pytest.approx(mean("llm_bot"), rel=0.01)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("seconds = 5", "[who.people]"),
        (PEOPLE + "[extra]", "extra"),
        ("seconds = true\n" + PEOPLE, "seconds"),
        ('seconds = "5"\n' + PEOPLE, "seconds"),
        (PEOPLE + "rate = 3", "who.people.rate"),
        (PEOPLE + "think_seconds = 1", "who.people.think_seconds"),
        (PEOPLE + "think_seconds = nan", "who.people.think_seconds"),
        ('[who.people]\nkind = "people"', "who.people.count"),
        ('[who."a b"]\nkind = "martians"', 'who."a b".kind'),
        ('[who."a.b"]\nkind = "robots"\nrate = 1', 'who."a.b"'),
        ('[who.bots]\nkind = "robots"\nrate = 0', "who.bots.rate"),
        ('[who.bots]\nkind = "robots"\nrate = 1\nagents = "robot"', "who.bots.agents"),
        ('[who.bots]\nkind = "robots"\nrate = 1\nagents = ["a/1\\r\\nX: y"]', "who.bots.agents"),
        ('[who.bots]\nkind = "robots"\nrate = 1\npaths = []', "who.bots.paths"),
        ('[who.bots]\nkind = "robots"\nrate = 1\naddresses = 600\nnetworks = 2', "who.bots.networks"),
        (PEOPLE + '[site]\npages = "/"', "site.pages"),
        (PEOPLE + '[site]\npages = ["/a b"]', "site.pages"),
        (PEOPLE + '[site]\npages = [{like = "/x/*"}]', "site.pages"),
        (PEOPLE + '[site]\nimages = ["/"]', "site.images"),
        ("\n".join(f'[who.p{n}]\nkind = "people"\ncount = 1' for n in range(16)), "16 classes"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_key(text, key):
    with pytest.raises(MixError) as wrong:
        read(text)
    assert key in str(wrong.value)
    assert len(str(wrong.value).splitlines()) == 1


def test_a_file_that_is_not_there_or_no_toml_is_one_line(tmp_path):
    with pytest.raises(MixError, match="neither a file nor a mix that is built in"):
        read_mix(str(tmp_path / "none.toml"))
    (tmp_path / "broken.toml").write_text("[who")
    with pytest.raises(MixError, match="no TOML"):
        read_mix(str(tmp_path / "broken.toml"))


def test_the_mix_of_the_readme_is_one():
    text = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    (told,) = (block for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "[who.people]" in block)
    assert {group.kind for group in read(told).groups} == {"people", "robots", "greedy", "polite"}


def test_a_site_is_told_by_paths_and_by_links():
    site = read(PEOPLE + '[site]\npages = ["/", {on = "/map.xml"}]\ndear = [{on = "/u", like = "/u/*"}]').site
    assert site == {"pages": ("/", Links("/map.xml")), "dear": (Links("/u", "/u/*"),)}


def test_scaling_multiplies_the_machines_and_leaves_the_people():
    mix = read(
        PEOPLE + '[who.a]\nkind = "robots"\nrate = 2\n[who.b]\nkind = "greedy"\nconnections = 3\n'
        '[who.c]\nkind = "polite"\ncount = 1'
    ).scaled(2.5)
    assert [group.count for group in mix.groups if group.kind in ("people", "polite")] == [2, 1]
    assert [(group.rate, group.connections) for group in mix.groups[1:3]] == [(5.0, 2), (2.5, 8)]


def test_another_length_begins_what_begins_later_at_the_same_part_of_it():
    mix = read('seconds = 30\n[who.a]\nkind = "robots"\nrate = 2\nbegins_at = 6').lasting(10)
    assert (mix.seconds, mix.groups[0].begins_at) == (10, 2)
