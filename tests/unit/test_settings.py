"""Settings on their way between processes of different releases."""

from __future__ import annotations

import pickle

import pytest

from gobpm_ray.errors import InvalidSetting
from gobpm_ray.settings import Settings, _restored


def test_settings_arrive_as_they_were_sent() -> None:
    """D16: every actor gets them pickled."""
    sent = Settings(engine_id="far", max_resident=7, retries="PT5M,PT10M", release_jobs=True)
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_settings_of_another_release_are_taken_by_name() -> None:
    """D16: a field that this release does not know is left out, one that the sender did not know has its default."""
    told = _restored({"engine_id": "old", "max_call_depth": 3, "no_longer_there": 1})
    assert told == Settings(engine_id="old", max_call_depth=3)


def test_settings_that_make_no_sense_are_refused_on_arrival_as_well() -> None:
    """D16."""
    with pytest.raises(InvalidSetting, match="max_resident"):
        _restored({"max_resident": -1})
