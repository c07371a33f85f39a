"""Planning: how many pulls to expect, before the first one and along the way."""

from typing import TYPE_CHECKING

from finalist.loading import when_used

if TYPE_CHECKING:
    from finalist.planning.engine import plan as plan
    from finalist.planning.forecasts import Forecast as Forecast
    from finalist.planning.forecasts import forecast as forecast
    from finalist.planning.margins import MarginPrice as MarginPrice
    from finalist.planning.margins import MarginPrices as MarginPrices
    from finalist.planning.margins import margin_prices as margin_prices
    from finalist.planning.models import ModelPrice as ModelPrice
    from finalist.planning.models import ModelPrices as ModelPrices
    from finalist.planning.models import model_prices as model_prices
    from finalist.planning.result import LeadRow as LeadRow
    from finalist.planning.result import Plan as Plan
    from finalist.planning.result import PlanRow as PlanRow

#: A study needs forecasts alone, and these only when somebody looks at one.
_HOMES = {
    "Forecast": "forecasts",
    "LeadRow": "result",
    "MarginPrice": "margins",
    "MarginPrices": "margins",
    "ModelPrice": "models",
    "ModelPrices": "models",
    "Plan": "result",
    "PlanRow": "result",
    "forecast": "forecasts",
    "margin_prices": "margins",
    "model_prices": "models",
    "plan": "engine",
}
__all__ = list(_HOMES)
__getattr__ = when_used(__name__, _HOMES)
