"""The benchmark script keeps working: every measurement runs with tiny counts. No time is asserted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

# The script's own folder, as when Python runs it.
sys.path.insert(0, str(Path(__file__).parent))

import gc

import run
from floor import engine_settings
from ratios import RATIOS, Budget
from rounds import Samples, Variant, measure, ratio_of

from hookcell_sandbox import EngineSettings

_TINY = run.Effort(rounds=2, share=0.003, windows=1, window_ms=30, contests=1)


@pytest.fixture(scope="module")
def report() -> run.Report:
    return run.measure_all(_TINY)


def test_every_ratio_is_measured_unless_a_tool_is_missing(report: run.Report) -> None:
    for ratio in RATIOS:
        if ratio.above in report.missing or ratio.below in report.missing:
            assert report.ratios[ratio.name] is None
        else:
            assert isinstance(report.ratios[ratio.name], float), ratio.name


def test_every_measured_variant_has_a_median(report: run.Report) -> None:
    compared = {name for ratio in RATIOS for name in (ratio.above, ratio.below) if name}
    assert compared == (compared & report.median_us.keys()) | report.missing.keys()
    assert all(each > 0 for each in report.median_us.values())


def test_the_json_is_one_object_of_named_ratios(report: run.Report) -> None:
    found = json.loads(json.dumps(run.as_object(report)))
    named = {
        *("isolated_vs_c", "isolated_vs_c_100k", "isolated_vs_c_1m", "isolated_vs_public"),
        *("isolated_vs_extism_fresh", "isolated_vs_extism_reused", "subprocess_vs_isolated", "awaited_vs_sync"),
        *("step_vs_isolated", "step_history_1m_vs_none", "threads_2_vs_1", "loop_late_ms_10"),
    }
    assert named <= found.keys()
    assert found["median_us"].keys() == report.median_us.keys()


def test_the_table_has_a_line_for_every_ratio_and_every_median(report: run.Report) -> None:
    lines = run.as_table(report).splitlines()
    for name in [*(ratio.name for ratio in RATIOS), *report.median_us]:
        assert any(line.startswith(name) for line in lines), name


def test_the_readme_explains_every_ratio() -> None:
    readme = (Path(__file__).parent / "README.md").read_text("utf-8")
    assert [ratio.name for ratio in RATIOS if f"`{ratio.name}`" not in readme] == []


def test_the_floor_gets_every_setting_that_the_sandbox_makes() -> None:
    chosen = EngineSettings(slots=7, keep_resident_bytes=65_536)
    found = {name: (width, value) for name, width, value in engine_settings(chosen)}
    assert found["wasmtime_config_consume_fuel_set"] == ("8bit", 1)
    assert found["wasmtime_config_signals_based_traps_set"] == ("8bit", 0)
    assert found["wasmtime_config_max_wasm_stack_set"] == ("64bit", chosen.wasm_stack_bytes)
    assert found["wasmtime_pooling_allocation_config_total_memories_set"] == ("32bit", 7)
    assert found["wasmtime_pooling_allocation_config_linear_memory_keep_resident_set"] == ("64bit", 65_536)


def test_a_round_runs_each_variant_once_and_in_order() -> None:
    ran: list[tuple[str, int]] = []

    def variant(name: str) -> Variant:
        return Variant(name=name, calls=10, batch=lambda count: ran.append((name, count)) or [5] * count)

    samples = measure([variant("a"), variant("b")], rounds=2, share=0.2)
    assert ran == [("a", 2), ("b", 2)] * 2
    assert samples["a"].rounds == [5, 5]
    assert samples["a"].calls == [5] * 4


def test_two_variants_of_one_name_are_refused() -> None:
    one = Variant(name="a", calls=1, batch=lambda count: [1] * count)
    with pytest.raises(ValueError, match="two variants have one name"):
        measure([one, one], rounds=1)


def test_a_slow_round_slows_both_sides_and_leaves_the_ratio() -> None:
    above, below = Samples(), Samples()
    for slowness in (1, 1, 7):
        above.add([20 * slowness])
        below.add([10 * slowness])
    assert ratio_of(above, below) == (2, 2, 2)


def test_the_collector_is_back_on_after_a_batch_that_fails() -> None:
    def fails(count: int) -> list[int]:
        raise KeyError(count)

    with pytest.raises(KeyError):
        measure([Variant(name="a", calls=1, batch=fails)], rounds=1)
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("budget", "keeps", "breaks"), [(Budget(4.5), 4.5, 4.51), (Budget(1000, at_least=True), 1000, 999)]
)
def test_a_budget_is_kept_at_its_bound_and_broken_beyond(budget: Budget, keeps: float, breaks: float) -> None:
    assert budget.met_by(keeps)
    assert not budget.met_by(breaks)
