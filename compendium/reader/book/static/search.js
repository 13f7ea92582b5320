// Numbers and "table 12" are looked up in the verification table, from the search field of any page of the book.
document.addEventListener("submit", event => {
  const field = event.target.querySelector('input[name="q"]'), said = field && field.value.trim();
  if (!said || !/^([-−]?(\d+\.?\d*|\.\d+)|(table|figure)[ -]?\d+)$/i.test(said)) return;
  event.preventDefault();
  const root = document.documentElement.dataset.content_root || document.documentElement.dataset.contentRoot || "";
  location.href = `${root}verification.html#${new URLSearchParams({ text: said })}`;
  document.querySelector("dialog[open]")?.close();
}, true);
