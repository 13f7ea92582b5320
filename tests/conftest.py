"""What the tests share."""

import os
from pathlib import Path

import pytest

from compendium.frame.archive import MIRROR_VARIABLE
from compendium.frame.paths import ROOT, SPARE_HOME
from compendium.frame.system import use_writable_home

use_writable_home(SPARE_HOME)  # before a notebook's kernel looks for it


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The folder with the authors' archives; tests that need it skip where there is none."""
    name = os.environ.get(MIRROR_VARIABLE) or "../shared/upstream"
    for folder in (Path(name), ROOT / name):
        if (folder / "alienbench").is_dir():
            return folder.resolve()
    pytest.skip(f"no archive mirror: set {MIRROR_VARIABLE} to the folder that holds alienbench/, stories/, …")


@pytest.fixture(autouse=True)
def account_of_ones_own(tmp_path_factory, monkeypatch, request):
    """No test draws on the project's accounts, nor on another test's."""
    folder = tmp_path_factory.getbasetemp() / "accounts" / f"{abs(hash(request.node.nodeid)):x}"
    monkeypatch.setenv("COMPENDIUM_ACCOUNTS", str(folder))
