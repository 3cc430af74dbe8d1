"use strict";

const run = JSON.parse(document.getElementById("data").textContent);
const last = run.moments.length - 1;
const NOT_HERE = -1, UNKNOWN = -2; // of a byte: the page does not hold it; nobody accessed it
const MOST_ROWS = 200; // of the table of descriptors, beside those that matter
let at = 0, timer = null;

const find = (id) => document.getElementById(id);

/** A new element: text is text, never HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// --- memory: the bytes at the moment `at`; each delta is the exclusive or of the bytes before and after ---

const decode = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
for (const buffer of run.buffers) {
  buffer.data = decode(buffer.bytes);
  buffer.place = new Map(buffer.blocks.map((begin, i) => [begin, i * run.block]));
  buffer.moment = last; // of which `data` is
  for (const delta of buffer.deltas) delta[2] = decode(delta[2]);
}

function move(buffer, moment) {
  const low = Math.min(buffer.moment, moment), high = Math.max(buffer.moment, moment);
  for (const [when, place, bytes] of buffer.deltas) {
    if (when > low && when <= high) for (let i = 0; i < bytes.length; i++) buffer.data[place + i] ^= bytes[i];
  }
  buffer.moment = moment;
}

function placeOf(buffer, byte) {
  const begin = buffer.place.get(byte - (byte % run.block));
  return begin === undefined ? NOT_HERE : begin + (byte % run.block);
}

function byteAt(buffer, byte) {
  const place = placeOf(buffer, byte);
  if (place === NOT_HERE) return NOT_HERE;
  return buffer.unknown.some(([begin, end]) => byte >= begin && byte < end) ? UNKNOWN : buffer.data[place];
}

/** What the moment flips in each byte, by place. */
function flipsOf(buffer, moment) {
  const flips = new Map();
  for (const [when, place, bytes] of buffer.deltas) {
    if (when === moment) bytes.forEach((bits, i) => { if (bits) flips.set(place + i, bits); });
  }
  return flips;
}

// --- numbers ---

function float16(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

const readers = {
  FLOAT64: (view) => view.getFloat64(0, true), FLOAT32: (view) => view.getFloat32(0, true),
  FLOAT16: (view) => float16(view.getUint16(0, true)),
  UINT64: (view) => view.getBigUint64(0, true), INT64: (view) => view.getBigInt64(0, true),
  UINT32: (view) => view.getUint32(0, true), INT32: (view) => view.getInt32(0, true),
  UINT16: (view) => view.getUint16(0, true), INT16: (view) => view.getInt16(0, true),
  UINT8: (view) => view.getUint8(0), INT8: (view) => view.getInt8(0),
};

function read(type, bytes, half) {
  if (type === "UINT4" || type === "INT4") {
    const bits = half ? bytes[0] >> 4 : bytes[0] & 15;
    return String(type === "INT4" && bits > 7 ? bits - 16 : bits);
  }
  const value = readers[type](new DataView(Uint8Array.from(bytes).buffer));
  if (Object.is(value, -0)) return "-0";
  return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(6))) : String(value);
}

function element(buffer, flips, tensor, byte, half) {
  const now = [], before = [];
  for (let i = 0; i < Math.max(1, tensor.bits / 8); i++) {
    const value = byteAt(buffer, byte + i);
    if (value < 0) return { now: value === UNKNOWN ? "?" : "·", changed: false };
    now.push(value);
    before.push(value ^ (flips.get(placeOf(buffer, byte + i)) ?? 0));
  }
  const text = read(tensor.type, now, half), old = read(tensor.type, before, half);
  const mask = tensor.bits === 4 ? (half ? 0xf0 : 0x0f) : 0xff;
  return { now: text, before: old, changed: now.some((value, i) => (value ^ before[i]) & mask) };
}

// --- parts of the page ---

function severity(report) {
  return ["CORRUPTION", "ERROR"].includes(report.severity) ? "bad" : "warn";
}

function picture(svg, summary) {
  const details = make("details", {}, make("summary", {}, summary));
  details.addEventListener("toggle", () => {
    if (details.children.length > 1) return;
    const host = make("div", { class: "picture" });
    host.attachShadow({ mode: "open" }).innerHTML = svg; // made by us: its texts are escaped
    details.append(host);
  });
  return details;
}

function grid(plane, buffer, flips, tensor) {
  if (plane === null) return "… ";
  const table = make("table", { class: "grid" }, make("caption", {}, plane.title));
  for (const row of plane.rows) {
    const line = make("tr");
    for (const cell of row ?? [null]) {
      if (cell === null) { line.append(make("td", {}, "…")); continue; }
      const [byte, half, repeats] = cell, found = element(buffer, flips, tensor, byte, half);
      const title = `byte ${byte}${half ? ", upper half" : ""}${found.changed ? `; before: ${found.before}` : ""}`;
      line.append(make("td", { title, class: found.changed ? "changed" : "" }, repeats + found.now));
    }
    table.append(line);
  }
  return table;
}

function operand(each, flips) {
  const part = make("div", {}, make("h3", {}, `${each.access} ${each.name}`));
  const buffer = run.buffers[each.buffer];
  const where = buffer ? `bytes [${each.begin}, ${each.end}) of ${buffer.name}` : "memory of no buffer";
  const through = each.descriptor === null ? "" : `, descriptor ${each.descriptor.split(":")[1]}`;
  const tensor = each.tensor === null ? null : run.tensors[each.tensor];
  part.append(make("div", { class: "soft mono" }, (tensor ? `${tensor.text}; ` : "") + where + through));
  if (!tensor || !buffer) return part;
  part.append(make("div", { class: "wide" }, ...tensor.grids.map((plane) => grid(plane, buffer, flips(buffer), tensor))));
  if (tensor.picture) part.append(picture(tensor.picture, "Layout"));
  return part;
}

/** A report's lines; those in columns apart, since they are not to be wrapped. */
function reportText(text) {
  const parts = [];
  for (const line of text.split("\n")) {
    const kind = /\S {2,}\S/.test(line) ? "columns" : "";
    if (parts.at(-1)?.className === kind) parts.at(-1).append("\n", line);
    else parts.push(make("pre", { class: kind }, line));
  }
  return parts;
}

function showNow(moment) {
  const place = moment.kind === "host" ? "host" : [moment.queue, moment.list].filter(Boolean).join(", ");
  const parts = [make("h2", {}, `Moment ${at}: ${place}`), make("pre", {}, moment.text)];
  if (moment.site) parts.push(make("div", { class: "soft mono" }, `called at ${moment.site}`));
  if (moment.fields.length) {
    const rows = moment.fields.map(([name, value]) => make("tr", {}, make("th", {}, name), make("td", {}, value)));
    parts.push(make("table", {}, ...rows));
  }
  for (const report of moment.reports) {
    const box = make("div", { class: `report ${severity(report)}` }, ...reportText(report.text));
    if (report.picture) box.append(picture(report.picture, "Picture"));
    parts.push(box);
  }
  find("now").replaceChildren(...parts);
}

const lives = (buffer) => buffer.created <= at && (buffer.released === null || buffer.released > at);

function showBytes() {
  const number = Number(find("buffer").value), buffer = run.buffers[number];
  if (!buffer) return;
  if (!lives(buffer)) {
    find("bytes").replaceChildren(make("div", { class: "soft" }, "The buffer does not exist at this moment."));
    return;
  }
  move(buffer, at);
  const flips = flipsOf(buffer, at), touched = run.moments[at].operands.filter((each) => each.buffer === number);
  const table = make("table", { class: "bytes" });
  let next = 0;
  for (const begin of buffer.blocks) {
    if (begin !== next) table.append(gap(begin - next));
    for (let row = begin; row < Math.min(begin + run.block, buffer.size); row += 16) {
      table.append(bytesRow(buffer, row, flips, touched));
    }
    next = begin + run.block;
  }
  if (next < buffer.size) table.append(gap(buffer.size - next));
  find("bytes").replaceChildren(table);
}

const gap = (bytes) => make("tr", {}, make("td", { colspan: 17, class: "soft" }, `… ${bytes} bytes not in this page`));

function bytesRow(buffer, begin, flips, touched) {
  const line = make("tr", {}, make("th", { scope: "row" }, String(begin)));
  for (let byte = begin; byte < Math.min(begin + 16, buffer.size); byte++) {
    const value = byteAt(buffer, byte), flipped = flips.get(placeOf(buffer, byte));
    const kinds = [flipped ? "changed" : "", touched.some((each) => byte >= each.begin && byte < each.end) ? "touched" : ""];
    const cell = make("td", { class: kinds.join(" ") }, value < 0 ? "??" : value.toString(16).padStart(2, "0"));
    if (flipped) cell.title = `before: ${(value ^ flipped).toString(16).padStart(2, "0")}`;
    line.append(cell);
  }
  return line;
}

/** The values of states, descriptors or fences at the moment, and the keys that it changed. */
function valuesAt(name) {
  const values = new Map();
  for (let i = 0; i <= at; i++) for (const [key, value] of Object.entries(run.moments[i][name] ?? {})) values.set(key, value);
  return { values, changed: new Set(Object.keys(run.moments[at][name] ?? {})) };
}

function table(heads, rows, none) {
  if (!rows.length) return make("div", { class: "soft" }, none);
  const head = make("tr", {}, ...heads.map((each) => make("th", { scope: "col" }, each)));
  const lines = rows.map(([changed, ...cells]) => make("tr", {}, ...cells.map((cell, i) =>
    make("td", changed && i === cells.length - 1 ? { class: "changed" } : {}, cell))));
  return make("table", {}, head, ...lines);
}

function showTables() {
  const states = valuesAt("states");
  const living = run.buffers.map((buffer, i) => [buffer, String(i)]).filter(([buffer]) => lives(buffer));
  find("states").replaceChildren(table(["Buffer", "Bytes", "Heap", "State"], living.map(([buffer, i]) =>
    [states.changed.has(i), buffer.name, String(buffer.size), buffer.heap, states.values.get(i) ?? ""]), "none"));
  const descriptors = valuesAt("descriptors");
  const used = new Set(run.moments[at].operands.map((each) => each.descriptor));
  const matters = ([key], i) => i < MOST_ROWS || descriptors.changed.has(key) || used.has(key);
  const rows = [...descriptors.values].filter(matters), left = descriptors.values.size - rows.length;
  const slots = rows.map(([key, text]) => {
    const [heap, slot] = key.split(":");
    return [descriptors.changed.has(key), run.heaps[heap].name, slot, text];
  });
  find("descriptors").replaceChildren(table(["Heap", "Slot", "Descriptor"], slots, "none written"),
    left ? make("div", { class: "soft" }, `… ${left} more that this moment neither writes nor uses`) : "");
  const fences = valuesAt("fences");
  find("fences").replaceChildren(table(["Fence", "Value"], [...fences.values].map(([key, value]) =>
    [fences.changed.has(key), run.fences[key], value]), "none"));
}

function showOperands(moment) {
  const known = new Map();
  const flips = (buffer) => {
    if (!known.has(buffer)) { move(buffer, at); known.set(buffer, flipsOf(buffer, at)); }
    return known.get(buffer);
  };
  const parts = moment.operands.map((each) => operand(each, flips));
  find("operands").replaceChildren(...(parts.length ? [make("h2", {}, "Reads and writes"), ...parts] : []));
}

/** Shows a moment.  The buffer whose bytes are shown is one that it writes, or else stays. */
function show(number, follow = true) {
  if (last < 0) return; // a run without moments
  at = Math.max(0, Math.min(last, number));
  const moment = run.moments[at];
  showNow(moment);
  showOperands(moment);
  const written = moment.operands.find((each) => each.buffer !== null && each.access.includes("writes"));
  if (written && follow) find("buffer").value = String(written.buffer);
  showBytes();
  showTables();
  find("scrub").value = String(at);
  find("scrub").setAttribute("aria-valuetext", `moment ${at}: ${moment.name}`);
  find("position").textContent = `${at} of ${last}`;
  document.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const here = document.querySelector(`#moments [data-number="${at}"]`);
  here.setAttribute("aria-current", "step");
  keepInView(here);
  history.replaceState(null, "", `#moment-${at}`);
}

function keepInView(item) {
  const list = document.querySelector("nav"), box = item.getBoundingClientRect(), frame = list.getBoundingClientRect();
  if (box.top < frame.top) list.scrollTop += box.top - frame.top - 40;
  if (box.bottom > frame.bottom) list.scrollTop += box.bottom - frame.bottom + 40;
}

// --- moving ---

const isDispatch = (moment) => moment.dispatch, isReported = (moment) => moment.reports.length > 0;

function search(step, fits) {
  for (let i = at + step; i >= 0 && i <= last; i += step) if (fits(run.moments[i])) return i;
  return at;
}

function play(on) {
  clearInterval(timer);
  timer = on ? setInterval(() => (at < last ? show(at + 1) : play(false)), 700) : null;
  find("play").textContent = on ? "Pause" : "Play";
  find("play").setAttribute("aria-pressed", String(on));
}

const moves = {
  first: () => show(0), last: () => show(last), before: () => show(at - 1), next: () => show(at + 1),
  dispatch: () => show(search(1, isDispatch)), "dispatch-before": () => show(search(-1, isDispatch)),
  report: () => show(search(1, isReported)), "report-before": () => show(search(-1, isReported)),
  play: () => play(timer === null),
};

function key(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, input")) return;
  if (event.key === "/") { event.preventDefault(); find("seek").focus(); return; }
  const shift = event.shiftKey ? "-before" : "", space = event.key === " " && !event.target.closest("button, summary, a");
  const name = { ArrowLeft: "before", ArrowRight: "next", Home: "first", End: "last",
    d: `dispatch${shift}`, r: `report${shift}` }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!name && !space) return;
  event.preventDefault();
  moves[name ?? "play"]();
}

// --- the list of moments ---

/** `'add' (ELEMENT_WISE_ADD)` of a dispatch; other names as they are. */
const short = (name) => name.replace(/^Dispatch of compiled operator /, "").replace("(DML_OPERATOR_", "(");

function contains(moment, text) {
  const said = moment.reports.map((report) => report.text);
  const parts = [moment.name, moment.text, moment.list, moment.queue, moment.site, ...said];
  return parts.some((each) => each.toLowerCase().includes(text));
}

/** Only moments that contain the text of the search field are listed. */
function filter() {
  const text = find("seek").value.toLowerCase();
  let count = 0;
  for (const link of document.querySelectorAll("#moments a")) {
    const fits = contains(run.moments[link.dataset.number], text);
    link.parentElement.hidden = !fits;
    count += fits;
  }
  for (const head of document.querySelectorAll("#moments .head")) head.hidden = text !== "";
  find("found").textContent = text ? `${count} of ${run.moments.length}` : "";
}

function seek(event) {
  if (event.key === "Escape") { find("seek").value = ""; filter(); find("seek").blur(); }
  if (event.key !== "Enter") return;
  const text = find("seek").value.toLowerCase(), fits = (moment) => contains(moment, text);
  if (!text) return;
  play(false);
  const next = search(event.shiftKey ? -1 : 1, fits), first = run.moments.findIndex(fits);
  show(next === at && first >= 0 && !event.shiftKey ? first : next); // from the last one to the first
}

function listed(moment, number) {
  const badges = moment.reports.map((report) => make("b", { class: `mark ${severity(report)}`, title: report.id }, "!"));
  const link = make("a", { href: `#moment-${number}`, "data-number": number, title: moment.text, class: moment.kind },
    make("span", { class: "number" }, String(number)), make("span", {}, short(moment.name)), make("span", {}, ...badges));
  return make("li", {}, link);
}

function fill() {
  find("title").textContent = document.title = run.title;
  const items = [];
  let group = null;
  run.moments.forEach((moment, number) => {
    const name = moment.kind === "host" ? "host" : [moment.queue, moment.list].filter(Boolean).join(", ");
    if (name !== group) items.push(make("li", { class: "head" }, name));
    group = name;
    items.push(listed(moment, number));
  });
  find("moments").replaceChildren(...items);
  run.buffers.forEach((buffer, i) => find("buffer").append(make("option", { value: i }, `${buffer.name} (${buffer.size} bytes)`)));
  find("scrub").max = String(last);
  find("notes").append(...run.notes.map((note) => make("p", {}, note)));
}

function fromAddress() {
  const found = /^#moment-(\d+)$/.exec(location.hash);
  return found ? Number(found[1]) : null;
}

fill();
for (const button of document.querySelectorAll("button")) button.addEventListener("click", () => {
  if (button.id !== "play") play(false);
  moves[button.dataset.go]();
});
find("moments").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link) return;
  event.preventDefault();
  play(false);
  show(Number(link.dataset.number));
});
find("seek").addEventListener("input", filter);
find("seek").addEventListener("keydown", seek);
find("scrub").addEventListener("input", () => { play(false); show(Number(find("scrub").value)); });
find("buffer").addEventListener("change", showBytes);
addEventListener("keydown", key);
addEventListener("hashchange", () => { if (fromAddress() !== null && fromAddress() !== at) show(fromAddress()); });
new ResizeObserver(([entry]) => document.documentElement.style.setProperty("--head", `${entry.target.offsetHeight}px`))
  .observe(document.querySelector("header"));
if (last >= 0) show(fromAddress() ?? run.opening);
