"""Run in the environment of Memori: what each of two entities of one store recalls, as JSON."""

import json
import sys
from pathlib import Path

from experiments.systems.memori import library


class Hooks:
    """Every text is near every other."""

    def embed_query(self, texts):
        return [[1.0, 0.0] for _ in texts]

    def recalling(self, request, inject):
        return inject()


def recalled(memori, entity, process="memtune"):
    memori.attribution(entity_id=entity, process_id=process)
    return [fact.content for fact in memori.recall("Who likes quinces?", limit=5)]


memori = library.open_memori(Path(sys.argv[1]), "two-entities", Hooks(), lambda: "")
driver = memori.config.storage.driver
for entity, fact in (("ann", "Ann likes quinces."), ("bob", "Bob likes quinces.")):
    driver.entity_fact.create(driver.entity.create(entity), [fact], [[1.0, 0.0]])
found = {"ann": recalled(memori, "ann"), "bob": recalled(memori, "bob")}
found["bob in another process"] = recalled(memori, "bob", "another")
found["carol"] = recalled(memori, "carol")
library.close(memori)
print(json.dumps(found))
