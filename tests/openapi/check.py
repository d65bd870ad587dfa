"""Judges an OpenAPI document, and answers by it: `check.py DOCUMENT ANSWERS`, both JSON files.

ANSWERS is a list of {path, method, status, media, body}, where `path` is as the document has it. Prints a line for each fault, and
nothing if there is none. Answers are read strictly: what they hold and the document does not tell is a fault.
"""
import copy
import json
import sys

from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator


def strict(schema):
    """Objects hold what is described and nothing else."""
    if isinstance(schema, list):
        for part in schema:
            strict(part)
    elif isinstance(schema, dict):
        for part in schema.values():
            strict(part)
        if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
            schema.setdefault("unevaluatedProperties", False)


def of_answer(document, answer):
    """Its faults, each with where it is."""
    operation = document["paths"][answer["path"]][answer["method"]]
    responses, status = operation["responses"], answer["status"]
    # What goes well is described for itself; what does not may be described in one.
    response = responses.get(str(status)) or (responses.get("default") if status >= 400 else None)
    if response is None:
        return [f"no status {status} is described"]
    media = answer["media"].split(";")[0]
    content = response.get("content", {})
    if media not in content:
        return [f"no answer of {media} is described for {status}"]
    schema = content[media].get("schema")
    if schema is None:
        return [] if media != "application/json" else [f"no schema for {status}"]
    whole = {**schema, "components": document["components"]}
    errors = OAS31Validator(whole).iter_errors(answer["body"])
    return [f"{status} {error.json_path}: {error.message}" for error in errors]


def main():
    document, answers = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
    faults = [f"the document: {error.message}" for error in OpenAPIV31SpecValidator(document).iter_errors()]
    if not faults:
        closed = copy.deepcopy(document)
        strict(closed["components"])
        for answer in answers:
            where = f"{answer['method'].upper()} {answer['path']}"
            faults += [f"{where}: {fault}" for fault in of_answer(closed, answer)]
    for fault in faults:
        print(fault)
    sys.exit(bool(faults))


main()
