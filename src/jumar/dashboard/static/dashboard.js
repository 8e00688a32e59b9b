// A page that is watched says when it is old; then it is fetched again, and what is open, marked and focused stays.
// The keys j and k lead to the next page and back, where a page has such links.
"use strict";
(() => {
  const content = document.getElementById("content");
  const live = document.body.dataset.live;
  if (!content) return;

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const link = content.querySelector({ j: "a[rel=next]", k: "a[rel=prev]" }[event.key] || "no-such-element");
    if (link) link.click();
  });
  if (!live) return;

  // What finds an element again in a page that was made anew: its id, or where it leads.
  const place = (element) => {
    if (!element || !content.contains(element)) return "";
    const address = element.getAttribute("href");
    return element.id ? `#${CSS.escape(element.id)}` : address ? `a[href="${CSS.escape(address)}"]` : "";
  };

  const kept = () => ({
    open: new Set([...content.querySelectorAll("details")].map((each, place) => (each.open ? place : -1))),
    marked: new Set([...content.querySelectorAll("input:checked")].map((each) => each.value)),
    focused: place(document.activeElement),
  });

  async function reload() {
    if (content.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")) return;
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("content");
    if (!fresh || fresh.innerHTML === content.innerHTML) return;
    const before = kept();
    content.replaceChildren(...fresh.childNodes);
    content.querySelectorAll("details").forEach((each, place) => { each.open = before.open.has(place); });
    content.querySelectorAll("input[type=checkbox]").forEach((each) => { each.checked = before.marked.has(each.value); });
    if (before.focused) content.querySelector(before.focused)?.focus({ preventScroll: true });
  }

  if (live.endsWith("runs")) {
    const seconds = live === "runs" ? 1.5 : 6;
    const again = () => setTimeout(() => { (document.hidden ? Promise.resolve() : reload()).catch(() => {}).finally(again); }, seconds * 1000);
    again();
    return;
  }
  const events = new EventSource(live);
  events.addEventListener("changed", () => { reload().catch(() => {}); });
  addEventListener("pagehide", () => events.close());
})();
