"""A certificate as a page, as a PDF where a browser is at hand, and as an RO-Crate."""
# Tested by tests/compendium/reader/certificate/test_certificate.py.

import html
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from rocrate.model.contextentity import ContextEntity
from rocrate.model.softwareapplication import SoftwareApplication
from rocrate.rocrate import ROCrate

from compendium.frame.files import atomic_write
from compendium.frame.verdict import OUTCOMES

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
TYPES = {
    ".csv": "text/csv",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".html": "text/html",
    ".tex": "application/x-tex",
    ".yml": "application/yaml",
    ".pdf": "application/pdf",
}
PROCESS_RUN = "https://w3id.org/ro/wfrun/process/0.5"


def page(facts: dict) -> str:
    """The certificate as one self-contained page (also what the PDF is printed from)."""
    code, environment = facts["code"], facts["environment"]
    packages = ", ".join(f"{_esc(name)} {_esc(version)}" for name, version in environment["packages"].items())
    sections = {
        "The run": _pairs(_of_the_run(facts)),
        "Verdicts on the printed numbers": _grid(
            ["Study", "printed", *OUTCOMES],
            [[study, *counts.values()] for study, counts in facts["verdicts"].items()],
        ),
        "Code": _pairs({**code, "files": f"{len(code['files'])}, each with its hash in codecheck.yml"}),
        "Archives": _grid(
            ["Archive", "Repository", "Commit", "Files", "SHA-256 over all"],
            [
                [
                    each["archive"],
                    ", ".join(each["repository"]),
                    ", ".join(each["commit"]),
                    each["files"],
                    each["sha256"],
                ]
                for each in facts["archives"]
            ],
        )
        if facts["archives"]
        else "<p>None: this profile reads no archive.</p>",
        "Ledgers": _grid(
            ["Ledger", "Replies", "SHA-256 of what was asked and answered"],
            [list(each.values()) for each in facts["ledgers"]],
        )
        if facts["ledgers"]
        else "<p>None: no model was asked.</p>",
        "Machine and environment": _pairs({**facts["machine"], "python": environment["python"]})
        + f"<p class='packages'>{packages}</p>",
        f"Manifest: {len(facts['manifest'])} exhibits": _grid(
            ["File", "What it is", "SHA-256"],
            [[each["file"], each["comment"], each["sha256"]] for each in facts["manifest"]],
        ),
    }
    body = "".join(f"<section><h2>{_esc(title)}</h2>{text}</section>" for title, text in sections.items())
    return PAGE.format(title=_esc(facts["paper"]["title"]), summary=_esc(facts["summary"]), body=body)


def _of_the_run(facts: dict) -> dict:
    run = facts["run"]
    signed = ", ".join(f"{who['name']} {who.get('ORCID', '')}" for who in facts["codechecker"])
    return {
        "Profile": run["profile"] + (" (small N)" if run["smoke"] else ""),
        "Studies": ", ".join(
            f"{study} ({count['executed']} of {count['notebooks']} notebooks)"
            for study, count in run["coverage"].items()
        ),
        "Ran": f"{run['started']} to {run['ended']}",
        "Notebooks": f"{run['notebooks']}, {run['notebook_seconds']} s in all",
        "Checked by": signed or "nobody has signed this certificate",
    }


def pdf(source: Path, target: Path) -> bool:
    """Print the page to a PDF with a Chromium, where there is one; whether it was written."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return False
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={profile}",
            "--no-pdf-header-footer",
            f"--print-to-pdf={target}",
            source.resolve().as_uri(),
        ]
        try:
            subprocess.run(command, check=True, timeout=120, capture_output=True)
        except (OSError, subprocess.SubprocessError):
            return False
    return target.is_file()


def crate(folder: Path, facts: dict, target: Path) -> Path:
    """The folder as an RO-Crate (Process Run Crate): its description is written into it, and all of it to a
    zip.
    """
    described = _described(folder, facts)
    described.metadata.write(folder)
    with (
        atomic_write(target, suffix=".zip") as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(folder).as_posix())
    return target


def _described(folder: Path, facts: dict) -> ROCrate:
    crate, run = ROCrate(gen_preview=False), facts["run"]
    crate.name = f"Certificate of a run: {facts['paper']['title']} ({run['name']})"
    crate.description = facts["summary"]
    crate.license = "https://spdx.org/licenses/MIT"
    crate.datePublished = run["ended"]
    crate.root_dataset["conformsTo"] = _entity(
        crate, PROCESS_RUN, {"@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}
    )
    files = _add_files(crate, folder, facts["manifest"])
    software = crate.add(
        SoftwareApplication(
            crate,
            "#compendium",
            properties={
                "name": facts["paper"]["title"],
                "softwareVersion": facts["code"]["commit"],
                "softwareRequirements": f"Python {facts['environment']['python']}",
            },
        )
    )
    inputs = [
        crate.add_dataset(
            f"https://github.com/{each['repository'][0]}/tree/{each['commit'][0]}",
            properties={"name": f"released archive: {each['archive']}", "sha256": each["sha256"]},
        )
        for each in facts["archives"]
        if each["repository"] and each["commit"]
    ]
    action = _entity(
        crate,
        "#run",
        {
            "@type": "CreateAction",
            "name": f"make tables PROFILE={run['profile']}",
            "startTime": run["started"],
            "endTime": run["ended"],
            "actionStatus": "http://schema.org/CompletedActionStatus",
            "description": ", ".join(f"{name} {value}" for name, value in facts["machine"].items()),
        },
    )
    action["instrument"], action["object"], action["result"] = software, inputs, files
    crate.root_dataset["mentions"] = [action]
    for who in facts["codechecker"][:1]:
        place = f"https://orcid.org/{who['ORCID']}" if "ORCID" in who else "#checker"
        action["agent"] = _entity(crate, place, {"@type": "Person", "name": who["name"]})
    return crate


def _entity(crate: ROCrate, name: str, properties: dict):
    return crate.add(ContextEntity(crate, name, properties=properties))


def _add_files(crate: ROCrate, folder: Path, manifest) -> list:
    """Add the exhibits, and return them; add the certificate's own papers, those that were written."""
    files = [
        crate.add_file(
            folder / entry["file"],
            entry["file"],
            properties={
                "name": entry["comment"],
                "sha256": entry["sha256"],
                "contentSize": str(entry["bytes"]),
                "encodingFormat": TYPES.get(Path(entry["file"]).suffix, "application/octet-stream"),
            },
        )
        for entry in manifest
    ]
    papers = {
        "codecheck.yml": "the certificate",
        "certificate.html": "the certificate as a page",
        "certificate.pdf": "the certificate as a PDF",
    }
    for name, words in papers.items():
        if (folder / name).is_file():
            properties = {"name": words, "encodingFormat": TYPES[Path(name).suffix]}
            crate.add_file(folder / name, name, properties=properties)
    return files


def _pairs(pairs: dict) -> str:
    return (
        "<table>"
        + "".join(
            f"<tr><th>{_esc(str(name).replace('_', ' '))}</th><td>{_esc(value)}</td></tr>"
            for name, value in pairs.items()
            if value is not None
        )
        + "</table>"
    )


def _grid(head, rows) -> str:
    return (
        "<table class='grid'><thead><tr>"
        + "".join(f"<th>{_esc(name)}</th>" for name in head)
        + "</tr></thead><tbody>"
        + "".join("<tr>" + "".join(f"<td>{_esc(value)}</td>" for value in row) + "</tr>" for row in rows)
        + "</tbody></table>"
    )


def _esc(text) -> str:
    return html.escape(str(text))


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>Certificate</title><style>
:root{{--ink:#1b1f24;--paper:#fff;--line:#dfe3e8;--accent:#2e8b62}}
@media screen and (prefers-color-scheme:dark){{
:root{{--ink:#e6e8eb;--paper:#14171b;--line:#333a42;--accent:#57b98a}}}}
body{{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:62rem;margin:0 auto;padding:1.5rem}}
header{{border:2px solid var(--accent);border-radius:10px;padding:1rem 1.4rem}}h1{{margin:0;font-size:1.5rem}}
h2{{font-size:1.1rem;margin:1.6rem 0 .4rem}}section{{overflow-x:auto}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}
th,td{{text-align:left;padding:.25rem .7rem .25rem 0;vertical-align:top;border-bottom:1px solid var(--line);
overflow-wrap:anywhere}}th{{font-weight:600;white-space:nowrap}}
.grid{{font-size:.85rem;width:100%}}.packages{{font-size:.8rem}}
@media print{{body{{max-width:none;padding:0;font-size:10px}}.grid{{font-size:8px}}}}
</style></head><body><header><h1>Certificate of a run</h1><p>{title}</p><p><b>{summary}</b></p></header>
{body}</body></html>
"""
