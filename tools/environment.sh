# Sourced by the other tools: sets the environment of every program started from here. All caches are inside the
# checkout.
# shellcheck shell=bash

export PIP_CACHE_DIR=$PWD/.cache/pip
export PIP_DISABLE_PIP_VERSION_CHECK=1
export UV_CACHE_DIR=$PWD/.cache/uv
export UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-120}
export UV_HTTP_RETRIES=${UV_HTTP_RETRIES:-5}
export UV_PYTHON_DOWNLOADS=never
# As pip does: trust the machine's certificates if it has a list (a bare image has none; uv then uses its own).
if [[ -s /etc/ssl/certs/ca-certificates.crt || -s /etc/pki/tls/certs/ca-bundle.crt ]]; then
    export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-true}
fi
export VIRTUAL_ENV=$PWD/.venv

# Pyright checks for its newest version unless told not to warn about it; its program comes with the wheel.
export PYRIGHT_PYTHON_IGNORE_WARNINGS=1
export PYRIGHT_PYTHON_CACHE_DIR=$PWD/.cache/pyright
export RUFF_CACHE_DIR=$PWD/.cache/ruff

# Python keeps its bytecode in one place: tests start hundreds of interpreters, for which compiling would dominate.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$PWD/.cache/python
