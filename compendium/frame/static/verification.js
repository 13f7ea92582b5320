// The verification table: filters, search, keyboard. Filters live in the address, so a view can be linked.
(() => {
  const held = window.NUMBERS || JSON.parse(document.getElementById("data").textContent);
  const { rows, pages, sets, functions, signs } = held, LIMIT = 200;
  const KEYS = ["study", "exhibit", "outcome", "evidence", "text"];
  const get = id => document.getElementById(id), body = document.querySelector("#rows tbody");
  const esc = text => String(text).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
  const words = rows.map(row => row.join(" ").toLowerCase());
  // numbers as people write them: ".551", "0.551" and "-0.144", "−.144" are the same
  const plain = text => text.replace(/−/g, "-").replace(/^(-?)0+(?=\.)/, "$1");
  const numbers = rows.map(row => `${row[6]} ${row[7]}`.match(/[-−]?\d*\.?\d+(e-?\d+)?/g)?.map(plain) || []);
  const isNumber = word => /^[-−]?(\d+\.?\d*|\.\d+)$/.test(word);
  let all = false, at = -1, hits = [];

  function hasNumber(i, word) {
    const wanted = plain(word), whole = !wanted.includes(".");
    const alike = value => value === wanted || (!whole && value.startsWith(wanted));
    return numbers[i].some(value => alike(value) || (wanted[0] !== "-" && value[0] === "-" && alike(value.slice(1)))) ||
      (whole && new RegExp(`(^|[^\\d.])${wanted}([^\\d.]|$)`).test(words[i]));
  }
  const soft = text => esc(text).replace(/([/_.-])(?=\w)/g, "$1<wbr>");
  const value = text => esc(text).replace(/ (\[.*)$/, ' <span class="bounds">$1</span>');
  const named = (id, label) => label && label !== id ? `${esc(label)} <small>${soft(id)}</small>` : soft(id);
  function note(text) {
    const cut = text.lastIndexOf(" ", 70);
    return text.length <= 90 ? `<small>${esc(text)}</small>`
      : `<details class="note"><summary>${esc(text.slice(0, cut))}</summary>${esc(text.slice(cut))}</details>`;
  }
  const mark = s => `<span class="s ${s.replace(" ", "-")}"><i aria-hidden="true">${signs[s]}</i> ${s}</span>`;
  const maker = f => `<a class="maker" href="${esc(functions[f][1])}" title="${esc(functions[f][2])}"><code>${esc(functions[f][0])}</code></a>`;
  function line(row) {
    const [study, exhibit, r, c, outcome, evidence, printed, computed, place, why, anchor, made, set, rl, cl] = row;
    const title = `${esc(study)} / <b>${soft(exhibit)}</b>`, names = `<div>${named(r, rl)} · ${named(c, cl)}</div>`;
    const address = (anchor ? `<a href="${esc(pages[study][exhibit])}#${esc(anchor)}">${title}</a>` : title) + names;
    const result = made && computed ? `<a class="cell-link" href="${esc(made)}">${value(computed)}</a>` : value(computed);
    const cell = made ? `<a href="${esc(made)}">${soft(made.split("/").pop().split(".html")[0])}</a> ` : "";
    const columns = [["Address", address], ["Printed", value(printed)], ["Computed", result],
      ["Outcome", `${mark(outcome)} <span class="on">${esc(evidence)}</span>`],
      ["Made by", cell + sets[set].map(maker).join(" ")], ["In the paper", esc(place) + note(why)]];
    return `<tr tabindex="-1">${columns.map(([name, html]) => `<td data-label="${name}">${html}</td>`).join("")}</tr>`;
  }
  function exhibits() {
    const study = get("study").value, chosen = get("exhibit").value;
    const names = [...new Set(rows.filter(row => !study || row[0] === study).map(row => row[1]))];
    get("exhibit").innerHTML = `<option value="">all</option>${names.map(name => `<option>${esc(name)}</option>`).join("")}`;
    if (names.includes(chosen)) get("exhibit").value = chosen;
  }
  function show() {
    const [study, exhibit, outcome, evidence, text] = KEYS.map(key => get(key).value);
    const said = text.toLowerCase(), table = said.match(/\b(table|figure)[ -]?(\d+)\b/);
    const wanted = said.replace(table ? table[0] : "", "").split(/\s+/).filter(Boolean);
    hits = rows.filter((row, i) => (!study || row[0] === study) && (!exhibit || row[1] === exhibit) &&
      (!outcome || row[4] === outcome) && (!evidence || row[5] === evidence) &&
      (!table || `${row[1]}-`.startsWith(`${table[1]}-${table[2]}-`)) &&
      wanted.every(word => isNumber(word) ? hasNumber(i, word) : words[i].includes(word)));
    body.innerHTML = hits.slice(0, all ? hits.length : LIMIT).map(line).join("");
    at = -1;
    get("count").textContent = `${hits.length} of ${rows.length} printed numbers`;
    get("more").hidden = all || hits.length <= LIMIT;
    const query = new URLSearchParams();
    for (const key of KEYS) if (get(key).value) query.set(key, get(key).value);
    history.replaceState(null, "", query.size ? "#" + query : location.pathname + location.search);
  }
  function go(step) {
    const lines = body.children;
    if (!lines.length) return;
    if (at >= 0) lines[at].classList.remove("at");
    at = Math.max(0, Math.min(lines.length - 1, at + step));
    lines[at].classList.add("at");
    lines[at].focus({ preventScroll: true });
    lines[at].scrollIntoView({ block: "center" });
  }
  function follow(selector) {
    const target = at >= 0 && body.children[at].querySelector(selector);
    if (target) target.click();
  }
  document.addEventListener("keydown", event => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || event.target.isContentEditable;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && event.target.closest("#filters")) {
      for (const key of KEYS) get(key).value = "";
      exhibits(); show(); return;
    }
    if (event.key === "Enter" && event.target.id === "text") { go(1); event.preventDefault(); return; }
    if (typing) return;
    if (event.key === "/") { get("text").focus(); event.preventDefault(); }
    else if (event.key === "j") go(1);
    else if (event.key === "k") go(-1);
    else if (event.key === "f") follow("a.maker");
    else if (event.key === "Enter" && event.target.matches("#rows tr")) follow("a.cell-link");
  });
  function fromAddress() {
    const start = new URLSearchParams(location.hash.slice(1));
    for (const key of ["study", "outcome", "evidence", "text"]) get(key).value = start.get(key) || "";
    exhibits();
    get("exhibit").value = start.get("exhibit") || "";
    show();
  }
  get("filters").addEventListener("submit", event => event.preventDefault());
  for (const key of KEYS) get(key).addEventListener("input", () => { all = false; if (key === "study") exhibits(); show(); });
  get("more").addEventListener("click", () => { all = true; show(); });
  window.addEventListener("hashchange", fromAddress);
  fromAddress();
})();
