"""A small live run against a real server in an environment of its own: LiteLLM's proxy with canned replies, down at first.

COMPENDIUM_LITELLM names the `litellm` command of an environment that has it (pip install "litellm[proxy]").
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter

import pytest
import yaml

from compendium.asking.ledger import Ledger
from compendium.frame.params import study_params
from compendium.frame.paths import ROOT

LITELLM = os.environ.get("COMPENDIUM_LITELLM") or shutil.which("litellm")
KEY = "sk-master-of-a-test"
WAIT = 240  # seconds for the proxy to come up


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@pytest.fixture
def litellm(tmp_path):
    """start() -> LiteLLM's proxy with a canned reply for every model of the small AlienBench run; its url."""
    p = study_params("alienbench", "live", smoke=True)
    labels = json.dumps({name: number % 2 == 0 for number, name in enumerate(p["features"])})
    texts = {name: f"A creature of {number + 3} limbs." for number, name in enumerate(p["subjects"])}
    replies = {**texts, **dict.fromkeys(p["judges"], labels)}
    entries = [
        {
            "model_name": name,
            "litellm_params": {"model": "openai/any", "api_key": "none", "mock_response": text},
        }
        for name, text in replies.items()
    ]
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"model_list": entries, "general_settings": {"master_key": KEY}}))
    port, running = free_port(), []
    url = f"http://127.0.0.1:{port}/v1"

    def start():
        command = [LITELLM, "--config", config, "--host", "127.0.0.1", "--port", str(port)]
        environment = {
            **{
                name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
            },
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        with open(tmp_path / "proxy.log", "w") as log:
            running.append(subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log))
        asked = urllib.request.Request(f"{url}/models", headers={"authorization": f"Bearer {KEY}"})
        end = time.monotonic() + WAIT
        while True:
            try:
                with urllib.request.urlopen(asked, timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                assert running[0].poll() is None and time.monotonic() < end, (
                    tmp_path / "proxy.log"
                ).read_text()[-2000:]
                time.sleep(0.5)

    yield url, start
    for process in running:
        process.terminate()
        process.wait(60)


@pytest.mark.skipif(
    LITELLM is None, reason="no LiteLLM: COMPENDIUM_LITELLM names its command in an environment of its own"
)
def test_a_small_run_through_litellm_that_was_down_at_first(litellm, tmp_path):
    url, start = litellm
    out = tmp_path / "run"

    def run():
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "compendium",
                "--profile",
                "live",
                "--study",
                "alienbench",
                "--smoke",
                "1",
                "--build",
                out,
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "OPENROUTER_API_KEY": KEY,
                "COMPENDIUM_BASE_URL": url,
            },
            capture_output=True,
            text=True,
        )

    down = run()
    assert down.returncode == 1 and "no connection" in down.stderr
    start()
    up = run()
    assert up.returncode == 0, up.stderr[-3000:]
    assert "alienbench: cells " in up.stdout and "Folded" not in up.stdout
    with Ledger(out / "ledgers/alienbench.sqlite", readonly=True) as ledger:
        rows = list(ledger.rows())
    stages = Counter(row["stage"] for row in rows)
    # a model's descriptions are alike here, and equal questions are asked once
    assert stages == {"generating": 14, "judging": 2 * 2}
