"""Bases of what files hold, rows and settings: an unknown key is refused, and nothing changes afterwards."""

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A row or a part of one."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SettingsSection(StrictModel):
    """A section of a configuration; what stands under each key is its description in the documentation.

    `load_config` reports what is wrong with a setting: it knows what may be shown of it, which may be a key.
    """

    model_config = ConfigDict(hide_input_in_errors=True, use_attribute_docstrings=True)
