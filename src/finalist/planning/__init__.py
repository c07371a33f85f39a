"""Planning: how many pulls to expect, before the first one and along the way."""

from finalist.planning.engine import plan
from finalist.planning.forecasts import Forecast, forecast
from finalist.planning.result import Plan, PlanRow

__all__ = ["Forecast", "Plan", "PlanRow", "forecast", "plan"]
