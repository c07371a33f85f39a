"""Planning: how many pulls to expect, before the first one and along the way."""

from finalist.planning.engine import plan
from finalist.planning.forecasts import Forecast, forecast
from finalist.planning.prices import ModelPrice, ModelPrices, model_prices
from finalist.planning.result import Plan, PlanRow

__all__ = [
    "Forecast",
    "ModelPrice",
    "ModelPrices",
    "Plan",
    "PlanRow",
    "forecast",
    "model_prices",
    "plan",
]
