// The verification table: filters, search, keyboard. Rows come from numbers.js; filters live in the address, so a view can be linked.
(() => {
  const { rows, pages, sets, functions } = window.NUMBERS, LIMIT = 200, KEYS = ["study", "exhibit", "status", "text"];
  const get = id => document.getElementById(id), body = document.querySelector("#rows tbody");
  const esc = text => String(text).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
  const GLYPH = { reproduced: "✓", within: "≈", differs: "✗", derived: "∴", "other run": "↷", "no data": "–", agrees: "✓", contradicts: "✗" };
  const words = rows.map(row => row.slice(0, 10).join(" ").toLowerCase());
  let all = false, at = -1, hits = [];

  const soft = text => esc(text).replace(/([/_.-])(?=\w)/g, "$1<wbr>");
  const value = text => esc(text).replace(/ (\[.*)$/, ' <span class="bounds">$1</span>');
  function note(text) {
    const cut = text.lastIndexOf(" ", 70);
    return text.length <= 90 ? `<small>${esc(text)}</small>`
      : `<details class="note"><summary>${esc(text.slice(0, cut))}</summary>${esc(text.slice(cut))}</details>`;
  }
  const mark = s => `<span class="s ${s.replace(" ", "-")}"><i aria-hidden="true">${GLYPH[s]}</i> ${s}</span>`;
  const maker = f => `<a class="maker" href="${esc(functions[f][1])}" title="${esc(functions[f][2])}"><code>${esc(functions[f][0])}</code></a>`;
  function line(row) {
    const [study, exhibit, r, c, status, verdict, printed, computed, place, remark, anchor, made, set] = row;
    const address = `<a href="${esc(pages[study][exhibit])}#${esc(anchor)}">${esc(study)} / <b>${soft(exhibit)}</b> [${soft(r)}, ${soft(c)}]</a>`;
    const result = made && computed ? `<a class="cell-link" href="${esc(made)}">${value(computed)}</a>` : value(computed);
    const cell = made ? `<a href="${esc(made)}">${soft(made.split("/").pop().split(".html")[0])}</a> ` : "";
    const columns = [["Address", address], ["Printed", value(printed)], ["Computed", result], ["Status", mark(status) + (verdict ? " " + mark(verdict) : "")],
      ["Made by", cell + sets[set].map(maker).join(" ")], ["In the paper", esc(place) + note(remark)]];
    return `<tr tabindex="-1">${columns.map(([name, html]) => `<td data-label="${name}">${html}</td>`).join("")}</tr>`;
  }
  function exhibits() {
    const study = get("study").value, chosen = get("exhibit").value;
    const names = [...new Set(rows.filter(row => !study || row[0] === study).map(row => row[1]))];
    get("exhibit").innerHTML = `<option value="">all</option>${names.map(name => `<option>${esc(name)}</option>`).join("")}`;
    if (names.includes(chosen)) get("exhibit").value = chosen;
  }
  function show() {
    const [study, exhibit, status, text] = KEYS.map(key => get(key).value);
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    hits = rows.filter((row, i) => (!study || row[0] === study) && (!exhibit || row[1] === exhibit) &&
      (!status || row[4] === status || row[5] === status) && wanted.every(word => words[i].includes(word)));
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
    for (const key of ["study", "status", "text"]) get(key).value = start.get(key) || "";
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
