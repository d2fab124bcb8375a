"""What a run ended with, for tests that disturb one and compare it with the run that nobody disturbed."""

from __future__ import annotations

from typing import Any

from experiments.folder import RunFolder


def outcome(folder: RunFolder) -> dict[str, Any]:
    """What a run ended with, without names and places."""
    found = folder.summary().model_dump(mode="json")
    attempts = (folder.path / "attempts.jsonl").read_text()
    return {
        **{key: value for key, value in found.items() if key not in ("run_id", "mlflow", "report", "prompts_dir")},
        "prompts": folder.prompts("champion"),
        "attempts": attempts,
    }
