"""Budgets limit what a session, a person or everybody may use, and these names are about them."""

from gateway_sessions.core.usage.budgets import (
    Allowed,
    BudgetLimit,
    BudgetOf,
    BudgetPlan,
    Budgets,
    BudgetUnit,
    BudgetUse,
    Spent,
    Stop,
    UnknownPrices,
    Warn,
    plan_budget,
)

__all__ = [
    "Allowed",
    "BudgetLimit",
    "BudgetOf",
    "BudgetPlan",
    "BudgetUnit",
    "BudgetUse",
    "Budgets",
    "Spent",
    "Stop",
    "UnknownPrices",
    "Warn",
    "plan_budget",
]
