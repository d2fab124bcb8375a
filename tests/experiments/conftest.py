"""A home with an MLflow store; making its tables takes seconds, so the tests share one."""

from datetime import datetime
from pathlib import Path

import pytest
from run_shapes import FILES

from experiments.folder import RunFolder
from experiments.tracking import MlflowRun


@pytest.fixture(scope="session")
def mlflow_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    folder = RunFolder.create(home, system="rag", now=datetime(2026, 1, 1), files=FILES)
    MlflowRun.start(uri=None, experiment="empty", home=home, folder=folder, system="rag", seed={}, params={})
    return home
