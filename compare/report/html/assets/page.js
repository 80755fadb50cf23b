"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const LAST = 62, BROKEN = 63;
  const code = (text, i) => alphabet.indexOf(text[i]);
  const panel = document.getElementById("tensor");
  const body = document.getElementById("tensor-body");
  const title = document.getElementById("tensor-name");
  const live = document.getElementById("live");
  let from = null; // the cell that the panel was opened from

  // Elements.
  const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
  const svg = (name, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== undefined && value !== null) node.setAttribute(key, value);
    }
    for (const child of children) {
      if (child !== undefined && child !== null) node.append(child);
    }
    return node;
  }

  // Numbers. What JSON has no number for is a text.
  const value = (x) => (x === "Infinity" ? Infinity : x === "-Infinity" ? -Infinity : x === "NaN" ? NaN : x);
  function text(x, digits = 3) {
    x = value(x);
    if (x === undefined || x === null || Number.isNaN(x)) return "NaN";
    if (!Number.isFinite(x)) return x > 0 ? "+Inf" : "-Inf";
    if (x === 0) return "0";
    const size = Math.abs(x);
    if (size >= 1e-4 && size < 1e6) return String(Number(x.toPrecision(digits)));
    return x.toExponential(digits - 1).replace(/\.?0+e/, "e");
  }
  const number = (x, digits, name) => el("data", { value: String(x), "data-name": name }, text(x, digits));
  const count = (n) => n.toLocaleString("en");
  const many = (n, one, more) => (n === 1 ? "1 " + one : count(n) + " " + more);

  const word = (run, i) => run.words[i || 0];
  const alone = (run, row) => word(run, row.i) || "not computed";

  // What a screen reader says of a cell.
  function label(run, row) {
    const parts = [row.k, word(run, row.v)];
    if (run.check) return parts.join("; ");
    if (!run.alone) parts.push(row.e === undefined ? "no error" : "error " + text(row.e) + (row.m === undefined ? "" : ", limit " + text(row.m)));
    parts.push("on its own inputs: " + alone(run, row));
    return parts.join("; ");
  }

  // Maps: one cell of each can be reached by Tab, the arrow keys go on from there.
  const runOf = (td) => data.runs[Number(td.dataset.r || 0)];
  const rowOf = (td) => runOf(td).rows[Number(td.dataset.i)];
  const cellsOf = (tr) => [...tr.cells].filter((c) => c.tagName === "TD" && !c.classList.contains("gap"));
  for (const table of document.querySelectorAll("table.map")) {
    const lines = [...table.tBodies[0].rows].map(cellsOf);
    let current = null;
    for (const td of lines.flat()) {
      td.setAttribute("role", "gridcell");
      td.tabIndex = -1;
      td.setAttribute("aria-label", td.dataset.i === undefined ? "nothing compared" : label(runOf(td), rowOf(td)));
      const first = td.dataset.i !== undefined && runOf(td).first === Number(td.dataset.i);
      if (!current || first && !current.first) current = Object.assign(td, { first });
    }
    if (!current) continue;
    current.tabIndex = 0;
    const move = (td) => {
      current.tabIndex = -1;
      current = td;
      td.tabIndex = 0;
      td.focus();
    };
    table.addEventListener("keydown", (event) => {
      const y = lines.findIndex((line) => line.includes(current));
      const x = lines[y].indexOf(current);
      const to = {
        ArrowLeft: [y, x - 1], ArrowRight: [y, x + 1], ArrowUp: [y - 1, x], ArrowDown: [y + 1, x],
        Home: [y, 0], End: [y, lines[y].length - 1], PageUp: [0, x], PageDown: [lines.length - 1, x],
      }[event.key];
      if (to) {
        event.preventDefault();
        const next = lines[to[0]] && lines[to[0]][to[1]];
        if (next) move(next);
      } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        open(current, true);
      }
    });
    table.addEventListener("click", (event) => {
      const td = event.target.closest("td");
      if (!td || !lines.some((line) => line.includes(td))) return;
      move(td);
      open(td, false);
    });
    table.addEventListener("focusin", (event) => heads(table, event.target));
    table.addEventListener("mouseover", (event) => heads(table, event.target));
  }
  function heads(table, target) {
    const td = target.closest("td");
    for (const on of table.querySelectorAll(".on")) on.classList.remove("on");
    if (!td || td.dataset.i === undefined) return;
    td.parentNode.classList.add("on");
    if (!td.title) td.title = label(runOf(td), rowOf(td));
  }

  // The chart: a click chooses the entry that is nearest.
  for (const chart of document.querySelectorAll(".chart .wide svg")) {
    chart.addEventListener("click", (event) => {
      const box = chart.getBoundingClientRect();
      const x = (event.clientX - box.left) * chart.viewBox.baseVal.width / box.width;
      const i = Math.round((x - Number(chart.dataset.start)) / Number(chart.dataset.step));
      const scope = chart.closest("details.run") || document;
      const cell = scope.querySelector(".maps td[data-i]");
      if (!cell || i < 0 || i >= Number(chart.dataset.rows)) return;
      const run = Number(cell.dataset.r || 0);
      if (data.runs[run].rows.length !== Number(chart.dataset.rows)) return; // some are not in this file
      show(run, i, chart.closest("section"));
    });
  }

  function open(td, focus) {
    if (td.dataset.i === undefined) {
      live.textContent = "Nothing was compared there, or its numbers are in the JSON report only.";
      return;
    }
    from = td;
    show(Number(td.dataset.r || 0), Number(td.dataset.i), td.closest("section"));
    live.textContent = "Below: " + rowOf(td).k;
    if (focus) title.focus();
    panel.scrollIntoView({ block: "nearest" });
  }
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && from) {
      event.preventDefault();
      from.focus();
    }
  });

  // The panel.
  function show(at, i, after) {
    const run = data.runs[at], row = run.rows[i];
    for (const td of document.querySelectorAll(".map td.at")) td.classList.remove("at");
    for (const td of document.querySelectorAll('.map td[data-i="' + i + '"]')) {
      if (Number(td.dataset.r || 0) === at) td.classList.add("at");
    }
    const slot = after && after.parentNode.querySelector(".slot");
    if (slot) slot.after(panel);
    panel.hidden = false;
    panel.dataset.key = row.k;
    title.textContent = (run.name ? run.name + ": " : "") + row.k;
    body.replaceChildren(facts(run, row), cards(run, row, i), tried(row));
  }

  function facts(run, row) {
    const list = el("dl");
    const add = (name, ...what) => list.append(el("dt", {}, name), el("dd", {}, ...what));
    const verdict = word(run, row.v) + (row.c ? " (" + word(run, row.c) + ")" : "");
    add("verdict", el("b", { class: "word " + (/^(MISMATCH|RED FLAG)/.test(word(run, row.v)) ? "bad" : "") }, verdict), row.d ? ": " + row.d : "");
    if (row.o) add("operation", word(run, row.o));
    add("tensor", row.s.join(" x ") + ", " + word(run, row.t));
    if (row.e !== undefined) {
      const what = ["relative L2 ", number(row.e, 3, "error")];
      if (row.m !== undefined) what.push(", limit ", number(row.m, 3, "limit"), " (" + word(run, row.f) + ")");
      add("error", ...what);
    }
    for (const [what, error, limit] of row.g || []) add("", word(run, what) + " ", number(error), ", limit ", number(limit));
    if (row.x !== undefined) {
      add("largest at", "[" + row.w.join(" ") + "]: " + run.local + " ", number(row.a[0], 9, "local"), ", " + run.reference + " ", number(row.a[1], 9, "reference"), ", difference ", number(row.x, 3, "difference"));
    }
    if (row.u) add("unequal", el("data", { value: row.u[0], "data-name": "unequal" }, count(row.u[0])), " of " + many(row.u[1], "element", "elements"));
    for (const one of row.q || []) add(one.what, number(one.value, 6, one.what));
    if (!run.check) add("own inputs", alone(run, row) + (row.z ? ": " + count(row.z[0]) + " of " + many(row.z[1], "element", "elements") + " outside" : "") + (row.y ? ": " + word(run, row.y) : ""));
    for (const note of row.n || []) add("note", note);
    return list;
  }

  function cards(run, row, i) {
    const all = el("div", { class: "cards" });
    const p = row.p;
    if (!p) {
      all.append(el("p", { class: "quiet" }, "There is no picture of this tensor: its shapes differ, there were too many tensors, or this page was made from another report."));
      return all;
    }
    if (p.s[0] * p.s[1] > 1) all.append(map(p, run.alone));
    if (p.h) all.append(headsByLayers(run, row));
    if (p.d) all.append(scatter(run, p));
    if (p.b || p.x) all.append(histogram(p, run.alone));
    if (p.w) all.append(worst(run, row, p));
    if (!run.alone && !p.w) all.append(el("p", { class: "quiet" }, "No element that counts differs."));
    return all;
  }

  const figure = (name, picture, ...below) => el("figure", {}, el("figcaption", {}, name), picture, ...below.map((b) => el("p", {}, b)));
  const range = (i, cells, size) => {
    const a = Math.ceil(i * size / cells), b = Math.ceil((i + 1) * size / cells) - 1;
    return a === b ? String(a) : a + " to " + b;
  };
  // A shade of an error is a factor of 8, and one of a value, which is no alarm, a factor of 4.
  const special = (c) => c === 0 || c === 1 || c === BROKEN;
  const shade = (c, single) => special(c) ? "m" + c : single ? "v" + Math.max(1, 4 - Math.floor((LAST - c) / 4)) : "h" + Math.max(1, 9 - Math.floor((LAST - c) / 6));

  function map(p, single) {
    const unit = single ? "|value|" : "error", broken = single ? "not finite" : "not finite, or masked on one side";
    const [rows, columns] = p.c;
    const w = Math.max(4, Math.min(14, Math.floor(440 / columns))), h = Math.max(6, Math.min(14, Math.floor(260 / rows)));
    const left = 44, top = 6;
    const picture = svg("svg", { width: left + columns * w + 2, height: top + rows * h + 20, viewBox: "0 0 " + (left + columns * w + 2) + " " + (top + rows * h + 20), role: "img" });
    let most = -1, where = "";
    for (let y = 0; y < rows; y++) {
      for (let x = 0; x < columns; x++) {
        const c = code(p.m, y * columns + x);
        const place = p.n[0] + " " + range(y, rows, p.s[0]) + ", " + p.n[1] + " " + range(x, columns, p.s[1]);
        const size = c === 0 ? "nothing compared" : c === 1 ? "0" : c === BROKEN ? broken : "about " + text(value(p.t) * 2 ** ((c - LAST) / 2), 2);
        picture.append(svg("rect", { class: shade(c, single), x: left + x * w, y: top + y * h, width: w - (w > 5 ? 1 : 0), height: h - (h > 5 ? 1 : 0) }, svg("title", {}, place + ": " + size)));
        if (c > most) [most, where] = [c, place];
      }
    }
    for (let y = 0; y < rows; y++) {
      if (y % Math.max(1, Math.ceil(rows / 10)) === 0) picture.append(svg("text", { x: left - 5, y: top + y * h + h / 2 + 4, "text-anchor": "end" }, range(y, rows, p.s[0]).split(" ")[0]));
    }
    picture.append(svg("text", { x: left, y: top + rows * h + 14 }, "0"));
    if (p.s[1] > 1) picture.append(svg("text", { x: left + columns * w, y: top + rows * h + 14, "text-anchor": "end" }, String(p.s[1] - 1)));
    const said = most <= 1 ? unit + " 0 everywhere" : most === BROKEN ? broken + ", at " + where : "the largest " + unit + " is " + text(p.t) + ", in " + where;
    picture.setAttribute("aria-label", "Map of the " + unit + " by " + p.n[0] + " and " + p.n[1] + ": " + said);
    return figure("Largest " + unit + " by " + p.n[0] + " (down) and " + p.n[1] + " (across)", picture, said + "; each shade is a factor of " + (single ? 4 : 8));
  }

  // The same entry of all layers of this pass, by head.
  function headsByLayers(run, row) {
    const kind = (r) => r.k.replace(/layers\.\d+\./, "layers.*.");
    const same = run.rows.filter((r) => r.p && r.p.h && kind(r) === kind(row));
    const heads = Math.max(...same.map((r) => r.p.h.length));
    const top = Math.max(...same.flatMap((r) => [...r.p.h].map((letter) => alphabet.indexOf(letter))).filter((c) => c !== BROKEN), 0);
    const w = Math.max(8, Math.min(16, Math.floor(440 / same.length))), h = Math.max(6, Math.min(16, Math.floor(220 / heads))), left = 44;
    const picture = svg("svg", { width: left + same.length * w + 2, height: heads * h + 22, viewBox: "0 0 " + (left + same.length * w + 2) + " " + (heads * h + 22), role: "img" });
    const size = (c) => (c === 0 ? "nothing compared" : c === 1 ? "0" : c === BROKEN ? "not finite" : "about " + text(10 ** ((c - 2) / 4 - 12), 1));
    const at = (r) => (r.l < 0 ? r.k : "layer " + r.l);
    let worstCode = -1, where = "";
    same.forEach((r, x) => {
      for (let y = 0; y < r.p.h.length; y++) {
        const c = code(r.p.h, y);
        const cls = special(c) ? "m" + c : run.alone ? "v" + Math.max(1, 4 - Math.floor((top - c) / 4)) : "h" + Math.max(1, Math.min(9, Math.floor((c - 2) / 4) - 2));
        picture.append(svg("rect", { class: cls, x: left + x * w, y: y * h, width: w - 1, height: h - 1 }, svg("title", {}, at(r) + ", head " + y + ": " + size(c))));
        if (c > worstCode) [worstCode, where] = [c, at(r) + ", head " + y];
      }
      if (r === row) picture.append(svg("rect", { class: "far", x: left + x * w - 0.5, y: 0, width: w, height: r.p.h.length * h }));
    });
    for (let y = 0; y < heads; y += Math.max(1, Math.ceil(heads / 8))) picture.append(svg("text", { x: left - 5, y: y * h + h / 2 + 4, "text-anchor": "end" }, String(y)));
    same.forEach((r, x) => {
      if (x % Math.max(1, Math.ceil(same.length / 12)) === 0) picture.append(svg("text", { x: left + x * w, y: heads * h + 14 }, String(r.l)));
    });
    const what = run.alone ? "root mean square" : "relative L2";
    const said = "largest " + what + " in " + where + ": " + size(worstCode);
    picture.setAttribute("aria-label", what + " by head and layer: " + said);
    return figure("Heads (down) by layers (across): " + what, picture, said + "; each shade is a factor of 10");
  }

  function scatter(run, p) {
    const n = p.k, size = 224, cell = size / n, left = 8, low = value(p.r[0]), high = value(p.r[1]);
    const picture = svg("svg", { width: size + left + 2, height: size + 20, viewBox: "0 0 " + (size + left + 2) + " " + (size + 20), role: "img" });
    picture.append(svg("rect", { class: "frame", x: left, y: 1, width: size, height: size }));
    for (let i = 0; i < p.d.length; i++) {
      const c = code(p.d, i);
      if (c === 0) continue;
      picture.append(svg("rect", { class: "h" + Math.min(9, 2 + Math.floor(c / 4)), x: left + (i % n) * cell, y: 1 + Math.floor(i / n) * cell, width: cell, height: cell }, svg("title", {}, "about " + many(Math.round(2 ** ((c - 1) / 2)), "element", "elements"))));
    }
    picture.append(svg("path", { class: "diagonal", d: "M" + left + " " + (size + 1) + "L" + (size + left) + " 1" }));
    let far = 0;
    for (const [, l, r] of p.w || []) {
      const x = left + (value(r) - low) / (high - low) * size, y = 1 + size - (value(l) - low) / (high - low) * size;
      if (!Number.isFinite(x + y)) continue;
      far++;
      picture.append(svg("circle", { class: "far", cx: x, cy: y, r: 4 }));
    }
    picture.append(svg("text", { x: left, y: size + 15 }, text(low)), svg("text", { x: size + left, y: size + 15, "text-anchor": "end" }, text(high)));
    picture.setAttribute("aria-label", run.local + " against " + run.reference + ", from " + text(low) + " to " + text(high) + ", with the diagonal on which both are equal");
    return figure(run.reference + " (across) against " + run.local + " (up)", picture, "the dashed line is where both are equal" + (far ? "; circles are the worst values" : ""));
  }

  function histogram(p, single) {
    const bars = (p.b || []).map((n, i) => [p.f === undefined ? i : p.f + i, n]);
    const most = Math.max(p.q, p.x || 0, ...(p.b || [])), width = 18, high = 150, left = 8, gap = 12;
    const total = left + width + gap + bars.length * width + 4 + (p.x ? gap + width : 0);
    const picture = svg("svg", { width: Math.max(total, 190), height: high + 22, viewBox: "0 0 " + Math.max(total, 190) + " " + (high + 22), role: "img" });
    const tall = (n) => (n === 0 ? 0 : Math.max(2, Math.log10(n + 1) / Math.log10(most + 1) * (high - 14)));
    const bar = (x, n, name, cls) => picture.append(svg("rect", { class: cls || "bar", x, y: high - tall(n), width: width - 2, height: tall(n) }, svg("title", {}, name + ": " + many(n, "element", "elements"))));
    bar(left, p.q, single ? "zero" : "equal");
    const unit = single ? "the root mean square" : "the reference's root mean square";
    bars.forEach(([bin, n], i) => {
      const x = left + width + gap + i * width;
      bar(x, n, text(10 ** (bin / 2), 1) + " to " + text(10 ** ((bin + 1) / 2), 1) + " of " + unit);
      if (bin % 2 === 0 || bars.length === 1) picture.append(svg("text", { x, y: high + 14 }, bin % 2 === 0 ? "1e" + bin / 2 : text(10 ** (bin / 2), 1)));
    });
    const broken = single ? "not finite" : "not finite, or masked on one side";
    if (p.x) {
      bar(total - width - 2, p.x, broken, "m63");
      picture.append(svg("text", { x: total - width, y: high + 14 }, "\u221e"));
    }
    picture.append(svg("text", { x: left, y: high + 14 }, single ? "0" : "="), svg("path", { class: "axis", d: "M" + left + " " + high + "H" + total }));
    const said = count(p.q) + (single ? " of 0" : " equal") + (p.x ? ", " + count(p.x) + " " + broken : "") + (bars.length === 0 ? "" : "; the others from " + text(10 ** (bars[0][0] / 2), 1) + " to " + text(10 ** ((bars[bars.length - 1][0] + 1) / 2), 1) + " times " + unit);
    picture.setAttribute("aria-label", "Histogram: " + said);
    return figure(single ? "Elements by size" : "Elements by error", picture, said + "; heights are logarithmic");
  }

  function worst(run, row, p) {
    const lines = p.w.map(([index, l, r]) => {
      const cells = [el("th", { scope: "row" }, "[" + index.join(" ") + "]"), el("td", {}, number(l, 9))];
      if (!run.alone) cells.push(el("td", {}, number(r, 9)), el("td", {}, text(Math.abs(value(l) - value(r)))));
      return el("tr", {}, ...cells);
    });
    const header = run.alone ? ["at", "value"] : ["at", run.local, run.reference, "difference"];
    return el("figure", { class: "values" }, el("figcaption", {}, run.alone ? "Largest values" : "Worst values"),
      el("div", { class: "wide" }, el("table", {}, el("thead", {}, el("tr", {}, ...header.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, ...lines))));
  }

  function tried(row) {
    const h = row.h;
    if (!h) return "";
    const list = el("ul");
    const add = (...what) => list.append(el("li", {}, ...what));
    if (h.at) add("at: " + h.at);
    if (h.proof) add("proof: " + h.proof);
    for (const other of h.aliases || []) add("the same here: " + other);
    for (const other of h.undecided || []) add("gives all elements, with other values: " + other);
    add(many(h.tried, "edit was", "edits were") + " tried" + (h.looked && h.looked.length ? ": " + h.looked.join(", ") : ""));
    if (h.differs) add("differs: " + h.differs);
    if (h.nearest) add("nearest: " + h.nearest + ": " + h.leaves);
    if (h.stopped) add("the search ended at its budget, before all edits were tried");
    if (h.page) add("see " + h.page);
    return el("section", { class: "tried" }, el("h3", {}, "Hypotheses: " + h.text), list);
  }

  // The first divergence is shown at once, so that it is also on paper.
  for (let i = 0; i < data.runs.length; i++) {
    const run = data.runs[i];
    if (run.first < 0 || run.rows.length === 0) continue;
    const failing = word(run, run.rows[run.first].v) === "MISMATCH";
    if (!failing && data.runs.length > 1 && i < data.runs.length - 1) continue;
    const cell = [...document.querySelectorAll('.map td[data-i="' + run.first + '"]')].find((td) => Number(td.dataset.r || 0) === i);
    from = cell || null;
    show(i, run.first, cell && cell.closest("section"));
    break;
  }
  document.documentElement.dataset.ready = "true";
})();
