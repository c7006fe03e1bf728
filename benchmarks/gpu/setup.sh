#!/bin/bash
# Unpacks .gpu (pack.py) on the machine with the card. Source it, so that the variables stay; with
# a semicolon after it, not &&, which would let it go on past a failure:
#   . benchmarks/gpu/setup.sh [a,b,c]      # letters: which models to make
# A second call in the same machine finds everything in place.
set -e
carried=$PWD/.gpu
letters=${1:-a,b,c}
export PYTHONUNBUFFERED=1 RIGTUNE_HOME=/tmp/rigtune-home GPU_MODELS=/tmp/models
export PYTHONPATH=/tmp/site:/tmp/pkg
export LD_LIBRARY_PATH=/usr/local/cuda/targets/x86_64-linux/lib:/usr/local/nvidia/lib64
icd=/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json
if [ -e $icd ]; then export VK_DRIVER_FILES=$icd; fi
if [ ! -e /tmp/pkg/ready ]; then
    mkdir -p /tmp/pkg /tmp/vocab "$GPU_MODELS"
    # a virtual machine's memory may grow only as it is touched: do that before anything is timed
    python3 -c 'x = b"\1" * (40 << 30)' &
    cp -r "$carried/llama_cpp" /tmp/pkg/ && mkdir -p /tmp/pkg/llama_cpp/lib
    cat "$carried"/libs.tar.xz.* | tar xJf - -C /tmp/pkg/llama_cpp/lib
    python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade \
        --target /tmp/site "$carried"/*.whl
    for packed in "$carried"/ggml-vocab-*.xz; do
        xz -dc "$packed" > "/tmp/vocab/$(basename "$packed" .xz)"
    done
    if [ -e "$carried/vulkan.tar.xz" ]; then
        mkdir -p /tmp/pkg-vulkan
        cp -r "$carried/llama_cpp" /tmp/pkg-vulkan/ && mkdir -p /tmp/pkg-vulkan/llama_cpp/lib
        tar xJf "$carried/vulkan.tar.xz" -C /tmp/pkg-vulkan/llama_cpp/lib
        # a folder of their own: unpacked over the system they could break it
        for loader in "$carried"/*.deb; do dpkg -x "$loader" /tmp/loaders; done
    fi
    wait
    # a size of its own: the default is half of the memory seen at boot
    mount -t tmpfs -o size=48g tmpfs "$GPU_MODELS" 2>/dev/null || echo "models on disk, no tmpfs"
    touch /tmp/pkg/ready
fi
for letter in ${letters//,/ }; do
    if [ ! -e "$GPU_MODELS/$letter.made" ]; then
        python3 "$carried/make_models.py" "$GPU_MODELS" /tmp/vocab --only "$letter" $GPU_TINY
        touch "$GPU_MODELS/$letter.made"
    fi
done
# nothing below is worth its time unless engine and card are there
python3 -m app probe --json > /tmp/probe.json
python3 - <<'CHECK'
import json
found = json.load(open("/tmp/probe.json"))
devices = [d["name"] for d in found["engine"]["devices"]]
print("setup:", found["engine"]["backends"], devices, [g["key"] for g in found["gpus"]],
      "RAM", (found["host"]["ram_bytes"] or 0) >> 30, "GiB", found["unavailable"])
assert "CUDA0" in devices, "the engine sees no card"
CHECK
set +e
