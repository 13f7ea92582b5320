"""CREATE: the stages that make the data, whatever the source: benchmark, answers, judgements, traces,
baselines."""

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, islice

import numpy as np
import pandas as pd

import compendium.asking.study
from compendium.asking.reasoning import tell
from compendium.asking.results import Reply
from compendium.frame.archive import Archive
from compendium.frame.paths import from_root
from compendium.studies.create.answers import PATH_COLUMNS, QUERY_COLUMNS, path_strength, query_row
from compendium.studies.create.ask import (
    baseline_items,
    baseline_requests,
    follow_ups,
    generation_requests,
    judge_requests,
    trace_requests,
    writing_requests,
)
from compendium.studies.create.errors import CreateError
from compendium.studies.create.graph import (
    DEFAULT_GRAPH,
    DEFAULT_RELATIONS,
    build_queries,
    classes,
    load_store,
)
from compendium.studies.create.judging import read_class_sizes, read_factuality, read_trace, specificity
from compendium.studies.create.paths import Query, fault, parse_answer, path_key, path_text
from compendium.studies.create.stack import answer_files, load_stack
from compendium.studies.create.tables import read_csv_frame

JUDGEMENT_COLUMNS = ["path", "triple", "head", "relation", "tail", "factual", "size", "specificity"]
PATHS_EXPECTED = 15  # an answer, for the estimate of a live run: what the released answers hold
READERS = {"factuality": read_factuality, "specificity": read_class_sizes}


@dataclass
class Stage:
    """What a stage made: `paths` (columns PATH_COLUMNS), `queries` (QUERY_COLUMNS, one row a source and
    query), `traces` {(source, query): text}, `report` (None for an archive), `problems` (sentences), `left_out`
    {(source, reason): how often} (of an archive)."""

    paths: pd.DataFrame
    queries: pd.DataFrame
    traces: dict = field(default_factory=dict)
    report: object = None
    problems: list = field(default_factory=list)
    left_out: dict = field(default_factory=dict)


def build_benchmark(p, ask=None) -> tuple[list, list, object]:
    """(queries, source paths, store) made from the graph that `p.graph` names ("" for the shipped one).

    `p` holds graph, graph_labels, n_queries, benchmark (class_size, both_ends, per_class, least_chains,
    uninformative), query_writer, seed. `ask`: as `asking` yields it; None writes the queries by template. A text
    that a model writes must not name the entity it hides: where it does, the template's is kept.
    """
    store = open_store(p)
    drawn = draw_queries(p, store)
    queries = [query for query, _ in drawn]
    if ask is not None and p.query_writer:
        result = ask(writing_requests(drawn, store, model=p.query_writer, seed=p.seed), "writing queries")
        for place, (reply, (query, made_from)) in enumerate(zip(result.replies, drawn, strict=True)):
            if reply.valid and made_from.second[0].lower() not in reply.text.lower():
                queries[place] = replace(query, text=reply.text.strip())
    return queries, [made_from for _, made_from in drawn], store


def open_store(p):
    """The graph that `p.graph` names, its ids labelled by `p.graph_labels`, its facts told from both ends (so that
    a chain may pass through a team or a film); the shipped one where it is ""."""
    if not p.graph:
        return load_store(DEFAULT_GRAPH, DEFAULT_RELATIONS)
    labels = from_root(p.graph_labels) if p.graph_labels else None
    return load_store(from_root(p.graph), labels=labels).told_from_both_ends()


def draw_queries(p, store) -> list:
    """[(Query, SourcePath)] of the benchmark, their texts by template (`p` as in `build_benchmark`)."""
    options = dict(p.benchmark)
    smallest, largest = options.pop("class_size")
    found = classes(store, smallest=smallest, largest=largest, both_ends=options.pop("both_ends"))
    return build_queries(store, found, p.n_queries, np.random.default_rng(p.seed), **options)


def load_archive(mirror: str = "", answers=("released",)) -> Stage:
    """Answers from files, stacked (`create_stack`): `answers` lists what to read, "released" for the authors'
    files, else a file, a folder or a pattern (`mine/*.jsonl`) of the same kind. The source of a path is its file's name.

    Raises CreateError where `answers` lists nothing, or what cannot be read.
    """
    answers = [answers] if isinstance(answers, str) else list(answers)
    if not answers:
        raise CreateError(
            "answers in params/create.yaml lists nothing; it should list released, files or folders"
        )
    archive = Archive("create", mirror or None) if "released" in answers else None
    files, problems = [], []
    for name in answers:
        if name == "released":
            files += [archive.path(pinned) for pinned in archive.files("data/")]
            problems += [
                f"{name} lies in the mirror but is not pinned: not read; `answers` in params/create.yaml "
                "can name it"
                for name in archive.extra()
            ]
        else:
            files += answer_files(name)
    paths, queries, found, left_out = load_stack(files)
    return Stage(paths, queries, problems=problems + found, left_out=left_out)


def generate(p, queries, ask) -> Stage:
    """Ask every subject for paths, in every prompt variation `p.runs` names; the second turn of `iterate`
    follows the first, and its paths join the first answer's, as those of a resample join.

    `p` holds subjects, runs, n_resamples, seed. A reply that cannot be read gives no paths and one problem.
    """
    requests = generation_requests(queries, p.subjects, p.runs, seed=p.seed, n_resamples=p.n_resamples)
    first = ask(requests, "generating")
    replies = list(first.replies)
    second = follow_ups(requests, replies, queries, p.subjects, seed=p.seed)
    more = ask(second, "iterating").replies if second else ()
    by_index = {query.index: query for query in queries}
    answers, traces, problems = {}, {}, []
    for request, reply in zip([*requests, *second], [*replies, *more], strict=True):
        name = source_name(request.tag["source"], request.tag["variation"])
        key = (name, request.tag["query"])
        answer = parse_answer(reply.text if reply.valid else reply.raw)
        problems += [f"{name}, query {key[1]}: {words}" for words in answer.problems]
        answers.setdefault(key, []).append((request.tag["sample"], answer.paths))
        trace = reply.reasoning or tell(reply.raw).reasoning
        if trace.strip() and request.tag["variation"] == "original":
            traces[key] = trace.strip()
    rows, asked = [], []
    for (name, number), samples in answers.items():
        query, made = by_index[number], _path_rows(name, by_index[number], samples)
        rows += made
        asked.append(query_row(name, query, len(made)))
    return Stage(
        pd.DataFrame(rows, columns=PATH_COLUMNS),
        pd.DataFrame(asked, columns=QUERY_COLUMNS),
        traces,
        first.report,
        problems,
    )


def judge(p, paths: pd.DataFrame, ask) -> tuple[pd.DataFrame, pd.DataFrame, list]:
    """(paths with their judgements, judgements by triple, reports): every distinct path is judged once.

    `p` holds judge, judging (max_tokens, retries_on_invalid, class_size_limits), seed. The second frame has
    one row a distinct path and triple: path, triple, head, relation, tail, factual, size, specificity. A
    judgement that is void leaves the path's scores missing, and the path counts for nothing. Of an answer with more
    than `judging: most_paths` valid paths the later ones are left out.
    """
    paths = _first_valid(paths, p.judging.get("most_paths"))
    distinct = _distinct(paths)
    requests = judge_requests(enumerate(distinct), p.judge, max_tokens=p.judging["max_tokens"], seed=p.seed)
    groups, found, reports = {}, {}, []
    for request in requests:  # how many judgements are asked for is part of what makes a reply valid
        groups.setdefault((request.tag["kind"], request.tag["n"]), []).append(request)
    for (kind, length), group in groups.items():
        result = ask(
            group,
            f"judging {kind}",
            parse=partial(READERS[kind], length=length),
            retries_on_invalid=p.judging["retries_on_invalid"],
        )
        reports.append(result.report)
        for request, reply in zip(group, result.replies, strict=True):
            found[request.tag["path"], kind] = np.array(
                reply.parsed if reply.valid else [np.nan] * length, dtype=float
            )
    rows, summary = [], {}
    for number, path in enumerate(distinct):
        facts, sizes = found[number, "factuality"], found[number, "specificity"]
        scores = specificity(sizes, p.judging["class_size_limits"])
        void = np.isnan(facts).any()
        summary[path] = (
            np.nan if void else float(facts.all()),
            np.nan if void else facts.mean(),
            np.nan if void else facts.sum(),
            *path_strength(scores),
        )
        rows += [
            (number, place, *triple, *values)
            for place, (triple, *values) in enumerate(zip(path, facts, sizes, scores))
        ]
    names = ["factual", "share_factual", "n_factual_triples", "strength", "weakest"]
    void = (np.nan,) * len(names)
    judged = paths.assign(
        **dict(
            zip(
                names,
                np.array([summary.get(path, void) for path in paths["triples"]], dtype=float)
                .reshape(-1, len(names))
                .T,
            )
        )
    )
    return judged[PATH_COLUMNS], pd.DataFrame(rows, columns=JUDGEMENT_COLUMNS), reports


def explore(p, traces: dict, ask) -> pd.DataFrame:
    """Appendix J.4: what every reasoning trace names; columns source, query, entities, relations, triples
    (counts)."""
    requests = trace_requests(traces.items(), p.trace_reader, seed=p.seed)
    result = ask(requests, "reading traces", parse=read_trace)
    rows = []
    for request, reply in zip(requests, result.replies, strict=True):
        counts = [
            len(reply.parsed[name]) if reply.valid else np.nan
            for name in ("entities", "relations", "triples")
        ]
        rows.append([*request.tag["trace"], *counts])
    return pd.DataFrame(rows, columns=["source", "query", "entities", "relations", "triples"])


def baselines(p, ask) -> pd.DataFrame:
    """Replies to the three human creativity tests; columns source, test, item, sample, reply, answer (RAT
    only)."""
    requests = baseline_requests(p.subjects, seed=p.seed, n_aut=p.n_aut, n_dat=p.n_dat)
    result = ask(requests, "baselines")
    right = {", ".join(item["words"]): item["answer"] for item in baseline_items()["rat"]}
    rows = [
        [
            *(request.tag[name] for name in ("source", "test", "item", "sample")),
            reply.text,
            right.get(request.tag["item"], ""),
        ]
        for request, reply in zip(requests, result.replies, strict=True)
    ]
    return pd.DataFrame(rows, columns=["source", "test", "item", "sample", "reply", "answer"])


def planned(p, out) -> dict:
    """{stage: requests} of a live run, before anything is asked: stand-ins of typical length take the place of
    answers that the run's folder `out` does not hold yet (`PATHS_EXPECTED` paths of three triples each) and of
    reasoning traces."""
    store = open_store(p)
    drawn = draw_queries(p, store)
    queries = [query for query, _ in drawn]
    asked = generation_requests(queries, p.subjects, p.runs, seed=p.seed, n_resamples=p.n_resamples)
    lines = {query.index: made_from.triples for query, made_from in drawn}
    answers = [
        Reply(
            request.key,
            request,
            str(lines[request.tag["query"]]) * PATHS_EXPECTED,
            None,
            (),
            None,
            request.model,
        )
        for request in asked
    ]
    second = follow_ups(asked, answers, queries, p.subjects, seed=p.seed)
    expected = [
        (source_name(request.tag["source"], request.tag["variation"]), request.tag["query"])
        for request in [*dict.fromkeys(asked), *second]
    ]
    written = _written(out, set(expected))
    answered = set(zip(written["source"], written["query"]))
    most = p.judging.get("most_paths")
    paths = _distinct(_first_valid(written, most))
    unwritten = sum(key not in answered for key in expected) * min(PATHS_EXPECTED, most or PATHS_EXPECTED)
    for number, (first, *rest) in enumerate(islice(cycle(lines.values()), unwritten)):
        paths.append(((f"stand-in {number}", *first[1:]), *rest))
    traces = {
        request.tag["query"]: "word " * 1500 for request in asked if request.tag["variation"] == "original"
    }
    stages = {
        "writing queries": (
            writing_requests(drawn, store, model=p.query_writer, seed=p.seed) if p.query_writer else []
        ),
        "generating": asked,
        "iterating": second,
        "judging": judge_requests(enumerate(paths), p.judge, max_tokens=p.judging["max_tokens"], seed=p.seed),
        "reading traces": trace_requests(traces.items(), p.trace_reader, seed=p.seed),
        "baselines": baseline_requests(p.subjects, seed=p.seed, n_aut=p.n_aut, n_dat=p.n_dat),
    }
    return {stage: requests for stage, requests in stages.items() if requests}


def _first_valid(paths: pd.DataFrame, most) -> pd.DataFrame:
    """Paths without the valid ones that are not among the first `most` of their answer (None: all)."""
    if most is None or paths.empty:
        return paths
    valid = paths["valid"].astype(bool)
    place = paths[valid].groupby(["source", "query"], sort=False).cumcount()
    return paths.drop(index=place.index[place >= most]).reset_index(drop=True)


def _distinct(paths: pd.DataFrame) -> list:
    """The distinct valid paths of a table, in order."""
    return list(dict.fromkeys(path for path, valid in zip(paths["triples"], paths["valid"]) if valid))


def _written(out, expected: set) -> pd.DataFrame:
    """The answers' paths that an earlier run left in `out`, of the (source, query) pairs in `expected`."""
    place = from_root(out) / "create" / "paths.csv"
    if not place.is_file():
        return pd.DataFrame(columns=PATH_COLUMNS)
    known = read_csv_frame(place)
    return known[[key in expected for key in zip(known["source"], known["query"])]]


def source_name(subject: str, variation: str) -> str:
    """How a subject's answers to a prompt variation are called in every table."""
    return subject if variation == "original" else f"{subject} [{variation}]"


def _path_rows(name: str, query: Query, samples) -> list:
    """Rows of PATH_COLUMNS, not yet judged, of one source's answers to one query."""
    rows, seen = [], set()
    for sample, paths in sorted(samples, key=lambda entry: entry[0]):
        for number, path in enumerate(paths):
            words, key = fault(path, query), path_key(path)
            rows.append(
                [
                    name,
                    query.index,
                    sample,
                    number,
                    path,
                    not words,
                    words,
                    *(np.nan,) * 5,
                    len(path),
                    key in seen,
                    path_text(path),
                ]
            )
            seen.add(key)
    return rows


def asking(p, *, source: str, profile: str, out, ledger: str = "create"):
    """`compendium.asking.study.asking` for this study: every reply in ledgers/<ledger>.sqlite, within the profile's budget for
    all models that `p` names. Notebooks that may run side by side need ledgers of their own: one process writes
    a ledger at a time."""
    models = {subject["model"] for subject in getattr(p, "subjects", {}).values()}
    models |= {getattr(p, name, "") for name in ("judge", "query_writer", "trace_reader")} - {""} | {
        *getattr(p, "judges", ())
    }
    return compendium.asking.study.asking(
        "create", models, source=source, profile=profile, out=out, ledger=ledger
    )
