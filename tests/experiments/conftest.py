"""A home with an MLflow store; making its tables takes seconds, so the tests share one."""

from pathlib import Path

import pytest

from experiments.tracking import MlflowRun


@pytest.fixture(scope="session")
def mlflow_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    MlflowRun.start(uri=None, experiment="empty", home=home, name="first", params={})
    return home
