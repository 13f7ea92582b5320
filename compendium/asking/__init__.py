"""Talking to models: requests, endpoint, ledger, budget, replies.

    from compendium.asking import Budget, Endpoint, Ledger, Request, run_stage requests = [Request("openai/gpt-5.4"
    [{"role": "user", "content": "…"}], temperature=1.0, seed=7, max_tokens=800)] result = run_stage(requests,
    Endpoint("https://openrouter.ai/api/v1"), Ledger("build/live/alienbench.sqlite")) [reply.text for reply in
    result.replies], result.report

Every reply is in the ledger before anything uses it; the same call made again asks only for what is missing.
"""

from compendium.asking.budget import Budget, check_estimate, estimate
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import BudgetError, EndpointError, InvalidReply, LedgerError, RequestError
from compendium.asking.items import items_from_reply
from compendium.asking.ledger import Ledger, spent_in
from compendium.asking.replies import Parsed, extract_json, labels_from_reply, score_from_reply
from compendium.asking.report import StageReport
from compendium.asking.request import Request
from compendium.asking.results import Reply, StageResult
from compendium.asking.stage import run_stage

__all__ = [
    "Budget",
    "BudgetError",
    "Endpoint",
    "EndpointError",
    "InvalidReply",
    "Ledger",
    "LedgerError",
    "Parsed",
    "Reply",
    "Request",
    "RequestError",
    "StageReport",
    "StageResult",
    "check_estimate",
    "estimate",
    "extract_json",
    "items_from_reply",
    "labels_from_reply",
    "run_stage",
    "spent_in",
    "score_from_reply",
]
