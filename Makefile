.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

# Only what has been built for this machine: MXNet and the numpy it needs take hours from source.
.venv-%/.ready: examples/%/requirements.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/pip install --quiet --disable-pip-version-check --only-binary :all: --requirement $<
	.venv-$*/bin/python -c 'import numpy; numpy.bool = bool; import $*'
	@touch $@

.PHONY: demo
demo: $(READY) ## Train a model with distributed MXNet on an embedded cluster
	@if $(MAKE) --no-print-directory .venv-mxnet/.ready; then \
		example=mxnet; \
	else \
		echo; \
		echo 'MXNet cannot be installed here: it needs Linux on x86-64 and Python 3.11, and pip must'; \
		echo 'find mxnet==1.9.1. The same job runs with numpy alone instead.'; \
		echo; \
		$(MAKE) --no-print-directory .venv-numpy/.ready && example=numpy; \
	fi && $(BIN)/dlctl run examples/$$example/linear-dist.yaml --image dlctl/$$example=.venv-$$example

.PHONY: lint
lint: $(READY) ## Format, lint, types, import contracts, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

.PHONY: test
test: lint ## Lint, then all fast tests
	$(BIN)/pytest -n 2 -m "not soak"

.PHONY: soak
soak: $(READY) ## The tests of many seeds and of long runs
	$(BIN)/pytest -n 2 -m soak

.PHONY: bench
bench: $(READY) ## Measure, each figure beside its goal
	$(BIN)/python -m bench.decode
	$(BIN)/python -m bench.watch
	$(BIN)/python -m bench.work_queue
	$(BIN)/python -m bench.job

# The version of Kubernetes that contract and e2e tests run on: 1.36, or 1.33.
K8S ?= 1.36

.PHONY: e2e-cluster
e2e-cluster: $(READY) ## Build the programs of a real cluster of Kubernetes $(K8S); needs Go
	$(BIN)/python -m e2e.cluster build --k8s $(K8S)

.PHONY: contract
contract: $(READY) ## Ask the embedded API server and a real one the same questions; needs Go
	$(BIN)/python -m e2e.cluster build --what control-plane --k8s $(K8S)
	$(BIN)/python -m e2e.cluster run --k8s $(K8S) -- \
		sh -c 'CONTRACT_KUBECONFIG=$$KUBECONFIG $(BIN)/pytest -n 2 tests/contract'

.PHONY: manifests
manifests: $(READY) ## Write the CRDs, the role and install.yaml anew
	$(BIN)/dlctl crds > manifests/base/crds.yaml
	$(BIN)/dlctl rbac > manifests/base/rbac.yaml
	kubectl kustomize manifests/overlays/cluster-wide > manifests/install.yaml

.PHONY: image
image: $(READY) ## Build the image to dist/dlctl.tar, without Docker; needs root and Debian
	@mkdir -p dist
	$(BIN)/python -m e2e.image dist/dlctl.tar

.PHONY: clean
clean: ## Remove the environments and all that was made
	rm -rf $(VENV) .venv-mxnet .venv-numpy .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist
