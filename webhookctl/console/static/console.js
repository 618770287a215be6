// Keeps a page live, switches the zone of its times, copies, and loads what is shown on request.
// Every page works without it, as of the moment at which it was loaded.
"use strict";

const PERIOD = 3000;
const connection = document.getElementById("connection");
const zone = document.getElementById("zone");

// -- times

function spellTimes(root) {
  const local = localStorage.getItem("zone") === "local";
  zone.setAttribute("aria-pressed", String(local));
  zone.textContent = local ? Intl.DateTimeFormat().resolvedOptions().timeZone || "local" : "UTC";
  for (const each of root.querySelectorAll("time")) {
    const at = new Date(each.dateTime);
    each.title = local ? at.toLocaleString() : at.toISOString().replace(/\.\d+/, "");
  }
}

zone.addEventListener("click", () => {
  localStorage.setItem("zone", localStorage.getItem("zone") === "local" ? "utc" : "local");
  spellTimes(document);
});

// -- live

// When each live part was read last, and the parts whose last reading failed.
const since = new Map();
const stale = new Set();

function tell(state, text) {
  connection.dataset.state = state;
  if (connection.textContent !== text) connection.textContent = text;
}

function parse(text) {
  return new DOMParser().parseFromString(text, "text/html").body.firstElementChild;
}

// Replaces a part as a whole, except while it is used; what was opened stays open.
function replaceWhole(part, fresh) {
  if (part.contains(document.activeElement)) return;
  const open = [...part.querySelectorAll("details")].map((each) => each.open);
  part.innerHTML = fresh.innerHTML;
  part.querySelectorAll("details").forEach((each, place) => { each.open = open[place] ?? each.open; });
  if (!fresh.dataset.live) delete part.dataset.live;
  spellTimes(part);
}

// Replaces the rows that are there; new ones wait for their button, so that nothing moves.
function update(list, fresh) {
  if (list.dataset.whole) return replaceWhole(list, fresh);
  const known = new Map([...list.querySelectorAll("tr[data-key]")].map((row) => [row.dataset.key, row]));
  let added = 0;
  for (const row of fresh.querySelectorAll("tr[data-key]")) {
    const old = known.get(row.dataset.key);
    if (!old) added += 1;
    else if (old.innerHTML !== row.innerHTML && !old.contains(document.activeElement)) old.replaceWith(row.cloneNode(true));
  }
  const news = document.getElementById("news");
  news.hidden = added === 0;
  news.textContent = added === 1 ? "Show 1 new event" : `Show ${added} new events`;
  news.onclick = () => { list.innerHTML = fresh.innerHTML; news.hidden = true; spellTimes(list); };
  spellTimes(list);
}

async function poll(list) {
  if (document.visibilityState === "hidden") return;
  try {
    const answer = await fetch(list.dataset.live, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    update(list, parse(await answer.text()));
    since.set(list, new Date());
  } catch {
    stale.add(list);
    const oldest = new Date(Math.min(...[...stale].map((each) => since.get(each))));
    return tell("stale", `stale since ${oldest.toLocaleTimeString()}`);
  }
  stale.delete(list);
  if (!stale.size) tell("live", "live");
}

for (const each of document.querySelectorAll("[data-live]")) {
  if (!each.dataset.live) continue;
  tell("connecting", "connecting");
  since.set(each, new Date());
  const period = 1000 * each.dataset.seconds || PERIOD;
  const next = () => poll(each).finally(() => each.dataset.live && setTimeout(next, period));
  next();
  document.addEventListener("visibilitychange", () => poll(each));
}

// -- copy, and content on request

document.addEventListener("click", async (event) => {
  const text = event.target.dataset?.copy;
  if (text === undefined) return;
  await navigator.clipboard.writeText(text);
  event.target.textContent = "Copied";
});

async function load(details) {
  if (!details.open || details.dataset.loaded) return;
  details.dataset.loaded = "yes";
  const answer = await fetch(details.dataset.load, { credentials: "same-origin" }).catch(() => null);
  if (answer?.headers.get("content-type")?.startsWith("text/html")) details.querySelector(".loaded").innerHTML = await answer.text();
  else delete details.dataset.loaded;
}

for (const each of document.querySelectorAll("details[data-load]")) {
  each.addEventListener("toggle", () => load(each), { passive: true });
  load(each); // opened before this script ran
}

spellTimes(document);
