#!/bin/sh
# One environment for each peer, in $1 (default /opt/peers), beside the training image's own: pinned in peers/*.txt.
# They do not fit into one: litgpt wants huggingface_hub 1.x, torchtitan datasets 4. What a peer does not pin
# (torch, transformers, numpy) is the image's, so all contenders compute with the same libraries.
set -eu
target=${1:-/opt/peers}
here=$(cd "$(dirname "$0")" && pwd)
image=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for list in "$here"/peers/*.txt; do
    peer=$(basename "$list" .txt)
    python -m venv --without-pip "$target/$peer"
    site=$("$target/$peer/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    # Later on sys.path than the peer's own packages.
    echo "$image" > "$site/image.pth"
    "$target/$peer/bin/python" -m pip install --quiet --no-compile --requirement "$list"
    "$target/$peer/bin/python" -m compileall -q "$site" || true
    "$target/$peer/bin/python" -m pip check || true
done
