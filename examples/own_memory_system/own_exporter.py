"""An exporter: the prompts as a JSON object, for a program that fills them with `str.format`."""

import json


class JsonPrompts:
    def write(self, candidate, folder):
        (folder / "prompts.json").write_text(json.dumps(dict(candidate), indent=2), encoding="utf-8")
        return dict.fromkeys(candidate, "prompts.json")

    def render(self, name, values, folder):
        return json.loads((folder / "prompts.json").read_text(encoding="utf-8"))[name].format(**values)
