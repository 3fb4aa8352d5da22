# `make up` and `make test` are the whole interface of a fresh clone; see README.md.
.DEFAULT_GOAL := help
PY := .venv/bin/python

.PHONY: help
help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

.venv/.synced: pyproject.toml uv.lock tools/venv.sh
	@tools/venv.sh

.PHONY: venv
venv: .venv/.synced

.PHONY: docs
docs: venv ## the pages of docs that are generated from the code
	@$(PY) -m tools.docs

.PHONY: docs-check
docs-check: venv ## fails if a generated page is not current
	@$(PY) -m tools.docs --check

.PHONY: site
site: venv ## the site of docs, with every link checked, into build/site
	@UV_PROJECT_ENVIRONMENT=build/site-venv .venv/bin/uv sync --quiet --frozen --only-group docs
	@NO_MKDOCS_2_WARNING=1 build/site-venv/bin/mkdocs build --strict --quiet

.PHONY: prose
prose: ## README and docs by the rules of tools/docs/prose: sentences of 40 words at most, terms (needs Node.js)
	@mkdir -p build/prose && cp tools/docs/prose/*.json build/prose && npm install --prefix build/prose --no-package-lock --silent
	@cd build/prose && npx textlint --config warnings.json --format unix ../../README.md "../../docs/**/*.md" | tail -n 1
	@cd build/prose && npx textlint --config errors.json ../../README.md "../../docs/**/*.md"

.PHONY: check
check: venv docs-check ## format, lint, types, workflows, generated pages
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@tools/actionlint.sh

.PHONY: test-deps
test-deps: ## Open MPI, a compiler and a browser for the tests, where root and apt are there
	@tools/test_deps.sh

# Tests start hundreds of Python processes. Where no bytecode may be written, each of them compiles all that it imports.
# No test draws from the module `random` itself: to seed it three times for each is a fiftieth of the time. For fast
# tests the same holds of pytest's look at all five hundred loggers, six times for each; warnings are on standard error.
TESTS := env -u PYTHONDONTWRITEBYTECODE $(PY) -m pytest --randomly-dont-reset-seed

# Tests that start the engine, train, run a job's ranks or take seconds for another reason; all others share the cores.
SLOW := engine or training or ranks or editor or tools

CORES := $(shell getconf _NPROCESSORS_ONLN)
# Tests wait for processes that they start: two more than cores.
WORKERS := $(shell echo $$(($(CORES) + 2)))
# Slow tests wait for processes of their own a fifth of their time: one more of them than cores. Some take gigabytes:
# at most four at once.
SLOW_WORKERS := $(shell echo $$(($(CORES) < 4 ? $(CORES) + 1 : 4)))

.PHONY: test
test: test-fast test-slow ## everything the tests need, then all tests

.PHONY: test-fast
test-fast: venv test-deps ## tests without engine, training, ranks or what else takes seconds, several at once
	@$(TESTS) --processes $(WORKERS) -p no:logging -m "not ($(SLOW))"

.PHONY: test-slow
test-slow: venv test-deps ## tests with the engine, with training or with ranks, a file at a time in each process
	@$(TESTS) -n $(SLOW_WORKERS) --dist loadfile --no-loadscope-reorder -m "$(SLOW)"

.PHONY: coverage
coverage: venv test-deps ## lines and branches that the fast tests run: a table, and build/coverage/index.html (no gate)
	@$(PY) -m pytest -n $(WORKERS) -m "not ($(SLOW))" --cov --cov-report=term:skip-covered --cov-report=html

.PHONY: failures
failures: venv test-deps ## every failure of docs/reference/diagnose.md rehearsed with 20 seeds, its culprit named (minutes)
	@FAILURE_SEEDS=20 $(PY) -m pytest -n $(WORKERS) tests/runner/test_diagnose_names_the_broken_rank.py

.PHONY: diagnose-forms
diagnose-forms: venv test-deps ## every kept log behind every prefix and broken at every width, the same answer (minutes)
	@ALL_FORMS=1 $(PY) -m pytest -q tests/diagnose/test_prefixes_and_wraps_change_no_answer.py

.PHONY: without-openmpi
without-openmpi: venv ## the guide's examples with an empty HOME and no Open MPI, EXAMPLES="…" for some (tens of minutes)
	@$(PY) tools/without_openmpi.py $(EXAMPLES)

.PHONY: guide-jobs
guide-jobs: venv test-deps ## all examples submitted, streamed and downloaded by azure-ai-ml, EXAMPLES="…" for some (tens of minutes)
	@EXAMPLES="$(or $(EXAMPLES),all)" $(PY) -m pytest tests/sandbox/test_azure_ai_ml_runs_the_examples.py

.PHONY: slurm-examples
slurm-examples: venv test-deps ## all examples here and on a real Slurm of two nodes: the same ranks, ends and losses (tens of minutes)
	@EXAMPLES=all $(PY) -m pytest tests/cli/test_examples_train_alike_on_slurm.py

.PHONY: kills
kills: venv ## 20 rounds of kill -9 of engine, provider and sandbox at random moments, each with its seed (minutes)
	@KILL_ROUNDS=20 $(PY) -m pytest -s tests/stack/test_kills_at_random_moments.py

.PHONY: prove
prove: venv ## `amlstack prove` against a sandbox changed in thirty ways: each is named, none leaves a resource (ten minutes)
	@PROVE_CHANGES=all $(PY) -m pytest tests/prove

.PHONY: recordings
recordings: venv ## recordings of Azure against the sandbox: what is equal, what differs (docs/maintain/recordings.md), ONLY="…" for some (minutes)
	@$(PY) -m tests.support.recordings play $(if $(ONLY),--only "$(ONLY)") $(if $(WRITE),--write)

.PHONY: microsoft-tests
microsoft-tests: venv ## Microsoft's end-to-end tests of azure-ai-ml against a sandbox, FOLDERS="…" for some, CONFIGS=FOLDER (docs/maintain/microsoft-tests.md)
	@$(PY) -m tests.support.microsoft --configs "$(CONFIGS)" $(addsuffix /e2etests,$(FOLDERS))

.PHONY: microsoft-examples
microsoft-examples: venv ## the notebooks of a clone of azureml-examples, EXAMPLES=FOLDER, against a sandbox, ONLY="…" for some (tens of minutes)
	@$(PY) -m tests.support.microsoft.examples "$(EXAMPLES)" --only "$(ONLY)"

.PHONY: clients
clients: venv ## 64 clients submit, poll and cancel for two minutes while the sandbox's server is killed 20 times
	@CLIENTS=64 CLIENT_KILLS=20 CLIENT_SECONDS=120 $(PY) -m pytest -s tests/sandbox/test_many_clients_and_a_killed_server.py

.PHONY: faults
faults: venv ## every operation of the provider, then every resource of a stack, under every fault: fails where tests/support/provider/faults.md says otherwise (minutes)
	@GRPC_VERBOSITY=ERROR $(PY) -m tests.support.provider.fault_table
	@GRPC_VERBOSITY=ERROR $(PY) -m tests.support.stack.infrastructure_fault_table

.PHONY: interruptions
interruptions: venv ## Ctrl-C in each request of the provider and at each step of `amlstack up`: tables with seconds, 3 at most (docs/maintain/faults.md; minutes)
	@GRPC_VERBOSITY=ERROR $(PY) -m tests.support.provider.interruption_table
	@GRPC_VERBOSITY=ERROR $(PY) -m tests.support.stack.interruption_table

.PHONY: garbage
garbage: venv ## 10,000 generated bad job files and settings, none of which may end in a traceback (minutes)
	@GARBAGE_FILES=10000 $(PY) -m pytest tests/infra/test_generated_bad_files.py

.PHONY: mutants
mutants: venv ## breaks each promise of the docs in a copy of the tree: the test named for it has to fail, MUTANTS="…" for some (minutes)
	@$(PY) -m tests.support.mutants $(MUTANTS)

.PHONY: bench
bench: venv ## benchmarks, each beside what it is compared with (docs/maintain/benchmarks.md), 15 min; QUICK=1: two; FULL=1: 30
	@$(PY) tools/bench $(if $(QUICK),--quick) $(if $(FULL),--full)

.PHONY: pack
pack: venv ## the policy pack as one archive with its checksum (CONFIG=FILE builds a configuration in)
	@$(PY) -m policies.pack.archive $(if $(CONFIG),--config $(CONFIG))

# With bytecode also where the shell forbids it: five interpreters would compile a thousand modules at every `up`.
.PHONY: up
up: venv ## everything from a fresh clone, then `pulumi up` of the sandbox stack and its training job (YES=1 asks nothing)
	@env -u PYTHONDONTWRITEBYTECODE .venv/bin/amlstack up $(if $(YES),--yes)

.PHONY: down
down: ## destroys the sandbox stack; leaves no process and no file behind but the caches (YES=1 asks nothing)
	@if [ -x .venv/bin/amlstack ]; then .venv/bin/amlstack down $(if $(YES),--yes); fi
