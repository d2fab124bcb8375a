"""Whether a run could use an MLflow store, without making or writing anything there."""

from __future__ import annotations

from pathlib import Path

from experiments.mlflow_tracking.sqlite_store import file_of, is_ready
from experiments.mlflow_tracking.store import TrackingStore, in_words, is_refusal
from experiments.mlflow_tracking.tracking import store_uri
from tracing.errors import ConfigError
from tracing.recording.credentials import without_credentials


def check_store(uri: str | None, experiment: str, home: Path) -> None:
    """Refuse a store that a run would refuse; an unreachable server and a file yet to be made are accepted.

    Args:
        uri: of the store; None for the one of `home`.
        experiment: name of the run's experiment.

    Raises:
        ConfigError: the store cannot be used, or the experiment is deleted there.
    """
    used = uri or store_uri(home)
    file = file_of(used)
    if file is not None and not is_ready(file):
        return
    store = TrackingStore(used, experiment, "")
    try:
        with store.bounded():
            existing = store.client.get_experiment_by_name(experiment)
    except ConfigError:
        raise
    except Exception as error:  # whatever a store raises
        if (store.remote or isinstance(error, TimeoutError)) and not is_refusal(error):
            return
        shown_uri = without_credentials(used)
        raise ConfigError(
            f"tracking.uri: {shown_uri}: {in_words(error, used)}; give the URI of a working MLflow store"
        ) from None
    if existing is not None and existing.lifecycle_stage != "active":
        raise ConfigError(
            f"tracking.experiment: {experiment!r} is deleted in MLflow; restore it there or give another name"
        )
