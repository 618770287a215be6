#!/usr/bin/env bash
# Writes the locks under requirements/: hashes, and no index address. Needs uv.
set -eu
cd "$(dirname "$0")/.."
compile() { # name, then the inputs
  local name=$1; shift
  uv pip compile --quiet --generate-hashes --no-emit-index-url --universal --no-header --no-annotate \
    --python-version 3.11 --output-file "requirements/$name.txt" "$@"
}
compile reconciler --group reconciler
compile replay --group replay
compile processor --group processor
compile verification --group verification
compile ../functions/requirements --group handlers --constraint requirements/processor.txt \
  --constraint requirements/verification.txt
compile dev pyproject.toml --extra cdk --extra console --extra dev --extra mcp --group handlers --group dev
compile scanners --group scanners
compile bench --group bench
compile build requirements/build.in
compile runtime requirements/runtime.in
