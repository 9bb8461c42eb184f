#!/usr/bin/env bash
# On the machine without a network: what bundle.py collected becomes an engine for its GPU and a Python that finds it.
# usage: scripts/offline/build.sh BUNDLE PREFIX [ARCHITECTURES]
# PREFIX gets stock/ (libraries, llama-bench, llama-batched-bench), packed/ where the bundle has these kernels, site/ with
# the Python packages, and env, which a shell sources. Needs CUDA's compiler, CMake and ninja; both builds together took
# five minutes on 16 cores. What is whole already is not done again. ARCHITECTURES is CMake's list, by default this
# machine's cards.
set -euo pipefail
bundle=$(cd "${1:?usage: build.sh BUNDLE PREFIX [ARCHITECTURES]}" && pwd)
prefix=$(mkdir -p "${2:?usage: build.sh BUNDLE PREFIX [ARCHITECTURES]}" && cd "$2" && pwd)
architectures=${3:-native}
python=${PYTHON:-python3}
for tool in nvcc cmake ninja "$python"; do
  command -v "$tool" >/dev/null || { echo "error: $tool is not on the PATH, without which nothing is built" >&2; exit 2; }
done
(cd "$bundle" && sha256sum --quiet -c SHA256SUMS) || {
  echo "error: $bundle is not whole: the files above differ from SHA256SUMS; carry them again" >&2; exit 2; }

# The parts of FILE in their order, or FILE.
joined() { if [ -e "$1" ]; then cat "$1"; else cat "$1".part-*; fi; }
present() { [ -e "$1" ] || [ -e "$1".part-00 ]; }

if [ ! -e "$prefix/site/done" ]; then
  rm -rf "$prefix/site" "$prefix/wheels"
  mkdir -p "$prefix/wheels"
  for file in "$bundle"/wheels/*; do
    name=$(basename "${file%.part-*}")
    [ -e "$prefix/wheels/$name" ] || joined "$bundle/wheels/$name" >"$prefix/wheels/$name"
  done
  "$python" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$prefix/site" "$prefix"/wheels/*.whl
  touch "$prefix/site/done"
fi

# One tree for all builds: what a set of kernels changes is laid over it, and ninja compiles what depends on that.
# --exclude-libs: a compiler that links libstdc++ into each library exports it, and a process that has loaded numpy before
# then dies while it loads a model.
tree="$prefix/src"
build() {
  local name=$1
  [ ! -e "$prefix/$name/done" ] || return 0
  rm -rf "${prefix:?}/$name"
  if ! { cmake -S "$tree" -B "$tree/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_CUDA=ON \
           "-DCMAKE_CUDA_ARCHITECTURES=$architectures" -DCMAKE_SHARED_LINKER_FLAGS=-Wl,--exclude-libs,ALL \
           '-DCMAKE_INSTALL_RPATH=$ORIGIN' -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF \
           -DGIT_EXE=OFF "-DLLAMA_BUILD_COMMIT=$(cat "$bundle/commit")" \
           -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
         && cmake --build "$tree/build" -j "$(nproc)" --target llama-bench llama-batched-bench; } >"$prefix/$name.log" 2>&1
  then
    echo "error: the build '$name' failed; its log is $prefix/$name.log:" >&2
    grep -m 3 -i -E 'error' "$prefix/$name.log" >&2 || tail -5 "$prefix/$name.log" >&2
    return 2
  fi
  mkdir -p "$prefix/$name"
  cp -a "$tree"/build/bin/* "$prefix/$name/"
  touch "$prefix/$name/done"
  echo "$name: built, $prefix/$name"
}

if [ ! -e "$prefix/stock/done" ]; then
  # A tree that another build was laid over is no stock tree.
  [ ! -e "$tree/changed" ] || rm -rf "$tree"
  mkdir -p "$tree"
  [ -e "$tree/CMakeLists.txt" ] || joined "$bundle/engine.tar.xz" | tar -C "$tree" -xJ
  build stock
  cp -r "$tree/llama_cpp" "$prefix/site/"
fi
if present "$bundle/engine-packed.tar.xz" && [ ! -e "$prefix/packed/done" ]; then
  [ -d "$tree" ] || { mkdir -p "$tree"; joined "$bundle/engine.tar.xz" | tar -C "$tree" -xJ; }
  touch "$tree/changed"
  # -m: newer than what the stock build compiled.
  joined "$bundle/engine-packed.tar.xz" | tar -C "$tree" -xJm
  build packed
fi
cat >"$prefix/env" <<END
export PYTHONPATH="$prefix/site"
export LLAMA_CPP_LIB_PATH="$prefix/stock"
END
echo "next: . $prefix/env && python3 -m bench doctor"
