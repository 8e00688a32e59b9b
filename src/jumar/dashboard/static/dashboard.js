// A page that is watched says when it is old; then it is fetched again, and what is open, marked and focused stays.
// The keys j and k lead to the next page and back, where a page has such links; arrows along the points of a plot.
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

  // A point of a plot says what it is when it is pointed at or reached by key; arrows lead along the points.
  const tip = document.body.appendChild(Object.assign(document.createElement("div"), { className: "tip", hidden: true }));
  tip.setAttribute("aria-hidden", "true");
  const point = (event) => event.target.closest?.("figure svg .mark");
  const show = (mark) => {
    const link = mark.closest("a");
    const own = mark.querySelector("title");
    const text = link ? link.getAttribute("aria-label") : mark.dataset.says || own?.textContent;
    if (!text) return;
    if (!link) mark.dataset.says = text;
    own?.remove(); // else the browser shows it beside ours
    tip.textContent = text;
    tip.hidden = false;
    const dot = (mark.querySelector(".dot, .cross") || mark).getBoundingClientRect();
    const left = dot.x + dot.width / 2 - tip.offsetWidth / 2;
    tip.style.left = `${scrollX + Math.max(8, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${scrollY + dot.bottom + 8}px`;
  };
  const hide = () => { tip.hidden = true; };
  addEventListener("mouseover", (event) => { const mark = point(event); if (mark) show(mark); else hide(); });
  addEventListener("focusin", (event) => { const mark = event.target.querySelector?.(":scope > .mark"); if (mark) show(mark); else hide(); });
  addEventListener("focusout", hide);
  addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const link = step && event.target.closest("figure svg a");
    if (!link) return;
    const all = [...link.closest("svg").querySelectorAll("a")];
    const next = all[all.indexOf(link) + step];
    if (next) next.focus();
    event.preventDefault();
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
