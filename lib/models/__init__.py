"""Talking to models: requests, endpoint, ledger, budget, replies.

    from lib.models import Budget, Endpoint, Ledger, Request, run_stage requests = [Request("openai/gpt-5.4"
    [{"role": "user", "content": "…"}], temperature=1.0, seed=7, max_tokens=800)] result = run_stage(requests,
    Endpoint("https://openrouter.ai/api/v1"), Ledger("build/live/alienbench.sqlite")) [reply.text for reply in
    result.replies], result.report

Every reply is in the ledger before anything uses it; the same call made again asks only for what is missing.
"""

from lib.models.budget import Budget, check_estimate, estimate
from lib.models.endpoint import Endpoint
from lib.models.errors import BudgetError, EndpointError, InvalidReply, LedgerError, RequestError
from lib.models.items import items_from_reply
from lib.models.ledger import Ledger, spent_in
from lib.models.replies import Parsed, extract_json, labels_from_reply, score_from_reply
from lib.models.report import StageReport
from lib.models.request import Request
from lib.models.results import Reply, StageResult
from lib.models.stage import run_stage

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
