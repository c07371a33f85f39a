"""Planning: how many pulls to expect, before the first one and along the way."""

from finalist.planning.engine import plan
from finalist.planning.forecasts import Forecast, forecast
from finalist.planning.margins import MarginPrice, MarginPrices, margin_prices
from finalist.planning.models import ModelPrice, ModelPrices, model_prices
from finalist.planning.result import LeadRow, Plan, PlanRow

__all__ = [
    "Forecast",
    "LeadRow",
    "MarginPrice",
    "MarginPrices",
    "ModelPrice",
    "ModelPrices",
    "Plan",
    "PlanRow",
    "forecast",
    "margin_prices",
    "model_prices",
    "plan",
]
