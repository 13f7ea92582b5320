"""From a run to a site: write the pages' sources, let Sphinx with MyST-NB turn them into HTML."""

import hashlib
import io
import os
import re
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from compendium.frame.files import write_text_atomic
from compendium.frame.paths import ROOT
from compendium.frame.report import SCRIPT
from compendium.frame.verdict import stylesheet
from compendium.reader.book import pages
from compendium.reader.book.api import Library
from compendium.reader.book.gather import Run
from compendium.reader.book.notebooks import Links, notebook_page, notebook_source
from compendium.reader.book.numbers import (
    Numbers,
    exhibit_page,
    exhibit_source,
    verification_script,
    verification_source,
)
from compendium.reader.book.quick import TEMPLATES
from compendium.reader.book.reference import index_source, module_source

STATIC = Path(__file__).parent / "static"


@dataclass
class Built:
    """A finished book: its first page, how many pages it has, and what Sphinx complained of."""

    index: Path
    pages: int
    warnings: list


def build(run: Run, library: Library | None = None) -> Built:
    """Build the book of `run` into <out>/book, whole or not at all; what the build remembers stays in
    <out>/.book.

    `library` (default: all of `lib`) is what the pages of the library show. A second build parses again
    only the pages whose source changed.
    """
    work, target = run.out / ".book", run.out / "book"
    if not (work / "stamp").is_file() or (work / "stamp").read_text(encoding="utf-8") != _stamp():
        shutil.rmtree(work, ignore_errors=True)  # Sphinx watches the sources, not the code that renders them
    write_sources(run, work / "source", library or Library())
    (work / "html").mkdir(parents=True, exist_ok=True)
    said = _sphinx(work / "source", work / "html", work / "doctrees", f"Compendium ({run.profile})")
    write_text_atomic(work / "stamp", _stamp())
    for folder in (work / "new", work / "old"):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(work / "html", work / "new", ignore=shutil.ignore_patterns(".buildinfo*"))
    if target.exists():
        target.rename(work / "old")
    (work / "new").rename(target)
    shutil.rmtree(work / "old", ignore_errors=True)
    return Built(target / "index.html", sum(1 for _ in target.rglob("*.html")), said)


def write_sources(run: Run, source: Path, library: Library) -> None:
    """Write every page's source below `source`, and remove what no longer belongs there."""
    files = Sources(run, library).files()
    kept = set()
    for name, content in files.items():
        path = source / name
        kept.add(path)
        if isinstance(content, Path):
            if not path.is_file() or path.read_bytes() != content.read_bytes():
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(content, path)
        elif (
            not path.is_file() or path.read_text(encoding="utf-8") != content
        ):  # untouched pages are not built again
            write_text_atomic(path, content)
    for path in [path for path in source.rglob("*") if path.is_file() and path not in kept]:
        path.unlink()


class Sources:
    """All sources of one book."""

    def __init__(self, run: Run, library: Library):
        self.run, self.library = run, library
        self.numbers = Numbers(run, self.library)
        prose = pages.prose_files()
        self.links = Links(
            [
                *(notebook_page(book) for book in run.notebooks.values()),
                *(f"{page}.html" for page in prose),
                *(f"{module.page}.html" for module in self._listed()),
            ]
        )

    def files(self) -> dict:
        """{path below the source folder: text, or the file to copy}."""
        notebooks = {
            f"notebooks/{book.key}.ipynb": notebook_source(self.numbers, book, self.links)
            for book in self.run.notebooks.values()
        }
        prose = {
            page: pages.prose_source(page, path, self.links) for page, path in pages.prose_files().items()
        }
        titles = {page: pages.title_of(text) for page, text in prose.items()}
        files = {
            **notebooks,
            **{f"{page}.md": text for page, text in prose.items()},
            **self._exhibits(),
            **self._modules(),
            **self._studies(),
            "verification.md": verification_source(self.numbers),
            "exercises.md": pages.exercises_source(self.numbers),
            "ideas.md": pages.ideas_source(self.run.ideas()) + _toctree(self.run.ideas()),
            "index.md": pages.front_source(self.numbers, titles) + self._contents(list(titles)),
        }
        files |= {f"_extra/files/{name}": ROOT / name for name in sorted(self.links.files)}
        files |= {f"_static/{path.name}": path for path in sorted(STATIC.iterdir())}
        files["_static/numbers.js"] = verification_script(self.numbers)
        files["_static/verification.js"] = SCRIPT
        files["_static/verdicts.css"] = stylesheet()
        return files

    def _exhibits(self) -> dict:
        return {
            exhibit_page(study, exhibit).replace(".html", ".md"): "---\norphan: true\n---\n"
            + exhibit_source(self.numbers, study, exhibit)
            for study, exhibits in self.numbers.exhibits.items()
            for exhibit in exhibits
        }

    def _modules(self) -> dict:
        callers = {}
        for key, trace in self.numbers.traces.items():
            for cell in dict.fromkeys(step.cell for step in trace.steps):
                for name in trace.called_in(cell):
                    callers.setdefault(name, []).append((key, cell))
        files = {
            f"{module.page}.md": "---\norphan: true\n---\n" + module_source(self.numbers, module, callers)
            for module in self._listed()
        }
        files["api/overview.md"] = index_source(self.library, self.numbers)
        return files

    def _listed(self):
        return [module for module in self.library.modules.values() if module.functions]

    def _studies(self) -> dict:
        files = {}
        for study in self.run.studies:
            figure, shown = self.run.figure(study), None
            if figure:
                place = f"_static/figures/{study}/{figure[0].name}"
                files[place], shown = figure[0], (place, figure[1])
            source = pages.study_source(self.numbers, study, shown)
            files[f"studies/{study}.md"] = source + _toctree(self.run.books(study))
        return files

    def _contents(self, prose) -> str:
        """The side bar's table of contents."""
        front = [f"notebooks/{book.key}" for book in self.run.notebooks.values() if not book.study]
        parts = {
            "Start": ["verification", *front, "ideas", "exercises"],
            "Studies": [f"studies/{study}" for study in self.run.studies],
            "Library": ["api/overview"],
            "About": [f"The repository <{page}>" if page == "about/readme" else page for page in prose],
        }
        return "\n".join(
            f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(entries) + "\n```\n"
            for caption, entries in parts.items()
            if entries
        )


def _toctree(books) -> str:
    """A page's own contents for the side bar: these notebooks."""
    inside = "\n".join(f"/notebooks/{book.key}" for book in books)
    return f"\n\n```{{toctree}}\n:hidden:\n\n{inside}\n```\n"


def _stamp() -> str:
    """What the pages follow from beside their sources: this package and the versions of its engines."""
    total = hashlib.sha256()
    for path in sorted(
        path for path in Path(__file__).parent.rglob("*") if path.suffix in (".py", ".css", ".js", ".html")
    ):
        total.update(path.read_bytes())
    versions = (f"{name} {metadata.version(name)}" for name in ("sphinx", "myst-nb", "sphinx-book-theme"))
    return f"{total.hexdigest()} {', '.join(versions)}"


def slug(title: str) -> str:
    """A heading's anchor as JupyterLab makes it, so that links inside notebooks go on working."""
    return title.strip().replace(" ", "-")


def configuration(title: str) -> dict:
    """Sphinx's configuration: nothing is executed, nothing is fetched, by the builder or by the reader."""
    return {
        "project": "Compendium",
        "html_title": title,
        "author": "",
        "language": "en",
        "extensions": ["myst_nb", "compendium.reader.book.mathml", "compendium.reader.book.quick"],
        "templates_path": [str(TEMPLATES)],
        "html_math_renderer": "mathml",
        "nb_execution_mode": "off",
        "nb_ipywidgets_js": {},
        "nb_merge_streams": True,
        "nb_code_prompt_show": "Show the code",
        "nb_code_prompt_hide": "Hide the code",
        "myst_enable_extensions": ["dollarmath", "amsmath"],
        "myst_heading_anchors": 4,
        "myst_heading_slug_func": "compendium.reader.book.site.slug",
        "myst_dmath_double_inline": True,
        "html_theme": "sphinx_book_theme",
        "html_static_path": ["_static"],
        "html_extra_path": ["_extra"],
        "html_css_files": ["verdicts.css", "book.css"],
        "html_js_files": ["search.js"],
        "html_context": {"default_mode": "auto"},
        "html_copy_source": True,
        "html_show_sphinx": False,
        "html_show_copyright": False,
        "exclude_patterns": ["_static", "_extra"],
        "suppress_warnings": [
            "mystnb.unknown_mime_type",
            "myst.header",
            "toc.not_included",
            "misc.highlighting_failure",
        ],
        "html_theme_options": {
            "show_navbar_depth": 1,
            "home_page_in_toc": True,
            "use_download_button": True,
            "use_fullscreen_button": False,
            "use_issues_button": False,
            "show_toc_level": 2,
            "search_bar_text": "Search the book",
            "navigation_with_keys": False,
            "use_sidenotes": False,
            "article_header_start": ["toggle-primary-sidebar.html"],
            "navbar_persistent": [],
            "back_to_top_button": False,
        },
        "html_sidebars": {"**": ["navbar-logo.html", "search-button-field.html", "contents.html"]},
    }


def _sphinx(source: Path, target: Path, doctrees: Path, title: str) -> list[str]:
    """Run Sphinx in this process; return its warnings, one a line. Raises what Sphinx raises."""
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    from sphinx.application import Sphinx  # slow to import: only the build needs it
    from sphinx.util.docutils import docutils_namespace

    (source / "_extra").mkdir(parents=True, exist_ok=True)
    warnings = io.StringIO()
    with docutils_namespace():
        app = Sphinx(
            str(source),
            None,
            str(target),
            str(doctrees),
            "html",
            confoverrides=configuration(title),
            status=None,
            warning=warnings,
            parallel=1,
        )
        app.build()
    return [re.sub(r"\x1b\[[\d;]*m", "", line) for line in warnings.getvalue().splitlines() if line.strip()]
