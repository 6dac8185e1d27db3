// Keeps an open page up to date, and lets buttons copy commands. Plain JavaScript, no library, no build.
//
// The server says over server-sent events that something happened. The page then fetches its own address and takes over
// what differs, node by node, so that focus, selection and opened details stay as they are. A page that should live has
// <main data-live>. Without JavaScript every page works; it only has to be reloaded by hand.
"use strict";

const QUIET_MS = 300; // between two fetches, however much happens
const EVERY_MS = 5000; // what raises no event (last read, an importer's drift) is looked at this often
const AGAIN_MS = 2000; // until a lost connection is tried again

const main = document.querySelector("main[data-live]");
const connection = document.getElementById("connection");
let source = null;
let newest = null;
let fetching = false;
let wanted = false;

// --- taking over what differs

function isSame(before, after) {
  return before.nodeType === after.nodeType && before.nodeName === after.nodeName && before.id === after.id;
}

function takeOver(before, after) {
  if (before.nodeType === Node.TEXT_NODE) {
    if (before.nodeValue !== after.nodeValue) {
      before.nodeValue = after.nodeValue;
      flash(before.parentElement);
    }
    return;
  }
  if (before.nodeType !== Node.ELEMENT_NODE) return;
  // The words of a <time> are ours (see tellTimes): only the moment itself is taken over.
  const isTime = before.nodeName === "TIME";
  for (const { name, value } of [...after.attributes]) {
    if (before.getAttribute(name) !== value) before.setAttribute(name, value);
  }
  for (const { name } of [...before.attributes]) {
    const isOurs = name === "open" || (isTime && name === "title");
    if (!after.hasAttribute(name) && !isOurs) before.removeAttribute(name);
  }
  if (!isTime) takeOverChildren(before, after);
}

function takeOverChildren(before, after) {
  let here = before.firstChild;
  for (const child of [...after.childNodes]) {
    const kept = child.id ? [...before.children].find((one) => one.id === child.id) : null;
    if (kept && kept !== here) {
      before.insertBefore(kept, here);
      takeOver(kept, child);
    } else if (here && isSame(here, child)) {
      takeOver(here, child);
      here = here.nextSibling;
    } else {
      before.insertBefore(child, here);
      if (child.nodeType === Node.ELEMENT_NODE) flash(child);
    }
  }
  while (here) {
    const next = here.nextSibling;
    here.remove();
    here = next;
  }
}

function flash(element) {
  if (!element) return;
  element.classList.add("changed");
  element.addEventListener("animationend", () => element.classList.remove("changed"), { once: true });
}

async function refresh() {
  if (fetching) {
    wanted = true;
    return;
  }
  fetching = true;
  wanted = false;
  try {
    const answer = await fetch(location.href, { cache: "no-store", headers: { Accept: "text/html" } });
    if (answer.redirected) location.reload(); // logged out
    else if (answer.status === 404) location.assign("/ui"); // deleted
    else if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      takeOver(main, page.querySelector("main"));
      document.title = page.title;
      tellTimes();
    }
  } catch {
    // The stream tells of a lost connection; the next look comes when it is back.
  }
  await new Promise((done) => setTimeout(done, QUIET_MS));
  fetching = false;
  if (wanted) refresh();
}

// --- the connection

function connect() {
  source = new EventSource("/ui/events");
  source.onopen = () => say("live", "live");
  source.onmessage = (event) => {
    if (newest !== event.data) refresh();
    newest = event.data;
  };
  source.onerror = () => {
    say("lost", "Connection lost: what you see may be old. Trying again…");
    newest = null; // whatever happened meanwhile is fetched once it is back
    source.close();
    setTimeout(() => document.hidden || connect(), AGAIN_MS);
  };
}

function say(state, words) {
  if (connection.dataset.state === state) return;
  connection.dataset.state = state;
  connection.textContent = words;
}

// A hidden page holds no connection: browsers allow only a few per server.
function onVisibility() {
  source?.close();
  if (!document.hidden) {
    newest = null;
    connect();
  }
}

// --- times in words, relative to now

const WORDS = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const STEPS = [["second", 60], ["minute", 60], ["hour", 24], ["day", Infinity]];

function inWords(moment) {
  let amount = (moment - Date.now()) / 1000;
  for (const [unit, many] of STEPS) {
    if (Math.abs(amount) < many) return WORDS.format(Math.round(amount), unit);
    amount /= many;
  }
  return "";
}

function tellTimes() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    const words = inWords(moment);
    if (time.textContent !== words) time.textContent = words;
    time.title = `${moment.toLocaleString()} (${time.dateTime})`;
  }
}

// --- copying

async function copy(button) {
  const target = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(target.textContent);
  } catch {
    // Without https a browser only lets a person copy: select it, so that Ctrl-C does.
    getSelection().selectAllChildren(target);
    button.textContent = "Selected";
    return;
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (button) copy(button);
});

tellTimes();
setInterval(tellTimes, 1000);
if (main) {
  connect();
  document.addEventListener("visibilitychange", onVisibility);
  setInterval(() => document.hidden || connection.dataset.state !== "live" || refresh(), EVERY_MS);
}
