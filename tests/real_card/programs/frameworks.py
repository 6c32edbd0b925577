"""Frameworks on a card, always with the same steps: results do not depend on the machine."""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any

from real_card.programs import memory
from real_card.programs.answer import Absent, answer
from real_card.programs.driver import LIBRARY

language: Any = None
REQUESTS_PER_S = 30
WARM_S = 1.0


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Absent(f"{name} is not installed") from error


def _torch() -> Any:
    torch = _module("torch")
    if not torch.cuda.is_available():
        raise Absent("this torch is not for CUDA, or for another driver")
    torch.manual_seed(7)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    return torch


def _trained(torch: Any, *, compiled: bool = False) -> float:
    """The loss after 20 steps."""
    torch.manual_seed(7)
    layers = torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    model = torch.nn.Sequential(*layers).cuda()
    called = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    inputs, labels = torch.randn(128, 256, device="cuda"), torch.randint(0, 10, (128,), device="cuda")
    loss = torch.zeros(())
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(called(inputs), labels)
        loss.backward()
        optimizer.step()
    return round(float(loss), 3)


def _replayed(torch: Any) -> float:
    """A captured product, replayed on other numbers."""
    left, right = torch.ones(512, 512, device="cuda"), torch.ones(512, 512, device="cuda")
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        torch.mm(left, right)
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        product = torch.mm(left, right)
    left.fill_(2)
    for _ in range(100):
        graph.replay()
    torch.cuda.synchronize()
    return float(product.mean())


def torch_steps() -> dict[str, Any]:
    """Train; in a container, then allocate all memory and train again.

    Without one, answer other rows' questions, too.
    """
    contained = hasattr(ctypes.CDLL(LIBRARY), "partage_library")
    also = {} if contained else {"context-size": memory.contexts(), "graph-memory": memory.graphs()}
    try:
        torch = _torch()
    except Absent as absent:
        return {"also": also, "absent": str(absent)}
    return {"also": also, **_steps(torch), **(_filled(torch) if contained else {})}


def _steps(torch: Any) -> dict[str, Any]:
    product = torch.randn(2048, 2048, device="cuda") @ torch.randn(2048, 2048, device="cuda")
    convolution = torch.nn.Conv2d(16, 32, 3).cuda()
    convolved = convolution(torch.randn(8, 16, 64, 64, device="cuda"))
    return {
        "product": round(float(product.abs().mean()), 2),
        "convolved": round(float(convolved.abs().mean()), 4),
        "trained": _trained(torch),
        "replayed": _replayed(torch),
    }


def torch_compile() -> dict[str, Any]:
    torch = _torch()
    _module("triton")
    if not (shutil.which("cc") or shutil.which("gcc")):
        raise Absent("torch.compile needs a C compiler")
    return {"trained": _trained(torch, compiled=True)}


def triton() -> dict[str, Any]:
    torch, found = _torch(), _module("triton")
    globals()["language"] = _module("triton.language")  # a kernel looks names up in its module's globals
    values = torch.arange(1 << 20, device="cuda", dtype=torch.float32)
    found.jit(_twice)[(1 << 10,)](values, BLOCK=1 << 10)
    return {"total": float(values.sum(dtype=torch.float64))}


def _twice(values, BLOCK: language.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, N803
    places = language.program_id(0) * BLOCK + language.arange(0, BLOCK)
    language.store(values + places, language.load(values + places) * 2)


def torch_fill() -> dict[str, Any]:
    """Torch's error when memory is exhausted, and its recovery. The allocator is the environment's."""
    return _filled(_torch())


def _filled(torch: Any) -> dict[str, Any]:
    held, said = [], "nothing"
    try:
        while True:
            held.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        said = "OutOfMemoryError"
    del held
    torch.cuda.empty_cache()
    return {"refused": said, "afterwards": _trained(torch)}


def _child(queue: Any, done: Any) -> None:
    tensor = queue.get()
    tensor.mul_(3)
    _module("torch").cuda.synchronize()
    done.put(float(tensor.sum()))


def torch_spawn() -> dict[str, Any]:
    """Pass a tensor by CUDA IPC to a spawned process, which changes it."""
    torch = _torch()
    context = torch.multiprocessing.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    process = context.Process(target=_child, args=(queue, done))
    process.start()
    tensor = torch.ones(1024, 1024, device="cuda")
    queue.put(tensor)
    there = done.get(timeout=60)
    process.join()
    torch.cuda.synchronize()
    return {"there": there, "here": float(tensor.sum()), "exit": process.exitcode}


def torch_requests(seconds: str = "6") -> dict[str, Any]:
    """A small transformer serves requests, one each thirtieth of a second: their latencies."""
    torch = _torch()
    layer = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda().eval()
    inputs, took = torch.randn(1, 128, 512, device="cuda"), list[float]()
    with torch.inference_mode():
        for _ in range(20):
            model(inputs).sum().item()
        start = time.monotonic()
        while (came := start + len(took) / REQUESTS_PER_S) < start + float(seconds):
            time.sleep(max(0.0, came - time.monotonic()))
            model(inputs).sum().item()
            took.append((time.monotonic() - came) * 1e3)
    took.sort()
    return {"p50_ms": took[len(took) // 2], "p99_ms": took[int(len(took) * 0.99)]}


def torch_speed() -> dict[str, Any]:
    """Train a transformer for as many seconds as each line of input says; answer with steps a second."""
    torch = _torch()
    layer = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(32, 128, 512, device="cuda")

    def train(until: float) -> int:
        steps = 0
        while time.monotonic() < until:
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            optimizer.step()
            loss.item()
            steps += 1
        return steps

    train(time.monotonic() + WARM_S)
    _say("ready")
    for line in sys.stdin:
        begun = time.monotonic()
        steps = train(begun + float(line))
        _say(str(round(steps / (time.monotonic() - begun), 2)))
    return {}


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def jax() -> dict[str, Any]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    found, numpy = _module("jax"), _module("jax.numpy")
    try:
        card = found.devices("gpu")[0]
    except RuntimeError as error:
        raise Absent("this JAX is not for CUDA, or for another driver") from error
    values = found.device_put(numpy.arange(1 << 20, dtype=numpy.float32).reshape(1024, 1024) / (1 << 20), card)
    total = found.jit(lambda x: (x @ x.T).sum())(values)
    return {"total": round(float(total) / 1e6)}


def cupy() -> dict[str, Any]:
    found = _module("cupy")
    values = found.arange(1 << 20, dtype=found.float32)
    kernel = found.ElementwiseKernel("float32 x", "float32 y", "y = x * 2 + 1", "twice_and_one")
    return {"total": float(kernel(values).sum(dtype=found.float64)), "sorted": float(found.sort(values)[-1])}


def numba() -> dict[str, Any]:
    """Numba's events use the newest form of a function that exists."""
    _module("numba")
    cuda = _module("numba.cuda")
    if not cuda.is_available():
        raise Absent("this numba does not find CUDA")

    def fill(out: Any) -> None:
        place = cuda.grid(1)
        if place < out.size:
            out[place] = 3

    values, filled = cuda.device_array(1 << 20, dtype="float32"), cuda.jit(fill)
    begin, end = cuda.event(), cuda.event()
    begin.record()
    filled[4096, 256](values)
    end.record()
    end.synchronize()
    return {"elapsed": cuda.event_elapsed_time(begin, end) >= 0, "total": float(values.copy_to_host().sum())}


QUESTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "torch": torch_steps,
    "torch-compile": torch_compile,
    "torch-fill": torch_fill,
    "torch-spawn": torch_spawn,
    "torch-requests": torch_requests,
    "torch-speed": torch_speed,
    "triton": triton,
    "jax": jax,
    "cupy": cupy,
    "numba": numba,
}

if __name__ == "__main__":
    sys.exit(answer(QUESTIONS))
