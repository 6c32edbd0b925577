"use strict";
// Keeps the view current: what changes comes by server-sent events, as markup that the server has escaped.
(() => {
  const view = document.getElementById("view");
  const status = document.getElementById("status");
  const pause = document.getElementById("pause");
  if (!view || !status || !pause) return;
  let latest = null;
  let paused = false;

  const isSelecting = () => {
    const chosen = document.getSelection();
    return chosen && !chosen.isCollapsed && view.contains(chosen.anchorNode);
  };
  const summary = () => document.getElementById("summary")?.textContent ?? "";

  const show = () => {
    if (latest === null || paused || isSelecting()) return;
    const before = summary();
    const focused = view.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const scrolled = [...view.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    view.innerHTML = latest;
    latest = null;
    [...view.querySelectorAll(".scroll")].forEach((each, place) => { each.scrollLeft = scrolled[place] ?? 0; });
    if (focused) [...view.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused)?.focus();
    if (summary() !== before) status.textContent = summary();
  };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
    show();
  });
  document.addEventListener("selectionchange", show);

  const source = new EventSource(view.dataset.live);
  source.addEventListener("view", (event) => { latest = event.data; show(); document.body.classList.remove("stale"); });
  source.addEventListener("end", () => { source.close(); location.reload(); });
  source.addEventListener("error", () => {
    document.body.classList.add("stale");
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 15000);
  });
})();
