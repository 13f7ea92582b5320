"""One rule a notebook, each read from the notebook's own metadata; then cells, verification and their page.

Options come through --config: profile (demo, released, live), study (all or one), smoke (0, 1), build (folder), data (one's
own: a folder),
shards (jobs that each of the first stages of a notebook that asks models is split into; 1: none of their own),
stages (how many of its stages are split, one after the other).
"""

import json
import os
import signal

from compendium.frame.archive import digest, sources
from compendium.frame.chain import check_params, notebooks, stamp
from compendium.frame.own_data import with_own
from compendium.frame.own_files import followed, state
from compendium.frame.params import is_small, profile_params, run_folder
from compendium.frame.paths import ROOT, STUDIES, below_root, shown

# the run is gone, or the terminal: stop the notebooks too (Snakemake ends after them)
signal.signal(signal.SIGHUP, lambda *_: os.killpg(os.getpgrp(), signal.SIGINT))

PROFILE = config.get("profile", "demo")
SMOKE = is_small(config.get("smoke", "0"))
FOLDER = run_folder(PROFILE, SMOKE, config.get("build", ""))
OUT = below_root(FOLDER)  # Snakemake runs in the project's root, whose own name may hold braces
BOOKS, _ = with_own(notebooks(config.get("study", "all"), PROFILE), config.get("data", ""))
SHOWN = [study for study in STUDIES if any(book.study == study for book in BOOKS)]
# what the report compares: not the studies of which the chapter across runs a few notebooks alone
WHOLE = SHOWN if config.get("study", "all") == "all" else [config["study"]]
SOURCE = profile_params(PROFILE)["source"]
MIRROR = os.environ.get("COMPENDIUM_MIRROR", "")
VALUES = {study: check_params(study, [b for b in BOOKS if b.study == study], PROFILE, SMOKE) for study in SHOWN}
SHARDS, STAGES = int(config.get("shards", 1)), int(config.get("stages", 1))
RUN = "python -SPE compendium/frame/warm_client.py"  # a fork of the warm parent
CELLS = {book.rule: OUT / "cells" / book.study / f"{book.name}.csv" for book in BOOKS}


def parameters_of(book):
    """Everything papermill hands to the notebook: the runner's own names, its needs, its params keys. As JSON, behind
    a function: of text Snakemake would take what stands in braces for a wildcard."""
    frame = {"profile": PROFILE, "out": shown(OUT), "source": SOURCE, "mirror": MIRROR,
             "cells": str(FOLDER / "cells" / book.study)}
    values = {
        **{name: frame[name] for name in frame if name in book.parameters},
        **dict.fromkeys(book.wants, ""),
        **{name: str(FOLDER / relative) for name, relative in book.needs.items()},
        **{name: str(path) for name, path in book.own.items()},
        **book.values(VALUES[book.study]),  # in the order of the params file: rosters keep theirs
    }
    return lambda wildcards: json.dumps(values)


def archive_of(book):
    """What is pinned of the archive that the notebook reads: another commit or file makes it stale."""
    read = SOURCE == "archive" and "mirror" in book.parameters and book.study in sources()
    return digest(book.study) if read else ""


def shards_of(book):
    """The folders of a notebook's shards, one a stage; none where it asks no models or is not split."""
    asks = SHARDS > 1 and SOURCE != "archive" and "source" in book.parameters
    return [OUT / "ledgers" / "shards" / book.rule / str(stage + 1) for stage in range(STAGES)] if asks else []


rule tables:
    input:
        OUT / "verification.csv",
        OUT / "verification.html",
        OUT / "cells.csv",


for book in BOOKS:
    before = [CELLS[b.rule] for b in BOOKS if b.study == book.study and b.name < book.name]

    rule:
        name:
            book.rule
        input:
            code=book.code_inputs(OUT),
            needs=book.inputs(OUT),
            # a notebook with the parameter `cells` reads those of the study's notebooks before it
            cells=before if "cells" in book.parameters else [],
            shards=[folder / "merged.done" for folder in shards_of(book)[-1:]],
        output:
            [below_root(path) for path in book.outputs(OUT)],
        params:
            values=parameters_of(book),
            archive=archive_of(book),
            own=state([*followed(book.study, book.values(VALUES[book.study])), *book.own.values()]),
            notebook=shown(book.path),
        message:
            f"{book.study}/{book.name}"
        shell:
            "exec {RUN} notebook -m compendium.frame.execute {params.notebook:q} {output[0]:q} {params.values:q}"


    for folder in shards_of(book):

        rule:
            name:
                f"{book.rule}_shard_{folder.name}"
            input:
                code=book.code_inputs(OUT),
                needs=book.inputs(OUT),
                before=[other / "merged.done" for other in shards_of(book) if int(other.name) < int(folder.name)][-1:],
            output:
                folder / f"{{shard}}-of-{SHARDS}.done",
            params:
                values=parameters_of(book),
                notebook=shown(book.path),
                folder=str(folder),
            message:
                f"{book.study}/{book.name}, stage {folder.name}, shard {{wildcards.shard}} of {SHARDS}"
            shell:
                f"python -m compendium.asking.shards ask {{params.notebook:q}} {{params.values:q}} {{params.folder:q}} {{wildcards.shard}}/{SHARDS}"

        rule:
            name:
                f"{book.rule}_merge_{folder.name}"
            input:
                [folder / f"{i}-of-{SHARDS}.done" for i in range(SHARDS)],
            output:
                folder / "merged.done",
            params:
                folder=str(folder),
            message:
                f"{book.study}/{book.name}, stage {folder.name}, {SHARDS} shards merged"
            shell:
                "python -m compendium.asking.shards merge {params.folder:q}"


rule verify:
    input:
        cells=list(CELLS.values()),
        published=[path for study in WHOLE if os.path.exists(ROOT / (path := f"data/published/{study}.csv"))],
        findings=[path for name in (*(f"{study}_findings" for study in WHOLE), "held")
                  if os.path.exists(ROOT / (path := f"data/published/{name}.yaml"))],
        page="compendium/frame/static/verification.js",
        code=stamp(OUT, "verify"),
    output:
        OUT / "cells.csv",
        OUT / "derived.csv",
        OUT / "moved.csv",
        OUT / "verification.csv",
        OUT / "unprinted.csv",
        OUT / "independent.csv",
        OUT / "verification.html",
    params:
        profile=PROFILE,
        studies=",".join(WHOLE),
        out=str(OUT),
    message:
        "verification"
    shell:
        "exec {RUN} verify -m compendium.frame.verify {params.profile} {params.studies} {params.out:q} {input.cells:q}"
