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
    cause: "u1", wait: "f8", bytes: "f8", event: "i4", end: "f8", tensor: "i4", after: "i4", needs: "i4",
  };
  const read = (table) => Object.fromEntries(Object.entries(table).map(
    ([key, value]) => [key, typeof value === "string" && key in forms && key !== "name"
      ? column(value, forms[key]) : value]));
  const events = read(data.events);
  events.name = column(data.events.name, "i4");
  const edges = read(data.edges), path = read(data.path), triggers = read(data.triggers);
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
  const marks = data.tracks.map(() => []);  // parts of the critical path, by the track that they hold
  for (let n = 0; n < path.event.length; n++) marks[track_of.get(path.stream[n])]?.push(n);

  const element = (id) => document.getElementById(id);
  const canvas = element("timeline"), told = element("told"), memory_canvas = element("memory"), memory_told = element("memory-told");
  const LEFT = 74, TOP = 22, GAP = 9;
  const whole = { canvas, lane: 26, gap: GAP, mark: 4 };
  const lane_of_strip = Math.max(3, Math.min(12, Math.floor(110 / data.tracks.length) - 4));
  const strip = { canvas: element("strip"), lane: lane_of_strip, gap: 4, mark: 2 };
  // `span` is what the user measured; `used` whether the memory chart is enlarged.
  // `shown` has the instructions of a line of the source, or that are searched for; null is all.
  const view = { from: 0, to: data.end || 1, chosen: -1, shown: null, span: null, used: false };
  const faint = (i) => view.shown !== null && !view.shown.has(i);
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
      if (x > LEFT - 1 && x < width - 30) pen.fillText(us(time), x, TOP / 2);
    }
  };

  const place = (width) => {
    const scale = (width - LEFT) / (view.to - view.from);
    return [scale, (time) => Math.min(width, Math.max(LEFT, LEFT + (time - view.from) * scale))];
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

  const draw_lane = (pen, form, lane, y, width, ink) => {
    const [scale, x_of] = place(width);
    const pixels = Math.max(1, Math.floor(width - LEFT));
    const first = first_after(lane, view.from);
    let last = first;
    while (last < lane.length && events.start[lane[last]] < view.to) last++;
    if (last - first > pixels / 4) return draw_shares(pen, form, lane, first, last, y, pixels, scale, ink);
    pen.textAlign = "left";
    for (let n = first; n < last; n++) {
      const i = lane[n], x = x_of(events.start[i]), wide = x_of(events.start[i] + events.time[i]) - x;
      pen.globalAlpha = faint(i) ? 0.25 : 1;
      pen.fillStyle = ink;
      pen.fillRect(x, y, Math.max(wide, 0.7), form.lane);
      if (i === view.chosen) { pen.strokeStyle = colour("front"); pen.lineWidth = 2; pen.strokeRect(x, y, Math.max(wide, 2), form.lane); }
      if (wide > 60 && form === whole) {
        pen.save(); pen.beginPath(); pen.rect(x, y, wide, form.lane); pen.clip();
        pen.fillStyle = colour("back");
        pen.fillText(data.names[events.name[i]], x + 4, y + form.lane / 2);
        pen.restore();
      }
    }
    pen.globalAlpha = 1;
  };

  // Too many for single bars: as high as the lane is busy in that pixel.
  const draw_shares = (pen, form, lane, first, last, y, pixels, scale, ink) => {
    const shares = new Float32Array(pixels + 1), chosen = new Float32Array(pixels + 1);
    for (let n = first; n < last; n++) {
      const i = lane[n], own = view.shown !== null && !faint(i);
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
      const height = Math.max(1, Math.min(1, shares[cell]) * form.lane);
      pen.globalAlpha = view.shown !== null ? 0.3 : 1;
      pen.fillStyle = ink;
      pen.fillRect(LEFT + cell, y + form.lane - height, 1, height);
      if (chosen[cell]) {
        const part = Math.max(1, Math.min(1, chosen[cell]) * form.lane);
        pen.globalAlpha = 1;
        pen.fillRect(LEFT + cell, y + form.lane - part, 1, part);
      }
    }
    pen.globalAlpha = 1;
  };

  // Spans in order of time, at least a pixel wide; those that would cover the one before are left out.
  const draw_spans = (pen, width, numbers, start, end, y, height, alpha) => {
    const x_of = place(width)[1];
    let reached = -1;
    for (const n of numbers) {
      if (end(n) < view.from || start(n) > view.to) continue;
      const x = x_of(start(n)), right = Math.max(x + 0.7, x_of(end(n)));
      if (right < reached + 0.3) continue;
      pen.globalAlpha = alpha(n);
      pen.fillRect(x, y, right - x, height);
      reached = right;
    }
    pen.globalAlpha = 1;
  };

  const y_of = (form, n) => TOP + n * (form.lane + form.gap);
  const height_of = (form) => y_of(form, data.tracks.length) + 2;
  const draw_lanes = (form) => {
    const height = height_of(form), [pen, width] = prepare(form.canvas, height);
    axis(pen, width, height);
    data.tracks.forEach((track, n) => {
      const y = y_of(form, n), ink = colour(track.engine);
      pen.fillStyle = colour("fill");
      pen.fillRect(LEFT, y, width - LEFT, form.lane);
      draw_lane(pen, form, lanes[n], y, width, ink);
      // Triggers stand below the instructions of their engine, at half the height.
      pen.fillStyle = ink;
      draw_spans(pen, width, held[n], (i) => triggers.start[i], (i) => triggers.start[i] + triggers.time[i],
        y + form.lane / 2, form.lane / 2, (i) => faint(triggers.event[i]) ? 0.25 : 1);
      pen.fillStyle = colour("path");
      draw_spans(pen, width, marks[n], (i) => path.start[i], (i) => path.end[i], y + form.lane + 2, form.mark, () => 1);
      pen.textAlign = "right";
      pen.fillStyle = colour("front");
      if (form === whole || form.lane > 8) pen.fillText(track.name, LEFT - 8, y + form.lane / 2);
    });
    draw_span(pen, width, height);
    if (form === whole) draw_arrows(pen, width);
  };

  const draw_span = (pen, width, height) => {
    if (!view.span) return;
    const x_of = place(width)[1], [from, to] = view.span.map(x_of);
    pen.fillStyle = colour("span");
    pen.globalAlpha = 0.15;
    pen.fillRect(from, 0, to - from, height);
    pen.globalAlpha = 1;
    for (const x of [from, to]) pen.fillRect(x, 0, 1, height);
  };

  if (!edges.after.length) document.getElementById("arrows").remove();
  // The dependences of each instruction, by both of its ends.
  const needs = new Map(), needed = new Map();
  for (let n = 0; n < edges.after.length; n++) {
    for (const [of, from, to] of [[needs, edges.after[n], edges.needs[n]], [needed, edges.needs[n], edges.after[n]]]) {
      if (of.has(from)) of.get(from).push(to); else of.set(from, [to]);
    }
  }

  // Arrows from what the chosen instruction needs, and to what needs it; bold from what it waited for.
  const draw_arrows = (pen, width) => {
    const chosen = view.chosen, waited = chosen >= 0 ? events.before[chosen] : -1;
    const arrow = (before, after, bold) => {
      if (before < 0 || events.name[before] < 0 || events.name[after] < 0) return;
      const x_of = place(width)[1], y = (i) => y_of(whole, track_of.get(events.stream[i])) + whole.lane / 2;
      const from = [x_of(events.start[before] + events.time[before]), y(before)], to = [x_of(events.start[after]), y(after)];
      const turn = Math.atan2(to[1] - from[1], to[0] - from[0]), head = (by) => pen.lineTo(to[0] - 7 * Math.cos(turn + by), to[1] - 7 * Math.sin(turn + by));
      pen.lineWidth = bold ? 2.5 : 1;
      pen.beginPath();
      pen.moveTo(...from); pen.lineTo(...to); head(0.4); pen.moveTo(...to); head(-0.4);
      pen.stroke();
    };
    pen.save();
    pen.beginPath(); pen.rect(LEFT, 0, width - LEFT, height_of(whole)); pen.clip();
    pen.strokeStyle = colour("front");
    for (const before of needs.get(chosen) ?? []) if (before !== waited) arrow(before, chosen, false);
    for (const after of needed.get(chosen) ?? []) arrow(chosen, after, false);
    if (waited >= 0) arrow(waited, chosen, true);
    pen.restore();
  };

  const draw = () => {
    draw_lanes(whole);
    if (root.classList.contains("pinned")) draw_lanes(strip);
    draw_memory();
  };

  const OWN = 110;
  const draw_memory = () => {
    const height = TOP + memories.length * (OWN + GAP);
    const [pen, width] = prepare(memory_canvas, height), [scale] = place(width);
    axis(pen, width, height);
    memories.forEach((memory, n) => {
      const y = TOP + n * (OWN + GAP), base = y + OWN, top = (view.used ? memory.most : memory.limit) || 1;
      pen.fillStyle = colour("fill");
      pen.fillRect(LEFT, y, width - LEFT, OWN);
      // A layer for each of the tensors that have most for longest, the others together on top.
      const below = new Float64Array(Math.max(1, Math.ceil(width - LEFT)) + 1);
      for (const layer of memory.layers) {
        pen.fillStyle = colour(layer.hue);
        let change = 0, level = 0;
        while (change < layer.changes.length && layer.changes[change][0] <= view.from) level = layer.changes[change++][1];
        for (let x = 0; x < below.length; x++) {
          const until = view.from + (x + 1) / scale;
          let most = level;
          while (change < layer.changes.length && layer.changes[change][0] < until) {
            level = layer.changes[change++][1];
            most = Math.max(most, level);
          }
          const high = Math.max(0, Math.min(most / top * OWN, OWN - below[x]));
          if (high > 0) pen.fillRect(LEFT + x, base - below[x] - high, 1, high - (high > 4 ? 1 : 0));
          below[x] += high;
        }
      }
      pen.textAlign = "right";
      for (const part of [0, 0.5, 1]) {
        const at = base - part * OWN;
        pen.fillStyle = colour("line");
        pen.fillRect(LEFT - 4, at, width, 1);
        pen.fillStyle = colour("soft");
        pen.fillText(part ? size(part * top) : memory.name, LEFT - 8, part === 1 ? at + 6 : part ? at : at - 6);
      }
    });
    draw_span(pen, width, height);
  };

  const HUES = ["owner-1", "owner-2", "owner-3", "owner-4", "owner-5"];
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
    first.forEach((layer, at) => { layer.hue = HUES[at]; });
    if (rest.length) first.push({ name: `${rest.length} others`, numbers: rest.flatMap((one) => one.numbers), hue: "owner-rest" });
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

  // The figures and the legend of each memory.
  for (const memory of memories) {
    memory.layers = layers_of(memory);
    memory.most = levels(memory).reduce((top, [, level]) => Math.max(top, level), 0);
    const list = document.createElement("ul"), title = document.createElement("li");
    list.className = "legend";
    title.textContent = `${memory.name}: at most ${size(memory.most)} of ${size(memory.limit)} hold data at one time`;
    list.append(title);
    for (const layer of memory.layers) {
      const item = document.createElement("li"), mark = document.createElement("i");
      mark.style.background = `var(--${layer.hue})`;
      item.append(mark, layer.name);
      list.append(item);
    }
    memory_canvas.before(list);
  }

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
    const counts = [needs, needed].map((of) => (of.get(i) ?? []).length.toLocaleString("en"));
    if (edges.after.length) words.push(`needs ${counts[0]}, needed by ${counts[1]}, besides the order within its engine`);
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
    const n = Math.floor((event.clientY - canvas.getBoundingClientRect().top - TOP) / (whole.lane + GAP));
    if (!lanes[n]) return -1;
    const time = time_at(canvas, event), near = (view.to - view.from) / canvas.clientWidth * 2;
    const found = lanes[n][first_after(lanes[n], time - near)];
    return found !== undefined && events.start[found] <= time + near ? found : -1;
  };
  // What a span of time takes, and how busy each lane is in it.
  const measure = (from, to) => {
    view.span = from === to ? null : [Math.max(0, Math.min(from, to)), Math.min(data.end, Math.max(from, to))];
    redraw();
    if (!view.span) return;
    const [start, end] = view.span, busy = [];
    data.tracks.forEach((track, n) => {
      let time = 0;
      const add = (first, last) => { time += Math.max(0, Math.min(last, end) - Math.max(first, start)); };
      for (const i of lanes[n]) add(events.start[i], events.start[i] + events.time[i]);
      for (const i of held[n]) add(triggers.start[i], triggers.start[i] + triggers.time[i]);
      if (time) busy.push(`${track.name} ${Math.round(100 * time / (end - start))}%`);
    });
    told.textContent = `${us(end - start)}, ${cycles(end - start)}, from ${us(start)} to ${us(end)}; busy: ${busy.join(", ") || "nothing"}`;
  };
  const centre = (i) => {
    const span = view.to - view.from, middle = events.start[i] + events.time[i] / 2;
    if (middle < view.from || middle > view.to) show(middle - span / 2, middle + span / 2);
    tell(i);
    redraw();
  };

  let measures = false;  // whether dragging measures
  const measuring = (value) => {
    measures = value;
    element("measure").setAttribute("aria-pressed", String(value));
    if (!value) measure(0, 0);
  };
  for (const target of [canvas, memory_canvas]) {
    let held = null, from = null;
    target.addEventListener("wheel", (event) => {
      const across = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!across && !event.ctrlKey && !event.metaKey) return;  // the page scrolls
      event.preventDefault();
      if (across) move(event.deltaX / target.clientWidth);
      else zoom(event.deltaY > 0 ? 1.25 : 0.8, time_at(target, event));
    }, { passive: false });
    target.addEventListener("pointerdown", (event) => {
      target.setPointerCapture(event.pointerId);
      if (measures || event.shiftKey) from = time_at(target, event); else held = event.clientX;
    });
    for (const end of ["pointerup", "pointercancel"]) target.addEventListener(end, () => { held = from = null; });
    target.addEventListener("pointermove", (event) => {
      if (from !== null) return measure(from, time_at(target, event));
      if (held !== null) { move((held - event.clientX) / (target.clientWidth - LEFT)); held = event.clientX; return; }
      if (target === memory_canvas) return tell_memory(time_at(target, event));
      const i = event_at(event);
      if (i >= 0 && i !== view.chosen) { tell(i); redraw(); }
    });
  }

  // Arrows belong to the charts; the other keys work wherever nothing else has the focus.
  const arrows = { ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), ArrowUp: () => zoom(0.5), ArrowDown: () => zoom(2) };
  const keys = {
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => show(0, data.end),
    "]": () => along(1), "[": () => along(-1), "/": () => element("search").focus(), m: () => measure(view.from, view.to), Escape: () => measuring(false),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const focus = document.activeElement, chart = focus === canvas || focus === memory_canvas;
    const free = focus !== element("search") && (!focus || focus === document.body || focus.closest("#time, #memories, .source"));
    const act = (chart && arrows[event.key]) || (free && keys[event.key]);
    if (act) { event.preventDefault(); act(); }
  });

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

  const button = (id, act) => element(id).addEventListener("click", act);
  button("in", () => zoom(0.5));
  button("out", () => zoom(2));
  button("all", () => show(0, data.end));
  button("next", () => along(1));
  button("measure", () => measuring(!measures));
  button("scale", (event) => {
    view.used = !view.used;
    event.currentTarget.setAttribute("aria-pressed", String(view.used));
    redraw();
  });
  button("theme", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    colours = {};
    redraw();
  });
  button("pinned", () => canvas.scrollIntoView({ block: "center" }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours = {}; redraw(); });

  // Only some instructions are shown in full, and told.
  let found = [], at_found = -1;
  const none = () => { view.shown = null; found = []; told.textContent = ""; redraw(); };
  const only = (wanted, name, otherwise) => {
    found = [];
    at_found = -1;
    let first = Infinity, last = 0;
    for (let i = 0; i < count; i++) {
      if (events.name[i] < 0 || !wanted(i)) continue;
      found.push(i);
      first = Math.min(first, events.start[i]);
      last = Math.max(last, events.start[i] + events.time[i]);
    }
    found.sort((a, b) => events.start[a] - events.start[b]);
    view.shown = new Set(found);
    if (found.length && (last < view.from || first > view.to)) show(0, data.end);
    const spent = found.length ? `${found.length.toLocaleString("en")} instructions, from ${us(first)} to ${us(last)}` : otherwise;
    told.textContent = `${name}: ${spent}`;
    redraw();
  };
  element("search").addEventListener("input", (event) => {
    const text = event.target.value.trim().toLowerCase();
    for (const other of document.querySelectorAll("button[data-line]")) {
      other.setAttribute("aria-pressed", "false");
      other.closest("tr").classList.remove("chosen");
    }
    const said = (i) => `${data.names[events.name[i]]} in ${data.lines[events.line[i]]}${iterationOf(i)}`.toLowerCase();
    if (text) only((i) => said(i).includes(text), text, "no instruction"); else none();
  });
  element("search").addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.target.value = ""; none(); event.target.blur(); }
    if (event.key !== "Enter" || !found.length) return;
    at_found = (at_found + (event.shiftKey ? found.length - 1 + (at_found < 0) : 1)) % found.length;
    centre(found[at_found]);
  });

  // A line of the source is shown in the timeline.
  const choose = (chosen) => {
    const same = chosen.getAttribute("aria-pressed") === "true";
    for (const other of document.querySelectorAll("button[data-line]")) {
      other.setAttribute("aria-pressed", String(other === chosen && !same));
      other.closest("tr").classList.toggle("chosen", other === chosen && !same);
    }
    const line = data.lines.indexOf(chosen.dataset.line);
    element("search").value = "";
    if (same) none(); else only((i) => events.line[i] === line, chosen.dataset.line, "no instruction of its own");
  };
  for (const chosen of document.querySelectorAll("button[data-line]")) {
    chosen.closest("tr").addEventListener("click", () => { if (getSelection().isCollapsed) choose(chosen); });
  }
  for (const box of document.querySelectorAll(".source")) {
    const cells = [...box.querySelectorAll("td[data-part]")];
    for (const cell of cells) cell.style.setProperty("--part", cell.dataset.part);
    const hottest = cells.reduce((best, cell) => best && +best.dataset.part >= +cell.dataset.part ? best : cell, null);
    if (hottest) box.scrollTop = hottest.offsetTop - box.clientHeight / 3;
  }
  // Below the timeline, a strip of it stays in view.
  const pin = () => {
    const below = canvas.getBoundingClientRect().bottom < 0;
    if (root.classList.toggle("pinned", below) && !strip.drawn) redraw();
    strip.drawn = below;
  };
  document.addEventListener("scroll", pin, { passive: true });
  window.addEventListener("resize", () => { pin(); redraw(); });
  new MutationObserver(() => { element("strip-told").textContent = told.textContent; }).observe(told, { childList: true });
  pin();
  draw();
  root.dataset.ready = String(count);
})();
