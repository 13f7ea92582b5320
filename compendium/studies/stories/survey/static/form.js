// The rating form. What a rater has said but not yet sent lives in localStorage, so a reload loses nothing.
const main = document.getElementById("main");
const notice = document.getElementById("notice");
let form, language, story, sending = false;

const kept = {
  get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
  set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* private window: nothing is kept */ } },
  drop: (key) => { try { localStorage.removeItem(key); } catch { /* as above */ } },
};
let token = kept.get("session");

const words = () => form.wording[language];
const fill = (text, n) => text.replace("{n}", n);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

async function ask(path, body) {
  let answer;
  try {
    answer = await fetch(path, body === undefined ? {} : {
      method: "POST", headers: { "Content-Type": "application/json", "X-Form-Token": form.token }, body: JSON.stringify(body) });
  } catch {
    throw Object.assign(new Error(words().offline), { status: 0 });
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(content.error || answer.statusText), { status: answer.status, field: content.field });
  return content;
}

function say(text, keep = false) {
  notice.textContent = text;
  clearTimeout(say.timer);
  if (text && !keep) say.timer = setTimeout(() => { notice.textContent = ""; }, 4000);
}

function show(...children) {
  main.replaceChildren(...children);
  document.documentElement.lang = language;
  document.title = words().title;
  document.getElementById("title").textContent = words().title;
  document.getElementById("languages").replaceChildren(...Object.entries(form.languages).map(([code, name]) => element(
    "button", { type: "button", lang: code, "aria-pressed": String(code === language), onclick: () => switchTo(code) }, name)));
}

async function switchTo(code) {
  if (code === language) return;
  say("");
  language = code;
  kept.set("language", code);
  if (story) await guarded(() => read(code, draft()));
  else if (main.querySelector(".reading")) await guarded(() => read(code));
  else if (main.dataset.page === "end") end(main.dataset.said);
  else welcome(answersSoFar());
}

async function guarded(act) {
  try { await act(); } catch (problem) {
    if (problem.status === 404 && problem.field === "session") return restart();
    say(problem.message, true);
    if (!main.children.length) {
      show(element("div", { class: "card welcome" }, element("p", {}, problem.message),
        element("button", { type: "button", class: "primary", onclick: () => { say(""); guarded(start); } }, words().again)));
    }
  }
}

// Welcome ---------------------------------------------------------------------------------------------------------------
function answersSoFar() {
  const page = main.querySelector("form");
  return page ? Object.fromEntries(new FormData(page)) : {};
}

function question(name, given) {
  const w = words();
  if (name === "age") {
    return element("label", { class: "field" }, w.questions.age, element("input", {
      type: "number", name, min: 18, max: 110, required: true, inputmode: "numeric", value: given[name] }));
  }
  const options = Object.entries(form.options[language][name]).map(([value, text]) => element(
    "option", { value, selected: given[name] === value }, text));
  const select = element("select", { name, required: true }, element("option", { value: "" }, "–"), ...options);
  const field = element("label", { class: "field" }, w.questions[name], select);
  if (name !== "native_language") return field;
  const other = element("input", { type: "text", name: "native_language_other", maxlength: 60, hidden: select.value !== "Other",
    placeholder: w.specify, "aria-label": w.specify, value: given.native_language_other || "" });
  select.addEventListener("change", () => { other.hidden = select.value !== "Other"; });
  field.append(other);
  return field;
}

function welcome(given = {}) {
  const w = words();
  story = null;
  main.dataset.page = "welcome";
  show(element("form", { class: "card welcome", onsubmit: begin },
    element("h2", {}, w.welcome), element("p", {}, w.about),
    ...form.questions.map((name) => question(name, given)),
    element("label", { class: "consent" }, element("input", { type: "checkbox", name: "consent", required: true,
      checked: given.consent === "on" }), element("span", {}, w.consent)),
    element("button", { class: "primary", id: "begin" }, w.begin)));
}

async function begin(event) {
  event.preventDefault();
  if (sending) return;
  sending = true;
  const given = answersSoFar();
  if (given.native_language === "Other" && given.native_language_other.trim()) given.native_language = given.native_language_other.trim();
  delete given.native_language_other;
  await guarded(async () => {
    ({ session: token } = await ask("/api/sessions", { ...given, language, consent: given.consent === "on" }));
    kept.set("session", token);
    await read();
  });
  sending = false;
}

// Reading ---------------------------------------------------------------------------------------------------------------
const draft = () => Object.fromEntries([...main.querySelectorAll("input[type=radio]:checked")].map((r) => [r.name, Number(r.value)]));
const draftKey = (handle) => `draft:${handle}`;

async function read(code, scores) {
  const query = code ? `?language=${code}` : "";
  const given = await ask(`/api/sessions/${token}/story${query}`);
  if (!given.handle) return end("none_left");
  story = given;
  language = given.language;
  if (!scores) {
    try { scores = JSON.parse(kept.get(draftKey(story.handle)) || "{}"); } catch { scores = {}; }
  }
  const w = words();
  main.dataset.page = "reading";
  show(element("div", { class: "reading" },
    element("article", { class: "card", lang: language, "aria-label": w.story },
      element("p", { class: "prompt", lang: "en" }, element("b", { lang: language }, w.prompt), story.prompt),
      element("div", { class: "story", id: "story" }, ...story.text.split(/\n\s*\n|\n/).map((line) => line.trim())
        .filter((line) => line).map((line) => element("p", {}, line)))),
    element("form", { id: "ratings", novalidate: true, onsubmit: send, onchange: changed },
      element("p", { class: "quiet" }, w.instructions),
      ...form.qualities[language].map((quality) => item(quality, scores[quality.id])),
      element("div", { class: "bar" }, element("button", { class: "primary", id: "submit" }, w.submit),
        element("button", { type: "button", id: "stop", onclick: stop }, w.stop),
        element("span", { class: "quiet", id: "count" }, fill(w.rated, story.rated))))));
  keep();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

function item(quality, score) {
  return element("fieldset", { id: `q-${quality.id}`, class: score ? "done" : "", "aria-describedby": `d-${quality.id}` },
    element("legend", {}, quality.label), element("p", { id: `d-${quality.id}` }, quality.definition),
    element("div", { class: "scale" }, ...words().scale.map((text, at) => element("label", {},
      element("input", { type: "radio", name: quality.id, value: at + 1, required: true, checked: score === at + 1,
        "aria-label": `${at + 1}, ${text}` }), String(at + 1), element("span", { "aria-hidden": "true" }, text)))));
}

function keep() { kept.set(draftKey(story.handle), JSON.stringify(draft())); }

function changed(event) {
  const set = event.target.closest("fieldset");
  set.classList.add("done");
  set.classList.remove("missing");
  keep();
}

document.addEventListener("keydown", (event) => {
  if (!story || event.ctrlKey || event.metaKey || event.altKey || !/^[1-5]$/.test(event.key)) return;
  const sets = [...main.querySelectorAll("fieldset")];
  const here = document.activeElement.closest("fieldset") || sets.find((set) => !set.querySelector(":checked"));
  if (!here) return;
  event.preventDefault();
  const radio = here.querySelector(`input[value="${event.key}"]`);
  radio.checked = true;
  radio.dispatchEvent(new Event("change", { bubbles: true }));
  const next = sets[sets.indexOf(here) + 1];
  const target = next ? next.querySelector(":checked") || next.querySelector("input") : document.getElementById("submit");
  target.focus();
  target.scrollIntoView({ block: "nearest" });
});

async function send(event) {
  event.preventDefault();
  if (sending) return;
  const scores = draft();
  const missing = form.qualities[language].filter((quality) => !scores[quality.id]);
  for (const set of main.querySelectorAll("fieldset")) set.classList.toggle("missing", !set.querySelector(":checked"));
  if (missing.length) {
    say(fill(words().missing, missing.length));
    const first = document.getElementById(`q-${missing[0].id}`);
    first.scrollIntoView({ block: "center" });
    first.querySelector("input").focus({ preventScroll: true });
    return;
  }
  sending = true;
  document.getElementById("submit").disabled = true;
  await guarded(async () => {
    const sent = story.handle;
    await ask(`/api/sessions/${token}/ratings`, { story: sent, scores });
    kept.drop(draftKey(sent));
    say(words().saved);
    await read();
  });
  sending = false;
  const button = document.getElementById("submit");
  if (button) button.disabled = false;
}

async function stop() {
  await guarded(async () => {
    await ask(`/api/sessions/${token}/finish`, {});
    kept.drop(draftKey(story.handle));
    kept.drop("session");
    token = null;
    say("");
    end("finished");
  });
}

function end(said) {
  story = null;
  main.dataset.page = "end";
  main.dataset.said = said;
  show(element("div", { class: "card welcome" }, element("h2", { id: "thanks" }, words()[said])));
  window.scrollTo(0, 0);
}

function restart() {
  kept.drop("session");
  token = null;
  welcome();
}

async function start() {
  if (!token) return welcome();
  const session = await ask(`/api/sessions/${token}`);
  if (session.finished) return restart();
  language = session.language;
  await read();
  if (session.rated) say(words().resume);
}

form = await (await fetch("/api/form")).json();
language = kept.get("language") || (navigator.language.startsWith("it") ? "it" : "en");
await guarded(start);
