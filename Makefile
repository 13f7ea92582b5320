# make tables [PROFILE=demo|released|live] [STUDY=all|alienbench|…] [SMOKE=1]   regenerate every table
# make tables STUDY=… DATA=folder             with data of your own in the place of what models are asked for (docs/live.md)
# make archives [STUDY=…]                                                        fetch the authors' archives ahead
# make test                                                                      set up and run all tests
# make lab                                                                       JupyterLab
# PYTHON=…/bin/python uses an environment of your own (conda: environment.yml) instead of .venv.

PROFILE ?= demo
STUDY   ?= all
SMOKE   ?= 0
CORES   ?=
# The torch that setup tries first; any torch from 2.2 on serves (TORCH=torch takes the newest).
TORCH   ?= torch==2.13.0
BASE    ?= python3
VENV    := .venv
# Every command runs this checkout's code, also with an environment that carries another's.
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))
export COMPENDIUM_MIRROR COMPENDIUM_CACHE COMPENDIUM_REMOTE VERBOSE

ifdef PYTHON
READY :=
else
PYTHON := $(VENV)/bin/python
READY  := $(VENV)/.ready
endif

.PHONY: what-if watch tables archives test lab bench refresh live-estimate setup clean
.DEFAULT_GOAL := tables

tables: $(READY)
	@$(PYTHON) -m compendium --profile "$(PROFILE)" --study "$(STUDY)" --smoke "$(SMOKE)" --cores "$(CORES)" $(if $(DATA),--data "$(DATA)") $(if $(ACCEPT_MISSING),--accept-missing)

archives: $(READY)
	@$(PYTHON) -m compendium.frame.fetch "$(STUDY)"

test: $(READY)
	@$(PYTHON) -m pytest $(OPTIONS)

lab: $(READY)
	@$(PYTHON) -m compendium.frame.lab

bench: $(READY)
	@for bench in tests/bench/bench_*.py; do echo "== $$bench"; $(PYTHON) $$bench || exit 1; done

# The small chain under other floating-point kernels, threads, hash seeds, locales and time zones: the same bytes?
.PHONY: portable
portable: $(READY)
	@$(PYTHON) -m tests.chain.portable "$(STUDY)"

# Execute the committed notebooks with their defaults and store the outputs that `make test` compares.
refresh: $(READY)
	@$(PYTHON) -m compendium.frame.refresh $(NOTEBOOKS)

# What an edit of one function could move: make what-if FUNCTION=lib.ranks.spearman [PROFILE=…]
what-if: $(READY)
	@$(PYTHON) -m compendium.reader.what_if "$(FUNCTION)" --profile "$(PROFILE)"

# Run the chain again at each save of code, notebooks, params or data: make watch STUDY=…
watch: $(READY)
	@$(PYTHON) -m compendium.frame.watch --profile "$(PROFILE)" --study "$(STUDY)" --smoke "$(SMOKE)" --cores "$(CORES)"

live-estimate: $(READY)
	@$(PYTHON) -m compendium.asking.live --study "$(STUDY)" --smoke "$(SMOKE)"

setup: $(READY)

PIP := PYTHONPATH= $(VENV)/bin/python -m pip
$(VENV)/.ready: pyproject.toml requirements.lock
	@$(BASE) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, $(BASE) is " + sys.version.split()[0] + "; name another: make BASE=python3.12")'
	$(BASE) -m venv $(VENV)
	$(VENV)/bin/python -c "import torch" 2>/dev/null \
	  || $(PIP) install --quiet "$(TORCH)" \
	  || $(PIP) install --quiet "torch>=2.2"
	$(PIP) install --quiet --requirement requirements.lock
	$(PIP) install --quiet --no-deps --editable .
	@$(VENV)/bin/python -m compendium.frame.clean install
	@touch $@

# Ledgers hold replies that were paid for: those of the demo alone go, as its models are simulated.
clean:
	@if [ -d build ]; then \
	  find build ! -type d ! \( -path '*/ledgers/*' ! -path 'build/demo*' ! -path 'build/lab/*' \) -delete; \
	  find build -depth -type d -empty -delete; fi
	rm -rf figures/demo figures/released figures/live figures/*-smoke .snakemake

# Replies are property: make replies EXPORT=replies.jsonl (Parquet beside it, with pyarrow), make replies IMPORT=replies.jsonl;
# make spent [KNOWN=dollars, as the providers billed]. PROFILE=live unless another is named.
ASKED = $(if $(filter command line environment,$(origin PROFILE)),$(PROFILE),live)

.PHONY: replies spent
replies: $(READY)
	@$(PYTHON) -m compendium.asking.property $(if $(IMPORT),import "$(IMPORT)",export "$(EXPORT)") --profile "$(ASKED)" --smoke "$(SMOKE)"

spent: $(READY)
	@$(PYTHON) -m compendium.asking.property spent --profile "$(ASKED)" --known "$(KNOWN)"

# The reader's house: a site and a certificate of a finished run; the chain on a cluster (CLUSTER=slurm or
# cluster-generic; profiles/shards.yaml says into how many jobs large stages are split).
CLUSTER ?= slurm
JOBS    ?= 200

.PHONY: book certificate verify-certificate tables-cluster
book: $(READY)
	@$(PYTHON) -m compendium.reader.book --profile "$(PROFILE)" --smoke "$(SMOKE)"

certificate: $(READY)
	@$(PYTHON) -m compendium.reader.certificate write --profile "$(PROFILE)" --smoke "$(SMOKE)" --checker "$(CHECKER)"

verify-certificate: $(READY)
	@$(PYTHON) -m compendium.reader.certificate verify "$(FILE)" --cores "$(CORES)"

tables-cluster: $(READY)
	@$(PYTHON) -m compendium --profile "$(PROFILE)" --study "$(STUDY)" --smoke "$(SMOKE)" --cores "$(JOBS)" -- --profile "profiles/$(CLUSTER)" --configfile profiles/shards.yaml
