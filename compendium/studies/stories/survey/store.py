"""The survey's database: stories, sessions, and ratings, in one SQLite file.

Every answer is committed before it is confirmed. A session holds one story at a time, so a reload shows the
same one, and the same story cannot be rated twice by one person however often the button is pressed.
"""

import os
import sqlite3
import unicodedata
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from compendium.frame.files import atomic_write, write_csv_atomic
from compendium.studies.stories.data import DIMENSIONS, HIGHEST, LANGUAGES, LOWEST, SHEET, TEXTS, check_texts
from compendium.studies.stories.survey import SurveyError

ADULT, OLDEST = 18, 110
QUESTIONS = ("native_language", "gender", "age", "education", "experience")
LONGEST_ANSWER = 60
JOINERS = "\u200c\u200d"  # letters of some languages need them
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a text begins that a spreadsheet would run
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS texts (story INTEGER, language TEXT, handle TEXT NOT NULL, author TEXT NOT NULL,
    prompt TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (story, language));
CREATE TABLE IF NOT EXISTS sessions (token TEXT PRIMARY KEY, session TEXT UNIQUE NOT NULL,
    begun TEXT NOT NULL, language TEXT NOT NULL, {", ".join(f"{name} TEXT NOT NULL" for name in QUESTIONS)},
    current INTEGER, finished INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS ratings (number INTEGER PRIMARY KEY AUTOINCREMENT,
    token TEXT NOT NULL REFERENCES sessions,
    story INTEGER NOT NULL, language TEXT NOT NULL, timestamp TEXT NOT NULL,
    {
    ", ".join(f"{name} INTEGER NOT NULL CHECK ({name} BETWEEN {LOWEST} AND {HIGHEST})" for name in DIMENSIONS)
},
    UNIQUE (token, story));
"""


class Store:
    """One survey. `fresh()` gives session numbers and handles (random), `now()` the time as text, `pick(n)` a
    place below n: handed in, so that a test or the demo can repeat a survey to the letter. `balanced` picks
    among the stories that have the fewest ratings (still at random): few raters then reach every story."""

    def __init__(self, path, *, fresh, now, pick, balanced: bool = False):
        self.path, self.fresh, self.now, self.pick, self.balanced = Path(path), fresh, now, pick, balanced
        self.path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        self.path.chmod(
            0o600
        )  # whoever runs the survey, and nobody else; the log beside it has the same mode
        with self._open(transaction=False) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(_SCHEMA)

    def add_texts(self, texts: pd.DataFrame) -> int:
        """Put stories (columns TEXTS) into the survey; those that are there stay. Returns how many there are
        now.

        Raises StoriesError for a text that cannot be used, SurveyError where a story's text has changed
        since.
        """
        check_texts(texts)
        with self._open() as database:
            for row in texts[TEXTS].itertuples(index=False):
                known = database.execute(
                    "SELECT text FROM texts WHERE story = ? AND language = ?", (row.story, row.language)
                ).fetchone()
                if known and known[0] != row.text:
                    raise SurveyError(
                        f"story {row.story} ({row.language}) is in the survey with another text: "
                        "ratings of two texts must not be mixed; start a new database"
                    )
                if not known:
                    database.execute(
                        "INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?)",
                        (row.story, row.language, self.fresh(), row.author, row.prompt, row.text),
                    )
            return database.execute("SELECT count(DISTINCT story) FROM texts").fetchone()[0]

    def begin(self, answers: dict) -> str:
        """Open a session and return its token. `answers`: consent, language, and the background QUESTIONS.

        Raises SurveyError, with the field, for an answer that is missing or impossible.
        """
        if answers.get("consent") is not True:
            raise SurveyError("please agree to take part first", "consent")
        language = answers.get("language")
        _check_language(language)
        values = [_answer(name, answers.get(name)) for name in QUESTIONS]
        token, session = self.fresh(), self.fresh()
        with self._open() as database:
            if not database.execute("SELECT 1 FROM texts WHERE language = ?", (language,)).fetchone():
                raise SurveyError(f"there are no stories in language {language!r} in this survey", "language")
            database.execute(
                f"INSERT INTO sessions (token, session, begun, language, {', '.join(QUESTIONS)}) "
                f"VALUES (?, ?, ?, ?{', ?' * len(QUESTIONS)})",
                (token, session, self.now(), language, *values),
            )
        return token

    def status(self, token: str) -> dict:
        """{language, rated, finished} of a session. Raises SurveyError (404) for an unknown token."""
        with self._open() as database:
            return self._session(database, token)

    def story(self, token: str, language: str | None = None) -> dict | None:
        """The session's current story {handle, prompt, text, language}, picked at random from those it has
        not rated; None where none is left or the session is finished. `language` switches the session's language."""
        with self._open() as database:
            session = self._session(database, token)
            if language is not None:
                _check_language(language)
                session["language"] = language
                database.execute("UPDATE sessions SET language = ? WHERE token = ?", (language, token))
            current = None if session["finished"] else self._current(database, token, session["language"])
            if current is None:
                return None
            row = database.execute(
                "SELECT handle, prompt, text FROM texts WHERE story = ? AND language = ?",
                (current, session["language"]),
            ).fetchone()
            return {
                **dict(zip(("handle", "prompt", "text"), row, strict=True)),
                "language": session["language"],
            }

    def rate(self, token: str, handle: str, scores: dict) -> int:
        """Keep the eleven scores {dimension: 1-5} of the session's current story; returns how many it has
        rated.

        The same story again (a second press, a resend after a lost answer) changes nothing and is no error.
        Raises SurveyError for a score that is missing or no whole number from 1 to 5, or a story that is not
        its own, or (409) a session that is finished.
        """
        if not isinstance(scores, dict):
            raise SurveyError("scores should be an object: a whole number for each dimension", "scores")
        values = [_rating(name, scores.get(name)) for name in DIMENSIONS]
        known = isinstance(handle, str) and handle.isascii()
        with self._open() as database:
            session = self._session(database, token)
            text = (
                known
                and database.execute(
                    "SELECT story, language FROM texts WHERE handle = ?", (handle,)
                ).fetchone()
            )
            if not text:
                raise SurveyError("this story is not part of the survey", "story", 404)
            done = database.execute(
                "SELECT 1 FROM ratings WHERE token = ? AND story = ?", (token, text[0])
            ).fetchone()
            if not done:
                if session["finished"]:
                    raise SurveyError(
                        "this session is finished; nothing more can be rated in it", "session", 409
                    )
                current = database.execute(
                    "SELECT current FROM sessions WHERE token = ?", (token,)
                ).fetchone()[0]
                if current != text[0]:
                    raise SurveyError("this is not the story you were given; reload the page", "story", 409)
                database.execute(
                    f"INSERT INTO ratings (token, story, language, timestamp, {', '.join(DIMENSIONS)}) "
                    f"VALUES (?, ?, ?, ?{', ?' * len(DIMENSIONS)})",
                    (token, *text, self.now(), *values),
                )
                database.execute("UPDATE sessions SET current = NULL WHERE token = ?", (token,))
            return self._session(database, token)["rated"]

    def finish(self, token: str) -> None:
        """End a session; what it rated stays. Raises SurveyError (404) for an unknown token."""
        with self._open() as database:
            self._session(database, token)
            database.execute("UPDATE sessions SET finished = 1, current = NULL WHERE token = ?", (token,))

    def sheet(self) -> pd.DataFrame:
        """All ratings with the columns of the study's sheet (compendium.studies.stories.data.SHEET), in the order they
        came.
        """
        query = f"""
            SELECT r.timestamp, s.session AS session_id, s.native_language AS native_languge, s.gender,
                   CAST(s.age AS INTEGER) AS age, s.education, s.experience,
                   2 * r.story - (r.language = 'en') AS text_id, r.language AS txt_language, t.author,
                   t.text AS text_evaluated, {", ".join(f"r.{name}" for name in DIMENSIONS)}
            FROM ratings r JOIN sessions s USING (token)
            JOIN texts t ON t.story = r.story AND t.language = r.language
            ORDER BY r.number"""
        with self._open() as database:
            return pd.read_sql_query(query, database)[SHEET]

    def export(self, path) -> Path:
        """Write the sheet as .xlsx or .csv (by the name's ending), whole or not at all, readable by its owner alone.

        Control characters are spelled out (`\\x0b`), and no text is a formula: in .xlsx it is marked as text, in .csv
        an apostrophe stands before it.
        """
        path, sheet = Path(path), self.sheet()
        texts = [name for name in sheet if not pd.api.types.is_numeric_dtype(sheet[name])]
        sheet[texts] = sheet[texts].map(_shown)
        if path.suffix == ".csv":
            sheet[texts] = sheet[texts].map(lambda text: f"'{text}" if text.startswith(FORMULA) else text)
            write_csv_atomic(path, sheet)
        elif path.suffix == ".xlsx":
            with (
                atomic_write(path, suffix=".xlsx") as temporary,
                pd.ExcelWriter(temporary, engine="openpyxl") as book,
            ):
                sheet.to_excel(book, index=False)
                for cell in (cell for row in book.book.active.iter_rows() for cell in row):
                    if isinstance(cell.value, str):
                        cell.data_type, cell.quotePrefix = "s", cell.value.startswith(FORMULA)
        else:
            raise SurveyError(f"{path.name}: the sheet can be written as .xlsx or .csv")
        path.chmod(0o600)
        return path

    @contextmanager
    def _open(self, transaction: bool = True):
        """One transaction: all of it or, after an error, nothing."""
        database = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            database.execute("PRAGMA foreign_keys = ON")
            database.execute("PRAGMA synchronous = NORMAL")
            if transaction:
                database.execute("BEGIN IMMEDIATE")
            yield database
            if database.in_transaction:
                database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise
        finally:
            database.close()

    def _session(self, database, token) -> dict:
        known = str(token).isascii()
        row = (
            known
            and database.execute(
                "SELECT language, finished, (SELECT count(*) FROM ratings r WHERE r.token = s.token) "
                "FROM sessions s WHERE token = ?",
                (str(token),),
            ).fetchone()
        )
        if not row:
            raise SurveyError("unknown session; begin again", "session", 404)
        return {"language": row[0], "finished": bool(row[1]), "rated": row[2]}

    def _current(self, database, token, language):
        current = database.execute("SELECT current FROM sessions WHERE token = ?", (token,)).fetchone()[0]
        if (
            current is not None
            and database.execute(
                "SELECT 1 FROM texts WHERE story = ? AND language = ?", (current, language)
            ).fetchone()
        ):
            return current
        counts = dict(
            database.execute(
                "SELECT story, (SELECT count(*) FROM ratings r WHERE r.story = t.story) "
                "FROM texts t WHERE language = ? "
                "AND story NOT IN (SELECT story FROM ratings WHERE token = ?) ORDER BY story",
                (language, token),
            )
        )
        fewest = min(counts.values(), default=0)
        left = [story for story, count in counts.items() if count == fewest or not self.balanced]
        chosen = left[self.pick(len(left))] if left else None
        database.execute("UPDATE sessions SET current = ? WHERE token = ?", (chosen, token))
        return chosen


def _check_language(language) -> None:
    if not isinstance(language, str) or language not in LANGUAGES:
        said = f"language should be one of {', '.join(LANGUAGES)}, not {_echo(language)}"
        raise SurveyError(said, "language")


def _answer(name, value) -> str:
    if name == "age":
        text = str(value).strip() if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
        if len(text) > 3 or not text.isdecimal() or not ADULT <= int(text) <= OLDEST:
            raise SurveyError(
                f"age should be a whole number from {ADULT} to {OLDEST}, not {_echo(value)}", "age"
            )
        return str(int(text))
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_ANSWER:
        raise SurveyError(f"{name} should be answered in 1 to {LONGEST_ANSWER} characters", name)
    if any(unicodedata.category(letter)[0] == "C" and letter not in JOINERS for letter in value.strip()):
        raise SurveyError(f"{name} should be answered in letters, without control characters", name)
    return value.strip()


def _rating(name, value) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not LOWEST <= value <= HIGHEST:
        raise SurveyError(
            f"{name} should be a whole number from {LOWEST} to {HIGHEST}, not {_echo(value)}", name
        )
    return value


def _echo(value) -> str:
    """What somebody sent, as an error may repeat it: short, and without half a surrogate pair."""
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _shown(text) -> str:
    """Text as a sheet can hold it: line ends and tabs stay, other control characters are spelled out."""
    return "".join(
        letter
        if letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cs")
        else ascii(letter)[1:-1]
        for letter in str(text)
    )
