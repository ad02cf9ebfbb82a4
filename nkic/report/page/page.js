"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const kinds = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f8: Float64Array };
  const column = (text, kind) => {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new kinds[kind](bytes.buffer);
  };
  const forms = {
    stream: "u2", start: "f8", time: "f8", done: "f8", name: "i4", line: "i4", iterations: "i4", before: "i4",
    cause: "u1", wait: "f8", bytes: "f8", event: "i4", end: "f8", tensor: "i4",
  };
  const read = (table) => Object.fromEntries(Object.entries(table).map(
    ([key, value]) => [key, typeof value === "string" && key in forms && key !== "name"
      ? column(value, forms[key]) : value]));
  const events = read(data.events);
  events.name = column(data.events.name, "i4");
  const path = read(data.path), triggers = read(data.triggers);
  const memories = data.memory.map(read);
  const count = events.start.length;

  // Each track's instructions, in order of time.
  const track_of = new Map(data.tracks.map((track, i) => [track.stream, i]));
  const lanes = data.tracks.map(() => []);
  for (let i = 0; i < count; i++) if (events.name[i] >= 0) lanes[track_of.get(events.stream[i])].push(i);
  const held = data.tracks.map(() => []);  // triggers of transfers, by the track of who triggers
  for (let n = 0; n < triggers.event.length; n++) held[track_of.get(triggers.stream[n])].push(n);
  const critical = new Uint8Array(count);
  for (const event of path.event) critical[event] = 1;

  const canvas = document.getElementById("timeline"), told = document.getElementById("told");
  const memory_canvas = document.getElementById("memory"), memory_told = document.getElementById("memory-told");
  const LANE = 26, GAP = 6, TOP = 22, LEFT = 74, PATH = 12;
  const view = { from: 0, to: data.end || 1, chosen: -1, line: -1 };
  const root = document.documentElement;
  let colours = {};
  const colour = (name) => colours[name] ??= getComputedStyle(root).getPropertyValue("--" + name).trim();

  const us = (ps) => (ps / 1e6).toLocaleString("en", { maximumFractionDigits: ps < 1e7 ? 4 : 2 }) + " us";
  const cycles = (ps) => Math.round(ps * data.clock / 1e6).toLocaleString("en") + " cycles";
  const size = (n) => n >= 1 << 20 ? (n / (1 << 20)).toFixed(1) + " MiB"
    : n >= 1024 ? (n / 1024).toFixed(1) + " KiB" : n + " B";

  const prepare = (target, height) => {
    const ratio = window.devicePixelRatio || 1, width = target.clientWidth;
    target.style.height = height + "px";
    target.width = Math.round(width * ratio);
    target.height = Math.round(height * ratio);
    const pen = target.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = colour("back");
    pen.fillRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    return [pen, width];
  };

  const axis = (pen, width, height) => {
    const span = view.to - view.from, rough = span / Math.max(2, (width - LEFT) / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    pen.textAlign = "center";
    for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
      const x = LEFT + (time - view.from) / span * (width - LEFT);
      pen.fillStyle = colour("line");
      pen.fillRect(x, TOP - 4, 1, height);
      pen.fillStyle = colour("soft");
      if (x < width - 30) pen.fillText(us(time), x, TOP / 2);
    }
  };

  // The first instruction of a lane that ends after a time: they do not overlap.
  const first_after = (lane, time) => {
    let low = 0, high = lane.length;
    while (low < high) {
      const middle = (low + high) >> 1, i = lane[middle];
      if (events.start[i] + events.time[i] <= time) low = middle + 1; else high = middle;
    }
    return low;
  };

  const draw_lane = (pen, lane, y, width, ink) => {
    const scale = (width - LEFT) / (view.to - view.from);
    const pixels = Math.max(1, Math.floor(width - LEFT));
    const first = first_after(lane, view.from);
    let last = first;
    while (last < lane.length && events.start[lane[last]] < view.to) last++;
    if (last - first > pixels / 4) return draw_shares(pen, lane, first, last, y, pixels, scale, ink);
    pen.textAlign = "left";
    for (let n = first; n < last; n++) {
      const i = lane[n];
      const x = Math.max(LEFT, LEFT + (events.start[i] - view.from) * scale);
      const end = Math.min(width, LEFT + (events.start[i] + events.time[i] - view.from) * scale);
      pen.globalAlpha = view.line >= 0 && events.line[i] !== view.line ? 0.25 : 1;
      pen.fillStyle = ink;
      pen.fillRect(x, y, Math.max(end - x, 0.7), LANE);
      if (critical[i]) { pen.fillStyle = colour("path"); pen.fillRect(x, y + LANE - 3, Math.max(end - x, 0.7), 3); }
      if (i === view.chosen) { pen.strokeStyle = colour("front"); pen.lineWidth = 2; pen.strokeRect(x, y, Math.max(end - x, 2), LANE); }
      if (end - x > 60) {
        pen.save(); pen.beginPath(); pen.rect(x, y, end - x, LANE); pen.clip();
        pen.fillStyle = colour("back");
        pen.fillText(data.names[events.name[i]], x + 4, y + LANE / 2);
        pen.restore();
      }
    }
    pen.globalAlpha = 1;
  };

  // Too many for single bars: as high as the lane is busy in that pixel.
  const draw_shares = (pen, lane, first, last, y, pixels, scale, ink) => {
    const shares = new Float32Array(pixels + 1), chosen = new Float32Array(pixels + 1);
    for (let n = first; n < last; n++) {
      const i = lane[n], own = view.line >= 0 && events.line[i] === view.line;
      let x = Math.max(0, (events.start[i] - view.from) * scale);
      const end = Math.min(pixels, (events.start[i] + events.time[i] - view.from) * scale);
      while (x < end) {
        const cell = Math.floor(x), next = Math.min(end, cell + 1);
        shares[cell] += next - x;
        if (own) chosen[cell] += next - x;
        if (next <= x) break;
        x = next;
      }
    }
    for (let cell = 0; cell < pixels; cell++) {
      if (!shares[cell]) continue;
      const height = Math.max(1, Math.min(1, shares[cell]) * LANE);
      pen.globalAlpha = view.line >= 0 ? 0.3 : 1;
      pen.fillStyle = ink;
      pen.fillRect(LEFT + cell, y + LANE - height, 1, height);
      if (chosen[cell]) {
        const part = Math.max(1, Math.min(1, chosen[cell]) * LANE);
        pen.globalAlpha = 1;
        pen.fillRect(LEFT + cell, y + LANE - part, 1, part);
      }
    }
    pen.globalAlpha = 1;
  };

  // Triggers stand below the instructions of their engine, at half the height.
  const draw_triggers = (pen, lane, y, width) => {
    const scale = (width - LEFT) / (view.to - view.from);
    pen.fillStyle = colour("dma");
    let reached = -1;
    for (const n of lane) {
      const start = triggers.start[n], end = start + triggers.time[n];
      if (end < view.from || start > view.to) continue;
      const x = Math.max(LEFT, LEFT + (start - view.from) * scale);
      const right = Math.max(x + 0.7, Math.min(width, LEFT + (end - view.from) * scale));
      if (right < reached + 0.3) continue;
      pen.globalAlpha = view.line >= 0 && events.line[triggers.event[n]] !== view.line ? 0.25 : 0.8;
      pen.fillRect(x, y + LANE / 2, right - x, LANE / 2);
      reached = right;
    }
    pen.globalAlpha = 1;
  };

  const draw_path = (pen, y, width) => {
    const scale = (width - LEFT) / (view.to - view.from);
    let reached = -1;
    for (let n = 0; n < path.event.length; n++) {
      if (path.end[n] < view.from || path.start[n] > view.to) continue;
      const x = Math.max(LEFT, LEFT + (path.start[n] - view.from) * scale);
      const end = Math.min(width, LEFT + (path.end[n] - view.from) * scale);
      if (end < reached + 0.5) continue;
      const track = data.tracks[track_of.get(events.stream[path.event[n]])];
      pen.fillStyle = track ? colour(track.engine) : colour("soft");
      pen.fillRect(x, y, Math.max(end - x, 0.7), PATH);
      reached = end;
    }
  };

  const draw = () => {
    const height = TOP + data.tracks.length * (LANE + GAP) + PATH + 8;
    const [pen, width] = prepare(canvas, height);
    axis(pen, width, height);
    data.tracks.forEach((track, n) => {
      const y = TOP + n * (LANE + GAP);
      pen.fillStyle = colour("fill");
      pen.fillRect(LEFT, y, width - LEFT, LANE);
      draw_lane(pen, lanes[n], y, width, colour(track.engine));
      draw_triggers(pen, held[n], y, width);
      pen.textAlign = "right";
      pen.fillStyle = colour("front");
      pen.fillText(track.name, LEFT - 8, y + LANE / 2);
    });
    const y = TOP + data.tracks.length * (LANE + GAP);
    pen.textAlign = "right";
    pen.fillStyle = colour("front");
    pen.fillText("path", LEFT - 8, y + PATH / 2);
    draw_path(pen, y, width);
    draw_memory();
  };

  const draw_memory = () => {
    const own = 90, height = TOP + memories.length * (own + GAP);
    const [pen, width] = prepare(memory_canvas, height);
    axis(pen, width, height);
    memories.forEach((memory, n) => {
      const y = TOP + n * (own + GAP), base = y + own;
      const changes = memory.changes ??= levels(memory);
      const most = memory.most ??= changes.reduce((top, [, level]) => Math.max(top, level), 0);
      const scale = (width - LEFT) / (view.to - view.from);
      pen.fillStyle = colour("fill");
      pen.fillRect(LEFT, y, width - LEFT, own);
      // A layer for each of the tensors that have most for longest, the others together on top.
      const layers = memory.layers ??= layers_of(memory);
      const below = new Float64Array(Math.max(1, Math.ceil(width - LEFT)) + 1);
      layers.forEach((layer, at) => {
        pen.fillStyle = layer.rest ? colour("bar") : colour(HUES[at]);
        let change = 0, level = 0;
        while (change < layer.changes.length && layer.changes[change][0] <= view.from) level = layer.changes[change++][1];
        for (let x = 0; x < below.length; x++) {
          const until = view.from + (x + 1) / scale;
          let top = level;
          while (change < layer.changes.length && layer.changes[change][0] < until) {
            level = layer.changes[change++][1];
            top = Math.max(top, level);
          }
          const high = Math.min(top / (most || 1) * (own - 14), own - 14 - below[x]);
          if (high > 0) pen.fillRect(LEFT + x, base - below[x] - high, 1, high);
          below[x] += Math.max(0, high);
        }
      });
      pen.fillStyle = colour("front");
      pen.textAlign = "right";
      pen.fillText(memory.name, LEFT - 8, y + own / 2);
      pen.textAlign = "left";
      pen.fillText(`at most ${size(most)} of ${size(memory.limit)}`, LEFT + 4, y + 8);
      let x = LEFT + 190;
      layers.forEach((layer, at) => {
        const wide = pen.measureText(layer.name).width + 28;
        if (x + wide > width) { x = width; return; }
        pen.fillStyle = layer.rest ? colour("bar") : colour(HUES[at]);
        pen.fillRect(x, y + 3, 10, 10);
        pen.fillStyle = colour("front");
        pen.fillText(layer.name, x + 14, y + 8);
        x += wide;
      });
    });
  };

  const HUES = ["tensor", "vector", "scalar", "gpsimd", "dma"];
  const layers_of = (memory) => {
    const owners = new Map();
    for (let i = 0; i < memory.start.length; i++) {
      const key = `${data.names[memory.tensor[i]]} (${data.lines[memory.line[i]].split("/").pop()})`;
      const owner = owners.get(key) ?? owners.set(key, { name: key, numbers: [], area: 0 }).get(key);
      owner.numbers.push(i);
      owner.area += memory.bytes[i] * (memory.end[i] - memory.start[i]);
    }
    const ranked = [...owners.values()].sort((a, b) => b.area - a.area || (a.name < b.name ? -1 : 1));
    const first = ranked.slice(0, HUES.length), rest = ranked.slice(HUES.length);
    if (rest.length) first.push({ name: `${rest.length} others`, numbers: rest.flatMap((one) => one.numbers), rest: true });
    for (const one of first) one.changes = levels(memory, one.numbers);
    return first;
  };

  const levels = (memory, numbers = memory.start.keys()) => {
    const times = [];
    for (const i of numbers) {
      times.push([memory.start[i], memory.bytes[i]], [memory.end[i], -memory.bytes[i]]);
    }
    times.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let level = 0;
    return times.map(([time, change]) => [time, level += change]);
  };

  const iterationOf = (i) => events.iterations[i] < 0 ? "" : ` (${data.iterations[events.iterations[i]]})`;
  const tell = (i) => {
    view.chosen = i;
    const before = events.before[i];
    const words = [
      `${data.names[events.name[i]]} in ${data.lines[events.line[i]]}${iterationOf(i)}`,
      `from ${us(events.start[i])}, ${cycles(events.time[i])}, result after ${cycles(events.done[i])}`,
    ];
    if (events.bytes[i]) words.push(size(events.bytes[i]));
    if (events.wait[i]) words.push(`waited ${cycles(events.wait[i])} (${data.causes[events.cause[i]]})`);
    if (before >= 0 && events.name[before] >= 0) {
      words.push(`after ${data.names[events.name[before]]} in ${data.lines[events.line[before]]}${iterationOf(before)}`);
    }
    if (critical[i]) words.push("on the critical path");
    told.textContent = words.join("; ");
  };

  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };
  const show = (from, to) => {
    const least = Math.max(1000, data.end / 1e7), span = Math.min(Math.max(to - from, least), data.end || 1);
    view.from = Math.min(Math.max(0, from), Math.max(0, data.end - span));
    view.to = view.from + span;
    redraw();
  };
  const zoom = (factor, at = (view.from + view.to) / 2) =>
    show(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const move = (part) => { const by = (view.to - view.from) * part; show(view.from + by, view.to + by); };
  const time_at = (target, event) => {
    const box = target.getBoundingClientRect();
    return view.from + Math.max(0, event.clientX - box.left - LEFT) / (box.width - LEFT) * (view.to - view.from);
  };
  const event_at = (event) => {
    const n = Math.floor((event.clientY - canvas.getBoundingClientRect().top - TOP) / (LANE + GAP));
    if (!lanes[n]) return -1;
    const time = time_at(canvas, event), near = (view.to - view.from) / canvas.clientWidth * 2;
    const found = lanes[n][first_after(lanes[n], time - near)];
    return found !== undefined && events.start[found] <= time + near ? found : -1;
  };
  const centre = (i) => {
    const span = view.to - view.from, middle = events.start[i] + events.time[i] / 2;
    if (middle < view.from || middle > view.to) show(middle - span / 2, middle + span / 2);
    tell(i);
    redraw();
  };

  for (const target of [canvas, memory_canvas]) {
    let held = null;
    target.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(event.deltaX / target.clientWidth);
      else zoom(event.deltaY > 0 ? 1.25 : 0.8, time_at(target, event));
    }, { passive: false });
    target.addEventListener("pointerdown", (event) => { held = event.clientX; target.setPointerCapture(event.pointerId); });
    target.addEventListener("pointerup", () => { held = null; });
    target.addEventListener("pointermove", (event) => {
      if (held !== null) { move((held - event.clientX) / (target.clientWidth - LEFT)); held = event.clientX; return; }
      if (target === memory_canvas) return tell_memory(time_at(target, event));
      const i = event_at(event);
      if (i >= 0 && i !== view.chosen) { tell(i); redraw(); }
    });
    target.addEventListener("keydown", (event) => {
      const keys = {
        ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), "+": () => zoom(0.5), "=": () => zoom(0.5),
        ArrowUp: () => zoom(0.5), ArrowDown: () => zoom(2), "-": () => zoom(2), "0": () => show(0, data.end),
        "]": () => along(1), "[": () => along(-1),
      };
      if (keys[event.key] && !event.ctrlKey && !event.metaKey) { event.preventDefault(); keys[event.key](); }
    });
  }

  // Along the critical path, from part to part that has an instruction.
  let at_part = -1;
  const along = (by) => {
    do at_part += by; while (path.event[at_part] !== undefined && events.name[path.event[at_part]] < 0);
    at_part = Math.min(Math.max(at_part, 0), path.event.length - 1);
    if (path.event.length && events.name[path.event[at_part]] >= 0) centre(path.event[at_part]);
  };

  const tell_memory = (time) => {
    const words = memories.map((memory) => {
      const owners = new Map();
      for (let i = 0; i < memory.start.length; i++) {
        if (memory.start[i] > time || memory.end[i] <= time) continue;
        const key = `${data.names[memory.tensor[i]]} (${data.lines[memory.line[i]]})`;
        owners.set(key, (owners.get(key) ?? 0) + memory.bytes[i]);
      }
      const ranked = [...owners].sort((a, b) => b[1] - a[1]);
      const sum = ranked.reduce((total, [, own]) => total + own, 0);
      return `${memory.name} ${size(sum)}: ` + (ranked.slice(0, 6).map(([key, own]) => `${key} ${size(own)}`).join(", ") || "nothing");
    });
    memory_told.textContent = `${us(time)}: ${words.join("; ")}`;
  };

  const button = (id, act) => document.getElementById(id).addEventListener("click", act);
  button("in", () => zoom(0.5));
  button("out", () => zoom(2));
  button("all", () => show(0, data.end));
  button("next", () => along(1));
  button("theme", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    colours = {};
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours = {}; redraw(); });
  for (const row of document.querySelectorAll("tr[data-line]")) {
    const choose = () => {
      const same = row.classList.contains("chosen");
      document.querySelectorAll("tr.chosen").forEach((other) => { other.classList.remove("chosen"); other.setAttribute("aria-pressed", "false"); });
      view.line = same ? -1 : data.lines.indexOf(row.dataset.line);
      if (!same) { row.classList.add("chosen"); row.setAttribute("aria-pressed", "true"); }
      redraw();
    };
    row.addEventListener("click", choose);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } });
  }
  for (const box of document.querySelectorAll(".source")) {
    const cells = [...box.querySelectorAll("td[data-part]")];
    for (const cell of cells) cell.style.setProperty("--part", cell.dataset.part);
    const hottest = cells.reduce((best, cell) => best && +best.dataset.part >= +cell.dataset.part ? best : cell, null);
    if (hottest) box.scrollTop = hottest.offsetTop - box.clientHeight / 3;
  }
  window.addEventListener("resize", redraw);
  draw();
  root.dataset.ready = String(count);
})();
