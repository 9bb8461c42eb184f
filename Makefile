VENV ?= .venv
PY = $(VENV)/bin/python
PYTHON ?= $(firstword $(wildcard $(PY)) python3)
OPTIONS = $(if $(BACKEND),--backend $(BACKEND)) $(if $(filter 1,$(NATIVE)),--native) $(if $(filter 0,$(NATIVE)),--portable) $(if $(MODEL),--model $(MODEL)) $(if $(EXTRA),--extra $(EXTRA)) $(if $(KERNELS),--kernels $(KERNELS))

.PHONY: bench setup test fuzz faults report figures doctor sweep audit kernels-check peers clean
bench: setup ; @$(PY) -m bench all
setup: ; @$(PYTHON) -m bench setup --venv $(VENV) $(OPTIONS)
test: setup ; @$(PY) -m pytest -q $(or $(ARGS),-n 2 --dist loadfile)
fuzz: setup ; @$(PY) -m tests.fuzz $(ARGS)
faults: setup ; @$(PY) -m tests.faults
report: setup ; @$(PY) -m bench report $(ARGS)
figures: setup ; @$(PY) -m bench figures $(ARGS)
doctor: setup ; @$(PY) -m bench doctor
sweep: setup ; @$(PY) -m bench sweep $(ARGS)
audit: setup ; @$(PY) -m bench audit $(FILE)
kernels-check: setup ; @$(PY) -m bench kernels --static $(ARGS)
peers: setup ; @$(PYTHON) -m bench setup --venv $(VENV) --peers
clean: ; rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
