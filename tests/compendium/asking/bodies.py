"""Bodies of 200 responses as real servers send them, whole and spoilt: [(name, body's text)], over two hundred.

Shapes: OpenAI, Azure, OpenRouter, Anthropic's and Google's compatible addresses, Mistral, DeepSeek, Groq, xAI,
Together, vLLM, llama.cpp, Ollama, LiteLLM, transformers serve, gpt-oss behind a bare template; then each with one
thing wrong.
"""

import json

HUGE = "9" * 400  # digits


def _body(message, usage=None, finish="stop", **more):
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_767_000_000,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19}
        if usage is None
        else usage,
    }
    return {**body, **more}


PROVIDERS = {
    "openai": _body(
        {"content": "So it is.", "refusal": None, "annotations": []},
        {
            "prompt_tokens": 12,
            "completion_tokens": 7,
            "total_tokens": 19,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 4, "accepted_prediction_tokens": 0},
        },
        service_tier="default",
        system_fingerprint=None,
    ),
    "azure": _body(
        {"content": "So it is."},
        prompt_filter_results=[{"prompt_index": 0, "content_filter_results": {"hate": {"filtered": False}}}],
    ),
    "openrouter": _body(
        {
            "content": "So it is.",
            "reasoning": "Hm.",
            "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}],
        },
        {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19, "cost": 0.00011, "is_byok": False},
        provider="Fireworks",
    ),
    "anthropic": _body({"content": "So it is."}, {"prompt_tokens": 12, "completion_tokens": 7}, "end_turn"),
    "anthropic parts": _body(
        {"content": [{"type": "text", "text": "So "}, {"type": "text", "text": "it is."}]}
    ),
    "google": _body(
        {"content": "So it is."}, {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 719}
    ),
    "google safety": _body({"content": None}, finish="SAFETY"),
    "mistral": _body({"content": "So it is.", "tool_calls": None, "prefix": False}),
    "magistral": _body(
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                {"type": "text", "text": "So."},
            ]
        }
    ),
    "deepseek": _body({"content": "So it is.", "reasoning_content": "Hm."}),
    "groq": _body({"content": "So it is."}, x_groq={"id": "req_1"}),
    "xai": _body(
        {"content": "So it is.", "refusal": None},
        {"prompt_tokens": 12, "completion_tokens": 7, "num_sources_used": 0},
    ),
    "together": _body({"content": "So it is.", "tool_calls": []}, finish="eos", prompt=[]),
    "vllm": _body(
        {"content": "So it is.", "reasoning_content": None, "tool_calls": []}, prompt_logprobs=None
    ),
    "llama.cpp": _body({"content": "So it is."}, timings={"prompt_n": 12, "predicted_per_second": 31.4}),
    "ollama": _body({"content": "<think>\n\n</think>\n\nSo it is."}, system_fingerprint="fp_ollama"),
    "litellm": _body({"content": "So it is.", "tool_calls": None, "function_call": None}, citations=None),
    "transformers": _body({"content": "So it is.", "tool_calls": None}, {}, "length"),
    "gpt-oss": _body(
        {
            "content": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>So it is."
        }
    ),
    "responses' names": _body({"content": "So it is."}, {"input_tokens": 12, "output_tokens": 7}),
    "refused": _body({"content": None, "refusal": "I cannot."}),
    "filtered": _body({"content": ""}, finish="content_filter"),
    "cut": _body({"content": "So it"}, finish="length"),
    "all reasoning": _body({"content": "", "reasoning": "Hm, hm."}, finish="length"),
    "tool call": _body(
        {"content": None, "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]},
        finish="tool_calls",
    ),
}
ODD_COUNTS = (
    "1e300",
    str(2**63),
    HUGE,
    "-3",
    '"many"',
    "null",
    "true",
    "1.5",
    "[]",
    "{}",
    "1e999",
    "0",
    '"12"',
)
SPOILT = {
    "cost": (HUGE, "-" + HUGE, "-1", '"free"', "1e300", "[]", "null", "0"),
    "id": ('"\\ud83d"', "7", "null", "[]", '""'),
    "model": ('"\\udc00"', "null", "{}", '"m"'),
    "finish_reason": ('"\\ud83d"', "null", '{"type": "stop"}', "0", '"STOP"', '"error"'),
    "content": (
        '[{"text": 5}]',
        '[{"text": {}}]',
        "[null]",
        "[5]",
        "7",
        "{}",
        "[]",
        '[{"type": "text"}]',
        '"\\ud83d half"',
        '["a", "b"]',
        "[[]]",
        '"\\u0000"',
        "true",
        '[{"text": null}]',
        '"' + "[" * 5000 + '"',
    ),  # fmt: skip
    "choices": (
        "[]",
        "null",
        "{}",
        "[null]",
        '["text"]',
        "[[]]",
        "7",
        '[{"text": "old style"}]',
        '[{"message": []}]',
    ),
    "usage": (
        "null",
        "[]",
        "7",
        '"none"',
        '{"prompt_tokens": {}}',
        '{"completion_tokens_details": []}',
        '{"completion_tokens_details": {"reasoning_tokens": -1}}',
    ),
    "error": (
        '{"message": "upstream is down", "code": 502}',
        '"down"',
        "true",
        "[1]",
        '{"code": ' + HUGE + "}",
        '{"message": {"deep": []}}',
        '{"message": "\\ud83d"}',
        '{"message": "\\u001b]8;;http://x\\u0007y"}',
    ),  # fmt: skip
}
WHOLE = (
    "", " ", "null", "[]", "7", '"text"', "{", "{}", "[" * 100_000, '{"a":' * 20_000, "<html>502 Bad Gateway</html>",
    "data: {}\n\ndata: [DONE]\n", "\ufeff{}", '{"choices": ' + HUGE * 12 + "}", '{"detail": "Not Found"}',
    '{"error": {"message": "overloaded", "type": "server_error"}}', "NaN", '{"choices": NaN}', "\x00", "Infinity",
)  # fmt: skip


def _with(path, raw):
    """The usual body with the value at `path` written as `raw`, character for character."""
    body = _body({"content": "So it is."})
    place = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = "@@"
    return json.dumps(body).replace('"@@"', raw, 1)


def bodies() -> list:
    """[(name, text of the body)]."""
    made = [(name, json.dumps(body)) for name, body in PROVIDERS.items()]
    made += [
        (f"{name}, not ASCII", json.dumps(body, ensure_ascii=False, indent=1))
        for name, body in PROVIDERS.items()
    ]
    for name in ("prompt_tokens", "completion_tokens"):
        made += [(f"{name} {raw[:12]}", _with(("usage", name), raw)) for raw in ODD_COUNTS]
    places = {
        "cost": ("usage", "cost"),
        "finish_reason": ("choices", 0, "finish_reason"),
        "content": ("choices", 0, "message", "content"),
    }
    for field, values in SPOILT.items():
        made += [(f"{field} {raw[:24]}", _with(places.get(field, (field,)), raw)) for raw in values]
    made += [(f"whole {text[:16]!r}", text) for text in WHOLE]
    for (
        name,
        body,
    ) in PROVIDERS.items():  # what a dropped line, a missing field and a gateway's cut make of it
        text = json.dumps(body)
        made += [(f"{name}, cut", text[: len(text) * 2 // 3])]
        made += [
            (f"{name}, without {key}", json.dumps({k: v for k, v in body.items() if k != key}))
            for key in ("id", "model", "usage")
        ]
    return [(f"{place}: {name}", text) for place, (name, text) in enumerate(made)]
