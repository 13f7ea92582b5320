"""Run the survey: python -m compendium.studies.stories.survey serve --texts texts.jsonl --db survey.sqlite, and export what came
in.
"""

import argparse
import sys

from compendium.studies.stories.data import read_texts
from compendium.studies.stories.survey.app import HOSTS, create_app, open_store


def main(arguments=None) -> int:
    """Serve the form, or export the sheet. Returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        store = open_store(options.db, getattr(options, "balanced", False))
        if options.command == "export":
            path = store.export(options.out)
            print(f"{len(store.sheet())} ratings in {path}")
            return 0
        count = store.add_texts(read_texts(options.texts)) if options.texts else None
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    import uvicorn

    print(f"{count or 'the same'} stories; http://{options.host}:{options.port}/", flush=True)
    uvicorn.run(
        create_app(store, tuple(dict.fromkeys([*HOSTS, options.host, *options.name]))),
        host=options.host,
        port=options.port,
        access_log=False,
        log_level="warning",
    )
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m compendium.studies.stories.survey", description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve the form")
    serve.add_argument(
        "--texts", help="stories to rate: texts.jsonl as notebooks/stories/01_generate writes it"
    )
    serve.add_argument(
        "--host", default="127.0.0.1", help="127.0.0.1: this machine alone; put TLS in front of it elsewhere"
    )
    serve.add_argument("--port", type=int, default=8765)
    serve.add_argument(
        "--name",
        action="append",
        default=[],
        help="a name that raters reach it by (survey.example.org); may be repeated",
    )
    serve.add_argument(
        "--balanced", action="store_true", help="pick at random among the stories with the fewest ratings"
    )
    export = commands.add_parser("export", help="write the ratings as .xlsx or .csv")
    export.add_argument("--out", required=True)
    for command in (serve, export):
        command.add_argument("--db", default="survey.sqlite", help="the survey's database")
    return parser


if __name__ == "__main__":
    sys.exit(main())
