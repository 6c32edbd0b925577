"""Pods of the scheduler's tests in a fake API server, read as the scheduler reads them."""

from __future__ import annotations

from typing import Any

import msgspec

from partage_scheduler.objects import ApiPod
from support.fake_api import FakeApi
from support.objects import NAMESPACE, pod_body

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


def create_pod(api: FakeApi, name: str = "p", **more: Any) -> ApiPod:
    return read_pod(api.objects.create(PODS, pod_body(name, **more)))


def read_pod(body: dict[str, Any]) -> ApiPod:
    return msgspec.convert(body, ApiPod)


def stands(api: FakeApi, name: str = "p") -> ApiPod:
    return read_pod(api.objects.get(f"{PODS}/{name}"))
