"""The service's description, as OpenAPI has it."""

from __future__ import annotations

from typing import Any

import nkic
from nkic.judge.schemas import evaluation_schema
from nkic.serve.limits import Limits

Json = dict[str, Any]


def document(limits: Limits) -> Json:
    """Return the document of `/openapi.json`."""
    one = _body({"$ref": "#/components/schemas/Job"})
    many = _body(_object({"evaluations": _list({"$ref": "#/components/schemas/Job"})}))
    error = _body(_object({"error": {"type": "string"}}))
    refusals = {
        "400": "The body is not JSON.",
        "401": "A token is needed.",
        "404": "There is no such task or evaluation.",
        "408": "The body came too slowly.",
        "413": "The body or the batch is too large.",
        "415": "The body is of another content type.",
        "422": "The body is JSON, but not what it must be.",
        "429": "Too much is not done yet: Retry-After says when to come again.",
        "503": "The service is about to end.",
    }

    def answers(*codes: str, **good: Json) -> Json:
        bad = {code: {"description": refusals[code], "content": error} for code in codes}
        return {"responses": {code.strip("_"): told for code, told in good.items()} | bad}

    done = {"description": "All are done.", "content": many}
    later = {"description": "Some are not done; ask again by id.", "content": many}
    text = {"text/event-stream": {"schema": {"type": "string"}}}
    found: Json = {"description": "How far it is.", "content": one}
    ids = _parameter("id", "query", _list({"type": "string"}))
    anything = {"description": "Told.", "content": _body({"type": "object"})}
    asked = {"required": True, "content": _body({"$ref": "#/components/schemas/Asked"})}
    evaluate = answers(*refusals, _200=done, _202=later) | {"requestBody": asked}
    plain = {"description": "In Prometheus's form.", "content": {"text/plain": {}}}
    free: Json = {"security": []}
    return {
        "openapi": "3.1.0",
        "info": {"title": "nkic serve", "version": nkic.__version__},
        "security": [{"token": []}],
        "paths": {
            "/evaluate": {"post": evaluate},
            "/evaluations/{id}": {
                "get": answers("401", "404", _200=found, _202=found)
                | {"parameters": [_parameter("id", "path", {"type": "string"})]}
            },
            "/events": {
                "get": answers("401", "404", "422", _200={"description": "Ends.", "content": text})
                | {"parameters": [ids]}
            },
            "/tasks": {"get": answers("401", _200=anything)},
            "/metrics": {"get": answers("401", _200=plain)},
            "/health": {"get": answers("503", _200=anything) | free},
            "/openapi.json": {"get": answers(_200=anything) | free},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Asked": _asked(limits), "Job": _job()},
        },
    }


def _asked(limits: Limits) -> Json:
    text = {"type": "string"}
    candidate = _object({"name": text, "text": text, "neff": text}, required=[])
    many = _list(candidate) | {"minItems": 1, "maxItems": limits.batch}
    wait = {"type": "number", "minimum": 0, "maximum": limits.wait}
    fields = {"task": text, "candidate": candidate, "candidates": many, "wait": wait}
    either = [{"required": ["candidate"]}, {"required": ["candidates"]}]
    return _object(fields, required=["task"]) | {"oneOf": either}


def _job() -> Json:
    text = {"type": "string"}
    states = {"enum": ["queued", "running", "done", "failed", "returned"]}
    evaluation = {"anyOf": [evaluation_schema(), {"type": "null"}]}
    fields = {"id": text, "task": text, "state": states, "evaluation": evaluation, "problem": text}
    return _object(fields, required=["id", "task", "state", "evaluation"])


def _object(properties: Json, required: list[str] | None = None) -> Json:
    names = sorted(properties) if required is None else required
    table: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    return table | ({"required": names} if names else {})


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _body(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _parameter(name: str, where: str, schema: Json) -> Json:
    return {"name": name, "in": where, "required": True, "schema": schema}
