"""Simulated models called in the test's own process: what `ask` gives, without server and ledger."""

from compendium.asking.results import Reply, StageResult
from compendium.asking.results import judge as judge_reply


def in_process(respond, requests, *, parse=None, retries_on_invalid: int = 2) -> StageResult:
    """What a simulator's `respond` gives through `ask`, without server and ledger (and without a report)."""
    replies = []
    for request in requests:
        for attempt in range(retries_on_invalid + 1):
            said = respond(request.body(attempt))
            row = {
                "text": said.text,
                "finish_reason": said.finish_reason,
                "refusal": None,
                "reasoning": None,
                "reasoning_tokens": said.reasoning_tokens,
            }
            parsed, repairs, reason, _ = judge_reply(row, parse)
            if reason is None:
                break
        replies.append(
            Reply(
                request.key,
                request,
                said.text if reason is None else "",
                parsed,
                repairs,
                reason,
                request.model,
                completion_tokens=said.completion_tokens,
                attempts=attempt + 1,
                sample=request.sample,
                raw=said.text,
            )
        )
    return StageResult(replies, None)
