"""What spaCy reads in the DocBin and the CoNLL file that we wrote; our own writer needs spaCy, which is here."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

sys.path.pop(0)  # this file has the name of the package
package = importlib.import_module("spacy")
DocBin = importlib.import_module("spacy.tokens").DocBin
converter = importlib.import_module("spacy.training.converters").conll_ner_to_docs
formats = importlib.import_module("dugong.formats")

folder = Path(sys.argv[1])
found: dict[str, object] = {}
formats.write(formats.read(folder / "n1.ann").describe(tokens={"n1": json.loads(sys.argv[3])}), folder / "n1.spacy")
docs = list(DocBin().from_disk(folder / "n1.spacy").get_docs(package.blank("en").vocab))
found["spacy"] = [[span.text, span.label_] for doc in docs for span in doc.spans["dugong"]]
found["spacy-scores"] = [score for doc in docs for score in doc.spans["dugong"].attrs["scores"]]
found["spacy-entities"] = [[span.text, span.label_] for doc in docs for span in doc.ents]
found["spacy-back"] = [[one.start, one.end, one.label] for one in formats.read(folder / "n1.spacy")]
text = (folder / "n1.conll").read_text(encoding="utf-8")
found["conll"] = [[span.text, span.label_] for doc in converter(text, no_print=True) for span in doc.ents]
sample = formats.read(Path(sys.argv[2]) / "spacy_note1.spacy")
found["spacy-sample"] = [[one.start, one.end, one.label, one.probability] for one in sample]
print(json.dumps(found))
