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
  // The words of a time are ours (see tellTimes and sayEnds): only the moment itself is taken over.
  const isTime = before.nodeName === "TIME" || before.hasAttribute("data-clock");
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
    const answer = await fetch(location.href, { cache: "no-store", headers: { Accept: "text/html", "X-Fractal-Refresh": "1" } });
    if (answer.redirected) location.reload(); // logged out
    else if (answer.status === 404) location.assign("/ui"); // deleted
    else if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      takeOver(main, page.querySelector("main"));
      document.title = page.title;
      showZoom();
      sayEnds();
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

// --- ends of overrides: in the visitor's own time, with UTC beside it

const pad = (number) => String(number).padStart(2, "0");

function sayClock(element, moment, isNamed) {
  const utc = `${pad(moment.getUTCHours())}:${pad(moment.getUTCMinutes())} UTC`;
  const local = `${pad(moment.getHours())}:${pad(moment.getMinutes())}`;
  const isUtc = moment.getTimezoneOffset() === 0;
  const words = isNamed ? (isUtc ? "UTC" : utc) : isUtc ? utc : `${local}, ${utc}`;
  if (element.textContent !== words) element.textContent = words;
}

function sayEnds() {
  const tomorrow = new Date();
  tomorrow.setDate(tomorrow.getDate() + 1);
  tomorrow.setHours(9, 0, 0, 0);
  for (const element of document.querySelectorAll("[data-clock]")) {
    const choice = element.closest("label, button").querySelector("[data-tomorrow]") ?? element.closest("[data-tomorrow]");
    if (choice) choice.value = tomorrow.toISOString();
    sayClock(element, choice ? tomorrow : new Date(element.dataset.clock), Boolean(choice));
  }
}

function sayTyped() {
  const field = document.getElementById("until");
  if (!field) return;
  const form = field.form;
  const moment = new Date(field.value || Date.now());
  form.querySelector("[data-zone]").textContent = "in your time";
  form.elements.zone.value = String(-moment.getTimezoneOffset());
  form.querySelector("output").textContent = field.value ? `${moment.toISOString().slice(0, 16).replace("T", " ")} UTC` : "";
}

document.addEventListener("input", (event) => {
  if (event.target.id === "until") {
    event.target.form.querySelector('[name="end"][value="typed"]').checked = true;
    sayTyped();
  } else if (event.target.name === "end" && event.target.value !== "typed") {
    document.getElementById("until").value = "";
    sayTyped();
  }
});

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

// --- the drawing: buttons, Ctrl and the wheel, or two fingers make it larger and smaller

let zoom = 1;

function showZoom() {
  const drawing = document.querySelector(".drawing svg");
  if (!drawing) return;
  for (const button of document.querySelectorAll("button[data-zoom]")) button.hidden = false;
  drawing.setAttribute("width", Math.round(drawing.viewBox.baseVal.width * zoom));
  drawing.setAttribute("height", Math.round(drawing.viewBox.baseVal.height * zoom));
}

function zoomBy(factor) {
  zoom = Math.min(4, Math.max(0.25, zoom * factor));
  showZoom();
}

document.addEventListener("wheel", (event) => {
  if (!event.ctrlKey || !event.target.closest(".drawing")) return;
  event.preventDefault();
  zoomBy(event.deltaY < 0 ? 1.1 : 1 / 1.1);
}, { passive: false });

document.addEventListener("click", (event) => {
  const larger = event.target.closest("button[data-zoom]");
  if (larger) zoomBy(Number(larger.dataset.zoom));
  const button = event.target.closest("button[data-copy]");
  if (button) copy(button);
});

tellTimes();
showZoom();
sayEnds();
sayTyped();
setInterval(tellTimes, 1000);
if (main) {
  connect();
  document.addEventListener("visibilitychange", onVisibility);
  setInterval(() => document.hidden || connection.dataset.state !== "live" || refresh(), EVERY_MS);
}
