#!/usr/bin/env bash
# Everything that the owner of an MI50 runs, and one file to send back: docs/mi50.md.
# usage: scripts/mi50.sh MODEL.gguf [--cards N] [--sha256 DIGEST] [--out FILE.tar.gz] [--minutes N] [--busy]
#        scripts/mi50.sh --rehearse [--out FILE.tar.gz]
# It goes on where an earlier call ended. A step that cannot run here is told in steps.txt, and the others go on.
# --rehearse: a small hybrid model with random weights on whatever engine is installed, in minutes: the same steps.
set -uo pipefail
cd "$(dirname "$0")/.."
model= cards=1 digest= out= rehearse= busy= minutes=60
while [ $# -gt 0 ]; do
  case $1 in
    --rehearse) rehearse=1 ;;
    --busy) busy=1 ;;
    --cards | --sha256 | --out | --minutes)
      [ $# -gt 1 ] || { echo "error: $1 needs a value" >&2; exit 2; }
      case $1 in --cards) cards=$2 ;; --sha256) digest=$2 ;; --out) out=$2 ;; *) minutes=$2 ;; esac
      shift ;;
    -h | --help) sed -n '2,6s/^# //p' "$0"; exit 0 ;;
    -*) echo "error: there is no option $1; scripts/mi50.sh --help lists them" >&2; exit 2 ;;
    *) model=$1 ;;
  esac
  shift
done
for number in "$cards" "$minutes"; do
  [[ $number =~ ^[1-9][0-9]*$ ]] || { echo "error: '$number' is no number of cards or minutes; write --cards 2" >&2; exit 2; }
done
[ -n "$rehearse" ] || [ -f "$model" ] || {
  echo "error: ${model:-no model} is not there; give the GGUF file, or --rehearse to try the steps without it" >&2; exit 2; }
if [ -n "$rehearse" ]; then machine=mi50-rehearsal; else machine=mi50; fi
results=${RESULTS:-results}
work=$results/$machine-kit
out=${out:-$machine-$(date -u +%Y%m%d).tar.gz}
mkdir -p "$work" || exit 2
python=${PYTHON:-.venv/bin/python}

tell() { printf '%s  %s\n' "$(date -u +%H:%M:%S)" "$*" | tee -a "$work/steps.txt"; }
# step NAME COMMAND..: what it prints goes into NAME.txt, its last words into steps.txt where it fails.
step() {
  local name=$1 began=$SECONDS; shift
  tell "$name: begins"
  if "$@" >"$work/$name.txt" 2>&1; then tell "$name: done in $((SECONDS - began)) s"; return 0; fi
  tell "$name: did not work: $(grep -v '^ *$' "$work/$name.txt" | tail -n 1 | cut -c1-300)"
  return 1
}

# What the card is and does: versions, VBIOS, clocks, power and its cap, temperature, errors of its memory.
state() {
  { uname -r; cat /opt/rocm/.info/version 2>/dev/null; hipconfig --version 2>/dev/null; } >"$work/versions-$1.txt"
  if ! command -v rocm-smi >/dev/null; then tell "state $1: there is no rocm-smi, so nothing tells clocks, power and memory errors"; return; fi
  rocm-smi --showproductname --showvbios --showclocks --showpower --showmaxpower --showtemp --showmeminfo vram \
    --showrasinfo >"$work/state-$1.txt" 2>&1
  rocm-smi --showrasinfo 2>/dev/null | grep -E 'ERROR|UMC|[0-9]' >"$work/ras-$1.txt"
}

# Whoever else has work on the card is named; measuring beside it says nothing.
neighbours() {
  command -v rocm-smi >/dev/null || return 0
  local others
  others=$(rocm-smi --showpids 2>/dev/null | awk '$1 ~ /^[0-9]+$/ { printf "%s%s (%s)", n++ ? ", " : "", $1, $2 }')
  [ -z "$others" ] || [ -n "$busy" ] || {
    echo "error: the card is in use by process $others; end it, or measure beside it with --busy" >&2; exit 2; }
  [ -z "$others" ] || tell "measured beside process $others"
}

[ -n "${HIP_VISIBLE_DEVICES:-}" ] || export HIP_VISIBLE_DEVICES=$(seq -s, 0 $((cards - 1)))
neighbours
if [ -z "$rehearse" ]; then
  # Not into a file: the lacks of ROCm are for whoever sits here, before anything is built.
  make setup BACKEND=hip || exit 2
  make peers || tell "peers: llama-bench could not be built, so its figures are not there"
fi
[ -x "$python" ] || { echo "error: there is no $python; run make setup, or name a Python with PYTHON=FILE" >&2; exit 2; }
peers=$(dirname "$python")/../peers
if [ -n "$rehearse" ]; then
  model=$work/hybrid-mini.gguf
  [ -f "$model" ] || step synth "$python" -m bench synth hybrid-mini "$model" || exit 2
  sweep=(+experiment=mi50 model=gguf "model.path=$model" prompts=short n_predict=12 'measure.classes=[prose]' engine.n_ctx=128
         measure.again_blocks=1 measure.step_widths=4 measure.step_passes=2 depth=16 "machine=$machine")
else
  sweep=(+experiment=mi50 model=gguf "model.path=$model" "machine=$machine")
fi
sweep+=("results=$results")
[ -z "$busy" ] || sweep+=(busy=true)
state before
found=$(sha256sum "$model" | cut -d' ' -f1)
printf '%s  %s\n' "$found" "$(basename "$model")" >"$work/model.sha256"
if [ -n "$digest" ] && [ "$found" != "$digest" ]; then
  echo "error: $model has SHA-256 ${found:0:12}.., and ${digest:0:12}.. was asked for; get the file again" >&2; exit 2
fi
step doctor "$python" -m bench doctor
if [ -x "$peers/llama-bench" ]; then
  step llama-bench "$peers/llama-bench" -m "$model" -p 1,2,3,4,5,6,7,8,9,12,16 -n 64 -r "$([ -n "$rehearse" ] && echo 2 || echo 10)" \
    -fa 1 -ngl 99 -o jsonl
  sweep+=("peers.llama_bench=$peers/llama-bench")
  [ ! -x "$peers/llama-batched-bench" ] || sweep+=("peers.llama_batched_bench=$peers/llama-batched-bench")
else
  tell "llama-bench: there is none in $peers; make peers builds it"
fi
if command -v hipcc >/dev/null || [ -z "$rehearse" ]; then
  step kernels "$python" -m bench kernels --static --formats Q8_0,Q6_K,Q5_K --streams 1,4
else
  tell "kernels: there is no hipcc, so they are not checked"
fi
# The longest step, on the terminal: it tells cells and minutes left.
tell "sweep: begins"
timeout --foreground "$((minutes * 60))" "$python" -m bench sweep "${sweep[@]}"
status=$?
case $status in
  0) tell "sweep: done" ;;
  124) tell "sweep: ended after $minutes minutes; the same command goes on" ;;
  130) tell "sweep: interrupted; the same command goes on" ;;
  *) tell "sweep: ended with $status; the report names what failed" ;;
esac
state after
if [ -e "$work/ras-before.txt" ] && ! cmp -s "$work/ras-before.txt" "$work/ras-after.txt"; then
  tell "memory errors: the card's counters changed while it measured, so these figures count for nothing; lower its memory clock"
fi
[ ! -d "$results/$machine" ] || step report "$python" -m bench report "results=$results" "reports=$work/reports"
# Cells without names of people and folders, as any other contribution; what the steps said goes behind them.
cells=$work/cells.tar
rm -f "$cells"
[ ! -d "$results/$machine" ] || step pack "$python" -m bench pack "results=$results" "machine=$machine" -o "$cells"
tar -rf "$cells" --owner=0 --group=0 --numeric-owner --exclude='*.gguf' --exclude='*.tar' -C "$results" "$(basename "$work")" &&
  gzip -c "$cells" >"$out" || exit 2
rm -f "$cells"
tell "packed: $out, $(du -h "$out" | cut -f1)"
echo "send back $out; CONTRIBUTING.md says where"
[ "$status" = 0 ] || exit 1
