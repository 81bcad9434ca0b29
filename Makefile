.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# For tests in real time, on a machine that may be busy: the report shows why there were second tries.
AGAIN := --reruns 1 -rfER --rerun-show-tracebacks
# With BUDGET=seconds the long tiers take their tests in an order that follows from the commit, and
# skip those that the budget leaves no time for. With SHARE=0.6 they run that part of them, chosen by the commit.
BUDGETED = $(if $(BUDGET)$(SHARE),-p tests.support.budget $(BUDGET:%=--budget-s %) $(SHARE:%=--share %))

# Each commit draws other examples, and the same ones wherever it is tested.
SEEDED := --hypothesis-seed=$(or $(shell git rev-parse HEAD 2>/dev/null),none)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

.PHONY: setup
setup: $(READY) ## Set up for development: .venv with all tools, and the git hook that runs lint
	$(BIN)/pre-commit install

# Only what has been built for this machine: frameworks take hours from source. They are large, so just
# what is imported gets compiled. MXNet asks for a name that numpy has dropped.
.venv-%/.ready: examples/%/requirements.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/pip install --quiet --disable-pip-version-check --no-compile --only-binary :all: --requirement $<
	PYTHONDONTWRITEBYTECODE= .venv-$*/bin/python -c 'import numpy; hasattr(numpy, "bool") or setattr(numpy, "bool", bool); import $*'
	@touch $@

# Of Horovod nothing has been built for any machine. The wheel is for the image, too.
HOROVOD_PIP := .venv-horovod/bin/pip --quiet --disable-pip-version-check
.venv-horovod/.ready: examples/horovod/requirements.txt examples/horovod/wheel.sh
	$(PYTHON) -m venv .venv-horovod
	$(HOROVOD_PIP) install --no-compile --no-deps --only-binary :all: --requirement $<
	@mkdir -p dist/horovod
	rm -f dist/horovod/*.whl
	cd dist/horovod && $(CURDIR)/examples/horovod/wheel.sh $(CURDIR)/.venv-horovod/bin/pip
	$(HOROVOD_PIP) install --no-compile --no-deps dist/horovod/horovod-*.whl
	PYTHONDONTWRITEBYTECODE= .venv-horovod/bin/python -c 'import horovod.tensorflow' 2>/dev/null
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

# The packages of which each test is fast. The others start clusters, processes or kubectl.
WITH_CLUSTERS := cli contract convergence integration local manifests

.PHONY: unit
unit: $(READY) ## The tests that a change needs first, in half a minute
	$(BIN)/pytest -n 2 -m "not slow and not soak and not fuzz and not examples and not sdk" \
		$(WITH_CLUSTERS:%=--ignore tests/%)

.PHONY: test
test: lint ## Lint, then all fast tests
	$(BIN)/pytest -n 2 $(SEEDED) -m "not soak and not fuzz and not examples and not sdk"

$(VENV)/.docs: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

.PHONY: docs
docs: $(VENV)/.docs ## Build the site of the documentation to dist/site; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

$(VENV)/.release: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[release]'
	@touch $@

# The definitions that the wheel prints by itself show that it has all its data files.
.PHONY: dist
dist: $(VENV)/.release ## Build the wheel and the source archive to dist/ and check them
	rm -f dist/dlctl-*.whl dist/dlctl-*.tar.gz
	$(BIN)/python -m build --no-isolation --outdir dist >/dev/null
	$(BIN)/twine check --strict dist/dlctl-*.whl dist/dlctl-*.tar.gz
	! tar --wildcards -xzOf dist/dlctl-*.tar.gz '*/PKG-INFO' | grep -E '\]\(([^h)]|h[^t])' # a relative link
	cd dist && PYTHONPATH=$$(ls dlctl-*.whl) ../$(BIN)/python -P -m dlctl crds | cmp - ../manifests/base/crds.yaml

.PHONY: soak
soak: $(READY) ## The tests of many seeds and of long runs
	$(BIN)/pytest -n 2 -m soak $(BUDGETED)

# FUZZ_BUDGET_S=seconds of making objects, FUZZ_SEED=number instead of one that follows from the commit.
.PHONY: fuzz
fuzz: $(READY) ## Hostile objects of all kinds through all that reads them
	$(BIN)/pytest -n 2 -m fuzz tests/fuzz

# Installed by pip; PyTorch, Open MPI and sshd are packages of Debian.
FRAMEWORKS := horovod jax mxnet paddle tensorflow xgboost

.PHONY: examples
examples: $(READY) $(FRAMEWORKS:%=.venv-%/.ready) ## Train a model with each framework on an embedded cluster
	@for module in torch mpi4py; do \
		/usr/bin/python3 -c "import $$module" || \
			echo 'left out: apt-get install python3-torch openmpi-bin python3-mpi4py python3-numpy'; \
	done
	$(BIN)/pytest -m examples $(AGAIN) $(BUDGETED) -rfERs --durations=0 --durations-min=1 tests/examples

.PHONY: bench
bench: $(READY) ## Measure, each figure beside its goal
	$(BIN)/python -m bench.decode
	$(BIN)/python -m bench.watch
	$(BIN)/python -m bench.work_queue
	$(BIN)/python -m bench.job

# LOADS=names, by their beginnings, for some of the hostile loads.
.PHONY: bench-neighbours
bench-neighbours: $(READY) ## Measure what a quiet namespace notices of a hostile one
	$(BIN)/python -m bench.noisy_neighbour $(LOADS)

# BENCH_FLAGS: --rounds N, --peer PROGRAM, --scenarios SCENARIO ..., --out FILE, --flags "FLAGS OF DLCTL".
.PHONY: bench-cluster
bench-cluster: $(READY) ## Time dlctl on a real API server beside plain writers; needs Go
	$(BIN)/python -m e2e.cluster build --what control-plane --k8s $(K8S)
	$(BIN)/python -m e2e.cluster run --k8s $(K8S) --kwok 4 --audit -- \
		sh -c '$(BIN)/python -m bench.cluster $$E2E_CLUSTER $(BENCH_FLAGS)'

.PHONY: bench-gate
bench-gate: $(READY) ## Compare a few ratios of bench-cluster with those stored; needs Go
	$(BIN)/python -m e2e.cluster build --what control-plane --k8s $(K8S)
	$(BIN)/python -m e2e.cluster run --k8s $(K8S) --kwok 4 --audit -- \
		sh -c '$(BIN)/python -m bench.cluster.gate $$E2E_CLUSTER $(GATE_FLAGS)'

# What the page on performance shows: hours, on a machine with nothing else to do. PEER=program of
# training-operator v1.
PERFORMANCE := 1x1000 1x5000 200x4 1000x4 floor:1x1000 floor:1x5000 floor:200x4 one-service:1x1000 one-service:200x4 first-write fairness:5000 job-restart:1000 gang-restart:1000 overload:200x4
PERFORMANCE_ONCE := foreign:10000 restart:1000x10 live:10000x1 sustained:10000x4 sustained-ttl:10000x4

.PHONY: performance
performance: ## Measure what the page on performance shows, and make its plots; needs Go
	$(MAKE) bench-cluster BENCH_FLAGS='--out bench/results.json $(PEER:%=--peer %) --scenarios $(PERFORMANCE)'
	$(MAKE) bench-cluster BENCH_FLAGS='--out bench/results.json $(PEER:%=--peer %) --rounds 1 --scenarios $(PERFORMANCE_ONCE)'
	$(BIN)/python -m bench.plots bench/results.json docs/performance

# The version of Kubernetes that contract and e2e tests run on: 1.36, or 1.33.
K8S ?= 1.36

.PHONY: e2e-cluster
e2e-cluster: $(READY) ## Build the programs of a real cluster of Kubernetes $(K8S); needs Go
	$(BIN)/python -m e2e.cluster build --k8s $(K8S)

# Kubeflow's client, beside the rest: it is for tests alone.
$(VENV)/.sdk: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[sdk]'
	@touch $@

.PHONY: contract
contract: $(VENV)/.sdk ## Hold the embedded API server to a real one, and dlctl to both; needs Go
	$(BIN)/python -m e2e.cluster build --what control-plane --k8s $(K8S)
	$(BIN)/python -m e2e.cluster run --k8s $(K8S) -- \
		sh -c 'CONTRACT_KUBECONFIG=$$KUBECONFIG $(BIN)/pytest -n 2 $(BUDGETED) tests/contract tests/manifests'
	$(BIN)/python -m e2e.cluster run --k8s $(K8S) --kwok 2 -- \
		sh -c 'CONTRACT_KUBECONFIG=$$KUBECONFIG $(BIN)/pytest -n 4 -m real $(AGAIN) $(BUDGETED) tests/integration tests/convergence tests/sdk'
	$(BIN)/pytest -n 2 -m 'sdk and not real' $(AGAIN) $(BUDGETED) tests/sdk

# Without KUBECONFIG the cluster is made for the tests, which needs root, Debian and Go, and may be
# broken by them. Any other must be able to pull E2E_IMAGE, and E2E_MPI_IMAGE and E2E_MXNET_IMAGE
# unless they are empty.
.PHONY: e2e
ifeq ($(origin KUBECONFIG),command line)
e2e: $(READY) ## Try dlctl in a real cluster: one of its own, or that of KUBECONFIG=...
	KUBECONFIG=$(KUBECONFIG) $(E2E) e2e/suite
else
e2e: $(READY) dist/dlctl.tar dist/mpi.tar dist/mxnet.tar
	$(BIN)/python -m e2e.cluster build --k8s $(K8S)
	$(BIN)/python -m e2e.cluster run --k8s $(K8S) --nodes 2 --kwok 3 --audit \
		--load dist/dlctl.tar --load dist/mpi.tar --load dist/mxnet.tar -- $(E2E) e2e/suite
endif

# One node, since the images are large.
FRAMEWORK_IMAGES := $(patsubst %,dist/%.tar,dlctl jax kubectl-delivery mpi pytorch tensorflow)

.PHONY: e2e-frameworks
e2e-frameworks: $(READY) $(FRAMEWORK_IMAGES) ## Train a model with each framework in a real cluster
	$(BIN)/python -m e2e.cluster run --nodes 1 $(FRAMEWORK_IMAGES:%=--load %) -- \
		env E2E_FRAMEWORKS=localhost $(E2E) e2e/suite/test_frameworks.py

.PHONY: e2e-elastic
e2e-elastic: $(READY) dist/dlctl.tar dist/horovod.tar ## Scale elastic Horovod in a real cluster
	$(BIN)/python -m e2e.cluster run --nodes 2 --load dist/dlctl.tar --load dist/horovod.tar -- \
		env E2E_FRAMEWORKS=localhost $(E2E) e2e/suite/test_elastic.py

.PHONY: mpi-operator
mpi-operator: $(READY) ## Compare dlctl with the real mpi-operator, and hand live jobs over; needs Go
	$(BIN)/python -m e2e.cluster build --what mpi-operator
	$(BIN)/python -m e2e.cluster run -- $(BIN)/python -m e2e.mpi_operator
	$(BIN)/python -m e2e.cluster run -- $(BIN)/python -m e2e.mpi_operator.handover

E2E = $(BIN)/pytest --override-ini timeout=600 $(AGAIN) $(BUDGETED)

.PHONY: e2e-kind
e2e-kind: $(READY) ## The same in a kind cluster made for it; needs Docker and kind
	docker build --tag localhost/dlctl:e2e .
	docker build --tag localhost/mpi:4.1.4 examples/mpi
	docker build --tag localhost/mxnet:1.9.1 examples/mxnet
	kind create cluster --name dlctl-e2e --config e2e/kind.yaml --kubeconfig dist/kind.kubeconfig
	kind load docker-image --name dlctl-e2e localhost/dlctl:e2e localhost/mpi:4.1.4 localhost/mxnet:1.9.1
	KUBECONFIG=dist/kind.kubeconfig $(E2E) e2e/suite; \
		status=$$?; kind delete cluster --name dlctl-e2e; exit $$status

.PHONY: manifests
manifests: $(READY) ## Generate the CRDs, the role and install.yaml
	$(BIN)/dlctl crds > manifests/base/crds.yaml
	$(BIN)/dlctl rbac > manifests/base/rbac.yaml
	kubectl kustomize manifests/overlays/cluster-wide > manifests/install.yaml

.PHONY: image
image: dist/dlctl.tar ## Build the image to dist/dlctl.tar, without Docker; needs root and Debian

dist/dlctl.tar: Dockerfile pyproject.toml constraints.txt $(shell find dlctl -name '*.py') | $(READY)
	@mkdir -p dist
	$(BIN)/python -m e2e.image $@

# The images that the examples name, under localhost, and how large each may be.
IMAGES := jax mpi mxnet pytorch tensorflow
dist/jax.tar: TAG := 0.10.2
dist/jax.tar: LIMIT_MB := 900
dist/mpi.tar: TAG := 4.1.4
dist/mpi.tar: LIMIT_MB := 400
dist/mxnet.tar: TAG := 1.9.1
dist/mxnet.tar: LIMIT_MB := 500
dist/pytorch.tar: TAG := 1.13.1
dist/pytorch.tar: LIMIT_MB := 1500
dist/tensorflow.tar: TAG := 2.21.0
dist/tensorflow.tar: LIMIT_MB := 1500

dist/jax.tar dist/mxnet.tar dist/tensorflow.tar: dist/%.tar: examples/%/requirements.txt
dist/mpi.tar: examples/mpi/pi.c examples/mpi/wait-for-names
$(IMAGES:%=dist/%.tar): dist/%.tar: examples/%/Dockerfile | $(READY)
	@mkdir -p dist
	$(BIN)/python -m e2e.image $@ --name localhost/$*:$(TAG) --context examples/$* --limit-mb $(LIMIT_MB)

# With the wheel that is there already, which is for the same Debian.
dist/horovod.tar: examples/horovod/Dockerfile .venv-horovod/.ready | $(READY)
	ls dist/horovod/horovod-*.whl >/dev/null || { rm .venv-horovod/.ready; $(MAKE) .venv-horovod/.ready; }
	cp examples/horovod/Dockerfile examples/horovod/requirements.txt examples/horovod/wheel.sh dist/horovod
	$(BIN)/python -m e2e.image $@ --name localhost/horovod:0.28.1 --context dist/horovod --limit-mb 1300

# With the kubectl of the cluster that is made for the tests.
dist/kubectl-delivery.tar: examples/mpi/kubectl-delivery/Dockerfile | $(READY)
	@mkdir -p dist/kubectl-delivery
	$(BIN)/python -m e2e.cluster build --what control-plane
	cp $< "$$($(BIN)/python -c 'from e2e.cluster import programs as p; print(p.folder(p.Release.NEWEST))')/kubectl" \
		dist/kubectl-delivery
	$(BIN)/python -m e2e.image $@ --name localhost/kubectl-delivery:1 --context dist/kubectl-delivery

.PHONY: clean
clean: ## Remove the environments and all that was made
	rm -rf $(VENV) .venv-numpy $(FRAMEWORKS:%=.venv-%) .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist
