"""The Web API for people to read: one page, drawn from the API's own description in OpenAPI."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from app_example.feeds import site_url
from app_example.templates import render

if TYPE_CHECKING:
    from fastapi import FastAPI

LIMITS = {
    "maxLength": "at most {} characters",
    "maxItems": "at most {}",
    "minimum": "from {}",
    "maximum": "to {}",
}


class WebApiPage:
    """The page at /web-api. It is no part of /api, whose callers the throttle takes for programs."""

    def __init__(self, api: FastAPI, public_url: str | None) -> None:
        self.api = api
        self.public_url = public_url

    def page(self, request: Request) -> Response:
        """Every operation and every kind of object."""
        return render(request, "web_api.html", site=site_url(request, self.public_url), **self._shown)

    @functools.cached_property
    def _shown(self) -> dict[str, Any]:
        description = self.api.openapi()
        schemas = description["components"]["schemas"]
        return {
            "text": description["info"]["description"],
            "operations": [
                _operation(method.upper(), path, operation)
                for path, methods in description["paths"].items()
                for method, operation in methods.items()
            ],
            "kinds": [
                {"name": name, "text": schema["description"], "members": _members(schema)}
                for name, schema in schemas.items()
                if "description" in schema  # not FastAPI's own errors: ours are problem+json
            ],
        }


def _operation(method: str, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    answers = {status: answer for status, answer in operation["responses"].items() if status != "422"}
    return {
        "id": operation["operationId"],
        "method": method,
        "path": f"/api{path}",
        "text": operation["description"],
        "needs_token": "security" in operation,
        "body": _kind(body) if body else None,
        "parameters": [
            {
                "name": parameter["name"],
                "kind": _kind(parameter["schema"]),
                "text": parameter.get("description", ""),
                "is_required": parameter.get("required", False),
            }
            for parameter in operation.get("parameters", [])
        ],
        "answers": [
            {"status": status, "kind": _kind(content["schema"]) if content else None}
            for status, answer in answers.items()
            for content in [answer.get("content", {}).get("application/json")]
        ],
    }


def _members(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "kind": _kind(member), "text": member.get("description", "")}
        for name, member in schema.get("properties", {}).items()
    ]


def _kind(schema: dict[str, Any]) -> dict[str, str]:
    """What a value is, in words; ``schema`` is the name of the kind of object that it is or holds."""
    for choice in schema.get("anyOf", ()):
        if choice.get("type") != "null":
            return _kind(choice)
    if "$ref" in schema:
        return {"words": "", "schema": schema["$ref"].rpartition("/")[2]}
    words, name = str(schema.get("type", "anything")), ""
    if words == "array":
        items = _kind(schema["items"])
        words, name = f"list of {items['words']}".strip(), items["schema"]
    limits = (text.format(schema[limit]) for limit, text in LIMITS.items() if limit in schema)
    return {"words": ", ".join([words, *limits]), "schema": name}
