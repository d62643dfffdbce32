"""Timers as absolute milliseconds: dates, durations, cycles and their grids (scenarios T37-T46)."""

from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gobpm_ray.calendar.durations import Duration, YearsMonths, add_duration, from_ms, parse_duration, to_ms
from gobpm_ray.calendar.timers import (
    Occurrence,
    TimerArm,
    arm_timer,
    first_occurrence,
    next_occurrence,
    parse_cycle,
    parse_date,
    rearm,
)
from gobpm_ray.errors import InvalidTimer

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOW = to_ms(datetime(2026, 1, 1, tzinfo=UTC))


def ms(text: str) -> int:
    return to_ms(datetime.fromisoformat(text))


def iso(instant: int) -> str:
    return from_ms(instant).strftime("%Y-%m-%dT%H:%M:%SZ")


def fires(text: str, now: int, limit: int = 50, late: int = 0) -> list[int]:
    """The deadlines of a cycle whose every fire happens `late` ms after its deadline."""
    arm = arm_timer("cycle", text, now)
    deadlines: list[int] = []
    while arm is not None and len(deadlines) < limit:
        deadlines.append(arm.deadline_ms)
        assert arm.cycle_text is not None
        arm = rearm(arm.cycle_text, arm.anchor_ms, arm.index, arm.deadline_ms + late)
    return deadlines


# --- durations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P3M", Duration(months=3)),
        ("P1Y2M", Duration(months=14)),
        ("P1W", Duration(days=7)),
        ("PT0.5S", Duration(ms=500)),
        ("PT0,5S", Duration(ms=500)),
        ("P2DT12H", Duration(days=2, ms=12 * HOUR)),
        ("P1Y2M3W4DT5H6M7.008S", Duration(14, 25, 5 * HOUR + 6 * MINUTE + 7_008)),
        ("P0.5D", Duration(ms=12 * HOUR)),
        ("P1.5W", Duration(ms=10 * DAY + 12 * HOUR)),
        ("PT0S", Duration()),
        ("  PT36H ", Duration(ms=36 * HOUR)),
    ],
)
def test_durations_of_every_form_are_read(text, expected):
    """T46."""
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("-PT1H", "sign"),
        ("+PT1H", "sign"),
        ("P1DT", "must follow T"),
        ("PT", "must follow T"),
        ("P", "at least one"),
        ("", "expected"),
        ("PT-1H", "expected"),
        ("P1.5Y", "fraction of a year"),
        ("P0.5M", "fraction of a year"),
        ("P1.5DT1H", "last component"),
        ("PT1M1H", "in this order"),
        ("pt1h", "upper case"),
        ("1 hour", "expected"),
        ("PT1H PT1H", "expected"),
        ("P99999999999Y", "longer than"),
        ("PT" + "9" * 400 + "S", "expected"),
        ("P１D", "expected"),
    ],
)
def test_a_duration_that_would_need_guessing_is_refused_by_rule(text, rule):
    """T46."""
    with pytest.raises(InvalidTimer, match=rule) as error:
        parse_duration(text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    ("start", "duration", "end"),
    [
        ("2026-01-31T10:00:00+00:00", "P1M", "2026-02-28T10:00:00Z"),
        ("2028-01-31T10:00:00+00:00", "P1M", "2028-02-29T10:00:00Z"),
        ("2028-02-29T10:00:00+00:00", "P1Y", "2029-02-28T10:00:00Z"),
        ("2028-02-29T10:00:00+00:00", "P4Y", "2032-02-29T10:00:00Z"),
        ("2026-03-31T00:00:00+00:00", "P1M1D", "2026-05-01T00:00:00Z"),
        ("2026-12-31T23:59:59+00:00", "PT1S", "2027-01-01T00:00:00Z"),
    ],
)
def test_a_month_too_short_ends_on_its_last_day(start, duration, end):
    """T46."""
    assert iso(add_duration(ms(start), parse_duration(duration))) == end


def test_a_day_in_a_zone_keeps_its_local_time_and_24_hours_do_not():
    before = ms("2026-03-28T12:00:00+01:00")
    assert add_duration(before, parse_duration("P1D"), "Europe/Berlin") - before == 23 * HOUR
    assert add_duration(before, parse_duration("PT24H"), "Europe/Berlin") - before == 24 * HOUR


def test_a_local_time_that_is_skipped_moves_forward_and_a_doubled_one_is_its_first():
    gap = add_duration(ms("2026-03-28T02:30:00+01:00"), parse_duration("P1D"), "Europe/Berlin")
    assert iso(gap) == "2026-03-29T01:30:00Z"  # 03:30 summer time
    fold = add_duration(ms("2026-10-24T02:30:00+02:00"), parse_duration("P1D"), "Europe/Berlin")
    assert iso(fold) == "2026-10-25T00:30:00Z"  # the first 02:30


def test_a_deadline_beyond_the_calendar_is_refused():
    with pytest.raises(InvalidTimer, match="9999"):
        arm_timer("duration", "P9000Y", NOW)


@given(
    st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)),
    st.builds(Duration, st.integers(0, 400), st.integers(0, 800), st.integers(0, 10 * DAY)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"]),
)
def test_a_duration_never_leads_back(start, duration, where):
    begin = to_ms(start.replace(tzinfo=UTC))
    # A doubled hour is resolved to its first pass, so only less than that may be lost.
    assert add_duration(begin, duration, where) >= begin + duration.ms - HOUR


# --- dates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01T09:30:00Z", "2026-03-01T09:30:00Z"),
        ("2026-03-01T09:30:00", "2026-03-01T09:30:00Z"),
        ("2026-03-01T09:30", "2026-03-01T09:30:00Z"),
        ("2026-03-01", "2026-03-01T00:00:00Z"),
        ("2026-03-01T09:30:00+02:00", "2026-03-01T07:30:00Z"),
        ("2026-03-01T09:30:00-0330", "2026-03-01T13:00:00Z"),
        ("2026-03-01T09:30:00[Europe/Berlin]", "2026-03-01T08:30:00Z"),
        ("2026-03-01T09:30:00@Europe/Berlin", "2026-03-01T08:30:00Z"),
        ("2026-03-01T09:30:00+01:00[Europe/Berlin]", "2026-03-01T08:30:00Z"),
        ("2026-07-01T09:30:00+02:00@Europe/Berlin", "2026-07-01T07:30:00Z"),
        ("2026-03-29T02:30:00[Europe/Berlin]", "2026-03-29T01:30:00Z"),
        ("2026-10-25T02:30:00[Europe/Berlin]", "2026-10-25T00:30:00Z"),
        ("2026-10-25T02:30:00+01:00[Europe/Berlin]", "2026-10-25T01:30:00Z"),
    ],
)
def test_every_zone_form_names_one_instant(text, expected):
    """T45."""
    assert iso(parse_date(text)) == expected


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("2026-03-01T09:30:00+02:00[Europe/Berlin]", "contradicts the zone"),
        ("2026-03-29T02:30:00+01:00[Europe/Berlin]", "contradicts the zone"),
        ("2026-03-01T09:30:00Z[Europe/Berlin]", "contradicts the zone"),
        ("2026-03-01T09:30:00[Europe/Nowhere]", "IANA"),
        ("2026-03-01T09:30:00[../../etc/passwd]", "ISO 8601"),
        ("2026-02-30", "day"),
        ("2026-03-01T24:00:00Z", "hour"),
        ("2026-03-01T23:59:60Z", "second"),
        ("2026-03-01T09:30:00+19:00", "offset"),
        ("26-03-01", "ISO 8601"),
        ("tomorrow", "ISO 8601"),
        ("PT5M", "ISO 8601"),
        ("", "ISO 8601"),
        ("0000-01-01", "year"),
    ],
)
def test_a_date_that_is_none_is_refused_by_rule(text, rule):
    """T45."""
    with pytest.raises(InvalidTimer, match=rule) as error:
        parse_date(text)
    assert "\n" not in str(error.value)


def test_date_values_are_as_good_as_text():
    assert parse_date(datetime(2026, 3, 1, 9, tzinfo=timezone(timedelta(hours=2)))) == ms("2026-03-01T07:00:00+00:00")
    assert parse_date(datetime(2026, 3, 1)) == ms("2026-03-01T00:00:00+00:00")
    assert parse_date(date(2026, 3, 1)) == ms("2026-03-01T00:00:00+00:00")


# --- cycles ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "count"), [("R3/PT10M", 3), ("R1/PT10M", 1), ("R0/PT10M", 0), ("R6/PT10M", 6)])
def test_a_cycle_of_n_fires_exactly_n_times(text, count):
    """T37."""
    assert fires(text, NOW) == [NOW + (k + 1) * 10 * MINUTE for k in range(count)]


@pytest.mark.parametrize("text", ["R/PT10M", "R-1/PT10M"])
def test_a_cycle_without_a_count_does_not_end(text):
    """T37."""
    assert fires(text, NOW, limit=500) == [NOW + (k + 1) * 10 * MINUTE for k in range(500)]


def test_daily_reminders_fire_on_six_days():
    assert fires("R6/P1D", NOW) == [NOW + k * DAY for k in range(1, 7)]


def test_an_anchor_in_the_past_only_fixes_the_grid():
    """T40."""
    arm = arm_timer("cycle", "R/2023-07-01T00:00:00+02:00/PT15M", ms("2026-05-05T08:10:00+02:00"))
    assert arm is not None
    assert arm.deadline_ms == ms("2026-05-05T08:15:00+02:00")


def test_a_point_that_is_now_is_not_strictly_after_now():
    """T40."""
    arm = arm_timer("cycle", "R/2023-07-01T00:00:00+02:00/PT15M", ms("2026-05-05T08:15:00+02:00"))
    assert arm is not None
    assert arm.deadline_ms == ms("2026-05-05T08:30:00+02:00")


def test_after_a_day_down_one_catch_up_fire_and_then_the_grid():
    """T39."""
    arm = arm_timer("cycle", "R/PT5M", NOW)
    assert arm is not None
    woken = NOW + DAY + 2 * MINUTE
    after = rearm("R/PT5M", arm.anchor_ms, arm.index, woken)
    assert after == TimerArm(NOW + DAY + 5 * MINUTE, "R/PT5M", NOW, 289)


def test_points_slept_through_are_consumed():
    """T39: the stated rule for a counted cycle."""
    assert fires("R6/P1D", NOW, late=2 * DAY) == [NOW + DAY, NOW + 4 * DAY]


def test_a_late_fire_does_not_shift_the_grid():
    assert fires("R4/PT1H", NOW, late=59 * MINUTE) == [NOW + k * HOUR for k in range(1, 5)]


def test_a_start_in_the_future_is_the_first_fire():
    start = "2026-02-01T00:00:00Z"
    assert [iso(d) for d in fires(f"R3/{start}/P1D", NOW)] == [
        "2026-02-01T00:00:00Z",
        "2026-02-02T00:00:00Z",
        "2026-02-03T00:00:00Z",
    ]


def test_a_counted_cycle_that_lies_in_the_past_never_fires():
    assert arm_timer("cycle", "R3/2023-01-01T00:00:00Z/P1D", NOW) is None


def test_an_end_is_included_and_nothing_follows_it():
    assert [iso(d) for d in fires("R/P1D/2026-01-03T00:00:00Z", NOW)] == [
        "2026-01-02T00:00:00Z",
        "2026-01-03T00:00:00Z",
    ]
    assert arm_timer("cycle", "R/P1D/2025-01-01T00:00:00Z", NOW) is None


def test_a_start_and_an_end_give_the_period():
    assert [iso(d) for d in fires("R2/2026-02-01T00:00:00Z/2026-02-01T06:00:00Z", NOW)] == [
        "2026-02-01T00:00:00Z",
        "2026-02-01T06:00:00Z",
    ]


def test_a_monthly_cycle_returns_to_the_31st():
    """T46: computed from the anchor, so that February does not pull March back to the 28th."""
    assert [iso(d)[:10] for d in fires("R4/P1M", ms("2026-01-31T00:00:00+00:00"))] == [
        "2026-02-28",
        "2026-03-31",
        "2026-04-30",
        "2026-05-31",
    ]


def test_a_daily_cycle_in_a_zone_keeps_its_local_hour():
    deadlines = fires("R3/2026-03-28T09:00:00[Europe/Berlin]/P1D", NOW)
    assert [iso(d) for d in deadlines] == ["2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"]


@pytest.mark.parametrize("where", ["@America/Phoenix", "[America/Port-au-Prince]", "@America/Argentina/Buenos_Aires"])
def test_a_zone_with_slashes_does_not_split_a_cycle(where):
    cycle = parse_cycle(f"R3/2026-03-28T09:00:00{where}/PT1H")
    assert cycle.zone == where.strip("@[]")
    assert cycle.repeats == 3


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("R3", "expected R<n>"),
        ("R/", "expected R<n>"),
        ("R3/", "expected R<n>"),
        ("Rx/PT1H", "repetitions"),
        ("R-2/PT1H", "repetitions"),
        ("R3/PT", "follow T"),
        ("R3/-PT1H", "sign"),
        ("R3/PT0S", "at least a millisecond"),
        ("R3/PT0.0001S", "at least a millisecond"),
        ("R3/PT1H/PT1H", "exactly one duration"),
        ("R3/soon/PT1H", "ISO 8601"),
        ("R3/2026-01-02/2026-01-01", "at least a millisecond"),
        ("R3/2026-01-02/PT1H/2026-01-03", "expected R<n>"),
        ("PT1H", "neither a repetition"),
        ("0 0 30 2 *", "cron"),
        ("61 * * * *", "cron"),
        ("* * * *", "5 or 6 fields"),
        ("CRON_TZ=Mars/Base 0 9 * * *", "IANA"),
        ("", "expected a repetition"),
    ],
)
def test_a_cycle_that_is_none_is_refused_by_rule(text, rule):
    with pytest.raises(InvalidTimer, match=rule) as error:
        parse_cycle(text)
    assert "\n" not in str(error.value)


def test_cron_fires_on_working_days_only():
    friday = ms("2026-01-02T09:00:00+00:00")
    assert [iso(d) for d in fires("0 9 * * MON-FRI", friday, limit=2)] == [
        "2026-01-05T09:00:00Z",
        "2026-01-06T09:00:00Z",
    ]


def test_cron_with_six_fields_has_seconds_in_front_and_takes_a_question_mark():
    assert [iso(d) for d in fires("*/20 0 0 * * ?", NOW - 1, limit=3)] == [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:20Z",
        "2026-01-01T00:00:40Z",
    ]


def test_cron_catches_up_once():
    """T39."""
    arm = arm_timer("cycle", "*/5 * * * *", NOW)
    assert arm is not None
    after = rearm("*/5 * * * *", arm.anchor_ms, arm.index, NOW + DAY + 2 * MINUTE)
    assert after is not None
    assert after.deadline_ms == NOW + DAY + 5 * MINUTE


def test_cron_keeps_local_time_in_its_zone():
    deadlines = fires("CRON_TZ=Europe/Berlin 0 9 * * *", ms("2026-03-27T12:00:00+00:00"), limit=3)
    assert [iso(d) for d in deadlines] == ["2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"]


@pytest.mark.parametrize("expression", ["15 2 * * *", "0 15 2 * * *", "*/10 * * * *"])
def test_cron_always_goes_forward_through_the_end_of_summer_time(expression):
    """A deadline that is not after now would fire for ever."""
    now = ms("2026-10-25T00:00:00+00:00")
    for _ in range(18):
        arm = arm_timer("cycle", f"CRON_TZ=Europe/Berlin {expression}", now)
        assert arm is not None
        assert arm.deadline_ms > now
        now += 10 * MINUTE


# --- arming ----------------------------------------------------------------------------------------------------


def test_dates_and_durations_fire_once():
    """T41: nothing to go on with."""
    assert arm_timer("duration", "P7D", NOW) == TimerArm(NOW + 7 * DAY, None, NOW, 0)
    assert arm_timer("date", "2025-01-01T00:00:00Z", NOW) == TimerArm(ms("2025-01-01T00:00:00+00:00"), None, NOW, 0)


def test_duration_values_are_as_good_as_text():
    assert arm_timer("duration", timedelta(days=2), NOW) == arm_timer("duration", "P2D", NOW)
    assert arm_timer("duration", YearsMonths(14), NOW) == arm_timer("duration", "P1Y2M", NOW)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("date", 5),
        ("date", None),
        ("date", True),
        ("duration", 5),
        ("duration", 1.5),
        ("duration", None),
        ("duration", timedelta(seconds=-1)),
        ("duration", YearsMonths(-1)),
        ("duration", datetime(2026, 1, 1)),
        ("duration", ["PT1H"]),
        ("cycle", 3),
        ("cycle", timedelta(hours=1)),
    ],
)
def test_a_value_without_a_stated_meaning_is_refused(kind, value):
    with pytest.raises(InvalidTimer):
        arm_timer(kind, value, NOW)


# --- the grid, for any cycle -----------------------------------------------------------------------------------

periods = st.sampled_from(["PT0.001S", "PT7S", "PT5M", "PT36H", "P1D", "P1W", "P1M", "P1M3D", "P1Y", "P1DT1H"])
starts = st.sampled_from(["", "2023-07-01T00:00:00+02:00/", "2024-01-31T02:30:00[Europe/Berlin]/", "2024-02-29/"])


@given(periods, starts, st.one_of(st.none(), st.integers(0, 40)), st.integers(NOW - 800 * DAY, NOW + 4_000 * DAY))
def test_the_first_fire_is_the_first_point_after_now(period, start, count, now):
    cycle = parse_cycle(f"R{'' if count is None else count}/{start}{period}")
    found = first_occurrence(cycle, now)
    anchor = cycle.anchor(now)
    if found is None:
        assert count is not None
        last = cycle._last_index
        assert count == 0 or add_duration(anchor, parse_duration(period).times(last), cycle.zone) <= now
        return
    assert found.deadline_ms > now
    assert found.deadline_ms == add_duration(anchor, parse_duration(period).times(found.index), cycle.zone)
    if found.index > cycle._first_index:
        before = add_duration(anchor, parse_duration(period).times(found.index - 1), cycle.zone)
        assert before <= now


@given(periods, starts, st.integers(1, 30), st.lists(st.integers(0, 40 * DAY), max_size=40))
def test_fires_are_rising_grid_points_and_never_more_than_n(period, start, count, lateness):
    cycle = parse_cycle(f"R{count}/{start}{period}")
    anchor = cycle.anchor(NOW - 700 * DAY)
    found = first_occurrence(cycle, NOW - 700 * DAY)
    seen: list[Occurrence] = []
    delays = iter(lateness)
    while found is not None:
        seen.append(found)
        found = next_occurrence(cycle, anchor, found.index, found.deadline_ms + next(delays, 0))
    assert len(seen) <= count
    for earlier, later in pairwise(seen):
        assert later.deadline_ms > earlier.deadline_ms
        assert later.index > earlier.index
    assume(seen)
    if not any(lateness[: len(seen)]) and not start:
        assert len(seen) == count


@given(periods, st.integers(0, 3_000), st.integers(0, 400 * DAY))
def test_rearming_after_any_outage_gives_the_next_point_only(period, index, outage):
    """T39, T40: one catch-up, then the grid; nothing between now and the answer."""
    cycle = parse_cycle(f"R/{period}")
    length = parse_duration(period)
    now = add_duration(NOW, length.times(index + 1)) + outage
    found = next_occurrence(cycle, NOW, index + 1, now)
    assert found is not None
    assert add_duration(NOW, length.times(found.index - 1)) <= now < found.deadline_ms
