# SPDX-License-Identifier: GPL-2.0-only
"""When a reported time and a predicted gain count as right, on the simulated GPU and on a real one."""

TIME_ERROR = 0.05
TIME_ERROR_NS = 50_000  # a stall
GAIN_STEP_ERROR = 0.01  # of a step: what two runs differ by anyway


def time_is_right(planted_ns, stalls, reported_ns):
    return abs(reported_ns - planted_ns) <= max(TIME_ERROR * planted_ns, TIME_ERROR_NS * stalls)


def median_error(step):
    """Uncertainty of the middle of many steps, from their quartiles."""
    return 1.57 * (step["p75"] - step["p25"]) / max(step["count"], 1) ** 0.5


def gain(cause, steps, measured_ns, step, without):
    """Predicted against measured gain a step. `cause` is the report's over so many steps; `step` and `without` are the
    step times with the plant and without it."""
    low, high = (ns / steps for ns in cause["gain_ns"])
    spread = median_error(step) + median_error(without) + GAIN_STEP_ERROR * step["median"]
    return {
        "predicted_ns": [low, high],
        "measured_ns": measured_ns,
        "spread_ns": spread,
        "is_bound": cause["replay"] is None,
        "ok": low - spread <= measured_ns <= high + spread,
    }
