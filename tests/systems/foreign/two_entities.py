"""Run in the environment of Memori: what two entities of one store recall, and the weight of words, as JSON."""

import json
import sys
from pathlib import Path

from memori.search._lexical import dense_lexical_weights

from experiments.systems.memori import library
from experiments.systems.memori.own_config import OwnMemori


class Hooks:
    """Every text is near every other."""

    def embed_query(self, texts):
        return [[1.0, 0.0] for _ in texts]

    def recalling(self, request, inject):
        return inject()


def recalled(memori, entity, process="memtune"):
    memori.attribution(entity_id=entity, process_id=process)
    return [fact.content for fact in memori.recall("Who likes quinces?", limit=5)]


own = OwnMemori(MEMORI_RECALL_LEX_WEIGHT=0.35)
memori = library.open_memori(Path(sys.argv[1]), "two-entities", Hooks(), lambda: "", own)
driver = memori.config.storage.driver
for entity, fact in (("ann", "Ann likes quinces."), ("bob", "Bob likes quinces.")):
    driver.entity_fact.create(driver.entity.create(entity), [fact], [[1.0, 0.0]])
found = {"ann": recalled(memori, "ann"), "bob": recalled(memori, "bob")}
found["bob in another process"] = recalled(memori, "bob", "another")
found["carol"] = recalled(memori, "carol")
found["weight of words"] = dense_lexical_weights(query_text="Who likes quinces, and since when?")[1]
library.close(memori)
print(json.dumps(found))
