"""One pinned commit of a repository, fetched into the cache: `python -m compendium.frame.fetch [STUDY]`.

With git, one shallow fetch without file contents, then the files that are wanted, a chunk at a time; git names
every object by its content, so the commit's id vouches for all of it. Without git, the recorded files come singly
over HTTPS and are checked against their recorded blob ids. Files appear whole or not at all: a fetch that was
stopped goes on where it was. The cache (COMPENDIUM_CACHE, else the user's cache folder) serves every checkout;
a lock keeps two runs from fetching at once. COMPENDIUM_REMOTE takes the place of https://github.com.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import quote

from tqdm import tqdm

from compendium.frame.files import atomic_write, said, write_text_atomic
from compendium.frame.system import lock

CACHE_VARIABLE, REMOTE_VARIABLE = "COMPENDIUM_CACHE", "COMPENDIUM_REMOTE"
HOST = "https://github.com"
FILES, MANIFEST = "files", "manifest.json"
CHUNK = 64  # files a request: large enough for speed, small enough that a stop loses little
AT_ONCE = 8  # single files at a time, where there is no git
OPTIONS = (  # a server that says nothing for a minute is gone; the cache may be another user's
    *("-c", "http.lowSpeedLimit=100", "-c", "http.lowSpeedTime=60", "-c", "safe.directory=*"),
    *("-c", "gc.auto=0", "-c", "protocol.version=2", "-c", "fetch.negotiationAlgorithm=noop"),
)
GONE = re.compile(r"not our ref|unadvertised object|no such remote ref|couldn't find remote ref", re.I)
FULL = re.compile(r"no space left|quota exceeded|file too large", re.I)
UNREACHED = re.compile(
    r"could not resolve|failed to connect|couldn't connect|unable to access|timed out|no route", re.I
)


class ArchiveError(ValueError):
    """An archive file that is missing or not the pinned one; the message says how to supply it."""


def blob_id(content: bytes) -> str:
    """The id that git gives a file with this content (SHA-1 over a header and the bytes)."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def remote_url(repository: str) -> str:
    """Where a repository is fetched from: `owner/name` at COMPENDIUM_REMOTE or GitHub, a URL as it stands."""
    if "://" in repository:
        return repository
    return f"{(os.environ.get(REMOTE_VARIABLE) or HOST).rstrip('/')}/{repository}"


def shown_url(repository: str) -> str:
    """The same for a message: without scheme and without a user's name or password."""
    return re.sub(r"^[a-z+]+://(?:[^@/]*@)?(?=[^/])", "", remote_url(repository))


def cache_folder() -> Path:
    """The folder that all checkouts share: COMPENDIUM_CACHE, else `compendium` in the user's cache folder."""
    import platformdirs

    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("compendium")).absolute()


def place(name: str, commit: str) -> Path:
    """Where an archive's commit lies in the cache: its files below `files/`, and the manifest."""
    return cache_folder() / name / commit


def manifest(folder: Path) -> dict:
    """{path in the repository: git blob id} of what was fetched into `folder`; {} where nothing was to its end."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return {str(path): str(blob) for path, blob in content["files"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


@cache
def _git() -> str | None:
    return shutil.which("git")


def holds(repository: Path, commit: str) -> bool:
    """Whether the folder `repository` is a clone or a bare repository that holds the commit."""
    bare = (repository / "HEAD").is_file() and (repository / "objects").is_dir()
    if not _git() or not (bare or (repository / ".git").exists()):
        return False
    return not _run(["-C", str(repository), "cat-file", "-e", f"{commit}^{{commit}}"], check=False).returncode


def _run(arguments, *, check: bool = True, **options):
    # LC_ALL: its messages are read; a hook's GIT_DIR must not lead to another repository
    kept = {key: value for key, value in os.environ.items() if key not in _LEADING}
    environment = {**kept, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run([_git(), *OPTIONS, *arguments], capture_output=True, env=environment, **options)
    if check and done.returncode:
        raise _GitFailed(done.stderr.decode(errors="replace"))
    return done


_LEADING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")


class _GitFailed(Exception):
    """What git said."""


def fetched(name: str, remote: str, commit: str, folders, record: dict, repository: str) -> Path:
    """The folder in the cache that holds the `folders` of a commit, fetched from `remote` where it is not there.

    record: {path: (bytes, blob id)}; of a folder with recorded files those alone are fetched, else all it holds.
    Raises ArchiveError for whatever stops it, in one line: what was fetched is kept.
    """
    target = place(name, commit)
    wanted = {path: blob for path, (_, blob) in record.items()}
    if _complete(target, folders, wanted):
        return target
    try:
        with _locked(target, name):
            if not _complete(target, folders, wanted):
                _fetch(target, name, remote, commit, list(folders), wanted, repository)
    except _GitFailed as error:
        raise ArchiveError(f"{name}: {_why(str(error), commit, repository, target)}") from None
    except OSError as error:
        raise ArchiveError(f"{name}: {_no_place(error, target)}") from None
    return target


def _complete(target: Path, folders, wanted: dict) -> bool:
    try:
        content = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        return set(folders) <= set(content["folders"]) and wanted.items() <= manifest(target).items()
    except (OSError, ValueError, LookupError, TypeError):
        return False


@contextmanager
def _locked(target: Path, name: str):
    target.mkdir(parents=True, exist_ok=True)
    with open(target / ".lock", "w") as handle:
        try:
            lock(handle)
        except BlockingIOError:
            if sys.stderr.isatty():
                print(f"{name}: another run is fetching it: waiting.", file=sys.stderr)
            lock(handle, wait=True)
        yield


def _fetch(target, name, remote, commit, folders, record, repository) -> None:
    loose = [folder for folder in folders if not any(_within(path, folder) for path in record)]
    if _git():
        repo = _trees(target / "repo.git", remote, commit)
        listed = _listed(repo, commit, folders)
        for path, blob in record.items():
            if listed.get(path) != blob:
                raise ArchiveError(
                    f"{name}: commit {commit[:12]} holds {'another' if path in listed else 'no'} {path} than "
                    "data/blobs.csv records."
                )
        for folder in loose:
            if not any(_within(path, folder) for path in listed):
                raise ArchiveError(f"{name}: commit {commit[:12]} holds no {folder} (data/sources.csv).")
        wanted = {**record, **{p: b for p, b in listed.items() if any(_within(p, f) for f in loose)}}
    elif loose:
        raise ArchiveError(
            f"{name}: the files of {loose[0]} are not recorded one by one, so git is needed to fetch them and is "
            "not installed: install git."
        )
    else:
        wanted = record
    missing = {path: blob for path, blob in wanted.items() if not _there(target / FILES / path, blob)}
    with tqdm(
        total=len(wanted), initial=len(wanted) - len(missing), desc=name, unit="file", disable=None
    ) as bar:
        if _git():
            _blobs_by_git(target, repo, missing, bar, ask=repo == target / "repo.git")
        else:
            _blobs_singly(target, repository, commit, missing, bar)
    write_text_atomic(
        target / MANIFEST, json.dumps({"commit": commit, "folders": sorted(folders), "files": wanted})
    )
    shutil.rmtree(target / "repo.git", ignore_errors=True)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _there(local: Path, blob: str) -> bool:
    return local.is_file() and blob_id(local.read_bytes()) == blob


def _trees(repo: Path, remote: str, commit: str) -> Path:
    """The repository to read the commit from: a local one as it stands, else `repo`, its trees fetched."""
    if "://" not in remote:
        return Path(remote)
    shutil.rmtree(
        repo, ignore_errors=True
    )  # of a run that was stopped: its files are kept, its locks are not
    _run(["init", "--quiet", "--bare", str(repo)])
    for key, value in (("url", remote), ("promisor", "true"), ("partialclonefilter", "blob:none")):
        _run(["-C", str(repo), "config", f"remote.origin.{key}", value])
    options = ("--quiet", "--no-tags", "--depth=1", "--filter=blob:none")
    _run(["-C", str(repo), "fetch", *options, "origin", commit])
    return repo


def _listed(repo: Path, commit: str, folders) -> dict:
    """{path: blob id} of what a commit's folders hold, links and submodules left out."""
    listed = _run(["-C", str(repo), "ls-tree", "-r", "-z", "--full-tree", commit, "--", *folders])
    entries = [entry.partition("\t")[::2] for entry in listed.stdout.decode().split("\0") if entry]
    return {path: about.split()[2] for about, path in entries if about.startswith("100")}


def _blobs_by_git(target: Path, repo: Path, missing: dict, bar, *, ask: bool) -> None:
    """Write the missing files, a chunk at a time; `ask` the remote for each chunk first."""
    paths = sorted(missing)
    for start in range(0, len(paths), CHUNK):
        chunk = paths[start : start + CHUNK]
        ids = "".join(f"{missing[path]}\n" for path in chunk).encode()
        if ask:
            options = ("--quiet", "--no-tags", "--filter=blob:none", "--stdin")
            _run(["-C", str(repo), "fetch", *options, "origin"], input=ids)
        content = _run(["-C", str(repo), "cat-file", "--batch"], input=ids).stdout
        for path in chunk:
            header, _, content = content.partition(b"\n")
            if not header.endswith(b" missing"):
                size = int(header.split()[2])
                body, content = content[:size], content[size + 1 :]
                _write(target, path, missing[path], body)
                bar.update()
            else:
                raise _GitFailed(f"fatal: the repository lacks {path} ({missing[path]})")


def _blobs_singly(target: Path, repository: str, commit: str, missing: dict, bar) -> None:
    """Write the missing files, each downloaded on its own: the way where there is no git."""
    import httpx

    with httpx.Client(follow_redirects=True, timeout=60) as client, ThreadPoolExecutor(AT_ONCE) as pool:

        def one(path):
            reply = client.get(f"{remote_url(repository)}/raw/{commit}/{quote(path)}")
            reply.raise_for_status()
            _write(target, path, missing[path], reply.content)
            bar.update()

        try:
            for made in [pool.submit(one, path) for path in sorted(missing)]:
                made.result()
        except httpx.HTTPStatusError as error:
            pool.shutdown(cancel_futures=True)
            where = f"{shown_url(repository)} at commit {commit[:12]}"
            raise ArchiveError(f"{target.parent.name}: {where}: HTTP {error.response.status_code}.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            pool.shutdown(cancel_futures=True)
            raise ArchiveError(
                f"{target.parent.name}: {shown_url(repository)} could not be reached ({type(error).__name__}); "
                "what came is kept."
            ) from None
        except (ArchiveError, OSError):
            pool.shutdown(cancel_futures=True)
            raise


def _write(target: Path, path: str, blob: str, content: bytes) -> None:
    found = blob_id(content)
    if found != blob:
        raise ArchiveError(
            f"{target.parent.name}/{path}: git blob id is {found[:12]}…, pinned is {blob[:12]}…: what was sent is "
            "not the pinned file."
        )
    with atomic_write(target / FILES / path) as temporary:
        temporary.write_bytes(content)


def _why(git_said: str, commit: str, repository: str, target: Path) -> str:
    """What git said, as one sentence."""
    lines = [re.sub(r"//[^/@\s]*@", "//", line).strip() for line in git_said.splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "")
    told = told.partition(":")[2].strip() or told
    where = shown_url(repository)
    if FULL.search(git_said):
        return _no_place(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), target)
    if GONE.search(git_said):
        return f"{where} no longer holds the commit {commit}."
    if UNREACHED.search(git_said):
        return f"{where} could not be reached ({told}); what came is kept."
    return f"the fetch from {where} stopped ({told}); what came is kept, and the same command goes on from there."


def _no_place(error: OSError, target: Path) -> str:
    named = OSError(error.errno, error.strerror, str(target))
    return (
        f"{said(named)}: the cache cannot be written; set {CACHE_VARIABLE} to a folder with room that can be (what "
        "was fetched is kept)."
    )


def main(study: str = "all") -> int:
    """Fetch the archives of a study (of all) ahead; say where each lies."""
    from compendium.frame.archive import Archive, sources

    try:
        known = sources()
        if study not in ("all", *known):
            raise ArchiveError(f"STUDY={study} has no archive; those that have one: {', '.join(known)}")
        for name in known if study == "all" else [study]:
            print(f"{name}: {Archive(name).ready()}")
    except ArchiveError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
