// Draws the charts of a report from the JSON in the page. Every number also stands in a table, so
// nothing here is needed to read the report; nothing here asks anything of a network.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.remove("no-js");
  const { charts } = JSON.parse(document.getElementById("data").textContent);
  const figures = [...document.querySelectorAll("figure.chart")];
  const plots = new Map();
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // ---- words and colours

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const three = (v) => (v >= 99.95 || v === 0 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2));
  const scaled = (v, units) => {
    let i = 0;
    while (v >= 999.5 && i + 1 < units.length) { v /= 1000; i += 1; }
    return `${three(v)} ${units[i]}`;
  };
  const time = (ns) => scaled(ns, ["ns", "µs", "ms", "s"]);
  const rate = (b) => scaled(b, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
  const share = (s) => `${+(s * 100).toPrecision(3)} %`;
  const kib = (k) => (k >= 1024 ? `${k / 1024}m` : `${k}k`);
  const tidy = (text) => text.replace(/\.0+ /, " ");
  const oklch = (hue, weight = 1) => `oklch(${css("--curve-l")} ${css("--curve-c") * weight} ${hue})`;
  const HUES = [255, 40, 155, 325, 95, 205, 290, 15];
  const hue = (i) => oklch(HUES[i % HUES.length]);

  // A kind has a hue of its own; its page sizes walk on from there, small to large.
  const curveColors = (curves) => {
    const kinds = [...new Set(curves.map((c) => c.kind))].sort((a, b) => (b === "write") - (a === "write"));
    const pages = new Map(kinds.map((k) => [k, [...new Set(curves.filter((c) => c.kind === k && !c.control).map((c) => c.page))]]));
    // Many kinds share the circle evenly: write has its blue, the others what is left of it.
    const apart = Math.min(45, 330 / Math.max(kinds.length - 1, 1));
    return curves.map((c) => {
      if (c.control) return css("--faint");
      const nth = kinds.indexOf(c.kind), sizes = pages.get(c.kind);
      const t = sizes.length > 1 ? sizes.indexOf(c.page) / (sizes.length - 1) : 0;
      return nth === 0 ? oklch(235 + t * 165) : oklch(150 - (nth - 1) * apart - t * Math.min(30, apart));
    });
  };

  // ---- parts that all charts share

  const DASHES = { dashed: [6, 5], dotted: [2, 3] };
  const only = (filter) => (filter ? { filter } : {});
  const axis = (label, more) => ({
    label, stroke: css("--soft"), labelSize: 22, labelFont: "12px system-ui, sans-serif",
    font: "12px system-ui, sans-serif", ...more,
    grid: { stroke: css("--grid"), width: 1, ...only(more.filter), ...more.grid },
    ticks: { stroke: css("--line"), width: 1, size: 5, ...only(more.filter) },
  });
  const powers = (u, splits) => splits.map((v) => (Math.abs(Math.log10(v) % 1) < 1e-9 ? v : null));
  // Lines along a value, whichever way the chart lies.
  const lies = (u) => u.scales.x.ori === 1;
  const stroke = (u, color, dash, points) => {
    const { ctx } = u;
    ctx.save();
    ctx.strokeStyle = color;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash(dash.map((d) => d * devicePixelRatio));
    ctx.beginPath();
    for (const [from, to] of points) {
      ctx.moveTo(...(lies(u) ? [from[1], from[0]] : from));
      ctx.lineTo(...(lies(u) ? [to[1], to[0]] : to));
    }
    ctx.stroke();
    ctx.restore();
  };
  const whiskers = (marks) => (u) => {
    for (const { series, points } of marks) {
      if (!u.series[series].show) continue;
      const color = marks.color ?? u.series[series].stroke();
      for (const [x, , low, high] of points) {
        const at = u.valToPos(x, "x", true), cap = 4 * devicePixelRatio;
        const [a, b] = [u.valToPos(low, "y", true), u.valToPos(high, "y", true)];
        stroke(u, color, [], [[[at, a], [at, b]], [[at - cap, a], [at + cap, a]], [[at - cap, b], [at + cap, b]]]);
      }
    }
  };
  // A limit runs from edge to edge, its name beside it.
  const limitLine = (limit, name) => (u) => {
    const { ctx, bbox } = u, color = css("--ink"), at = u.valToPos(limit, "y", true), r = devicePixelRatio;
    const [from, to] = lies(u) ? [bbox.top, bbox.top + bbox.height] : [bbox.left, bbox.left + bbox.width];
    stroke(u, color, [6, 5], [[[from, at], [to, at]]]);
    ctx.save();
    ctx.fillStyle = color;
    ctx.font = `${12 * r}px system-ui, sans-serif`;
    ctx.textBaseline = "bottom";
    ctx.textAlign = "left";
    ctx.fillText(name, ...(lies(u) ? [at - 2 * r, from - 4 * r] : [from + 8 * r, at - 4 * r]));
    ctx.restore();
  };

  const legend = (figure, u, items) => {
    const box = figure.querySelector(".legend");
    box.replaceChildren(...items.map(({ label, color, dashed, series }) => {
      const chip = document.createElement("button"), line = document.createElement("i");
      chip.type = "button";
      chip.setAttribute("aria-pressed", "true");
      line.style.borderTopColor = color;
      line.className = dashed ?? "";
      chip.append(line, label);
      chip.onclick = () => {
        const show = !u.series[series[0]].show;
        chip.setAttribute("aria-pressed", show);
        series.forEach((s) => u.setSeries(s, { show }));
      };
      return chip;
    }));
  };

  // What stands under the pointer; a stepped curve keeps its last value between steps.
  const tooltip = (items, { heading, word, keeps, pick }) => {
    let tip;
    return {
      init: (u) => {
        tip = document.createElement("div");
        tip.className = "tip";
        u.over.append(tip);
      },
      setCursor: (u) => {
        const { idx, left, top } = u.cursor;
        if (idx == null || left < 0) { tip.style.display = "none"; return; }
        const rows = [];
        for (const { label, color, series } of items) {
          const [s] = series, values = u.data[s];
          let i = idx;
          while (keeps && i > 0 && values[i] == null) i -= 1;
          const value = pick ? pick(s, u.data[0][idx]) : values[i];
          if (!u.series[s].show || value == null) continue;
          rows.push([label, color, word(value)]);
        }
        const title = document.createElement("b");
        title.textContent = heading(u.data[0][idx]);
        tip.replaceChildren(title, ...rows.map(([label, color, value]) => {
          const row = document.createElement("div"), name = document.createElement("i");
          name.textContent = label;
          name.style.color = color;
          row.append(name, value);
          return row;
        }));
        tip.style.display = rows.length ? "block" : "none";
        const flip = left > u.over.clientWidth / 2;
        tip.style.left = flip ? "auto" : `${left + 14}px`;
        tip.style.right = flip ? `${u.over.clientWidth - left + 14}px` : "auto";
        tip.style.top = `${Math.max(0, Math.min(top, u.over.clientHeight - tip.offsetHeight))}px`;
      },
    };
  };

  // For whoever waits until all is drawn.
  const tell = (figure) => {
    figure.dataset.drawn = "true";
    const drawn = figures.filter((f) => f.dataset.drawn === "true").length;
    root.dataset.charts = `${drawn}/${figures.length}`;
  };

  const draw = (figure, { data, series, scales, axes, hooks = [], items, tip, ...more }) => {
    const plot = figure.querySelector(".plot");
    plots.get(figure)?.destroy();
    plot.replaceChildren();
    const parts = tooltip(items, tip);
    const u = new uPlot({
      width: plot.clientWidth, height: plot.clientHeight,
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false }, points: { size: 7 } },
      scales, axes, series: [{}, ...series], ...more,
      hooks: {
        init: [parts.init], setCursor: [parts.setCursor],
        draw: [...hooks, () => tell(figure)],
      },
    }, data, plot);
    legend(figure, u, items);
    plots.set(figure, u);
  };

  // ---- the charts

  const prepared = (curve) => {
    const n = curve.steps.reduce((sum, [, count]) => sum + count, 0);
    let seen = 0;
    const points = curve.steps.map(([value, count]) => {
      seen += count;
      return { x: Math.max(value, 1), done: seen / n, left: (n - seen) / n };
    });
    const at = (q) => points.find((p) => p.done >= q).x;
    return { ...curve, points, low: at(0.001), high: at(0.999), top: at(1) };
  };
  const families = charts.distributions.map(({ curves }) => curves.map(prepared));
  const decade = (v, up) => 10 ** (up ? Math.ceil : Math.floor)(Math.log10(v) + (up ? -1e-9 : 1e-9));

  const distribution = (figure, tail) => {
    const curves = families[figure.dataset.nth];
    const colors = curveColors(curves);
    // Curves of one kind and page size share a colour: the first is solid, the others dotted. Of
    // many kinds, whose colours are close, every other one is dashed.
    const kinds = [...new Set(curves.map((c) => c.kind))];
    const dashes = curves.map((c, i) => {
      if (c.control) return "dashed";
      if (curves.findIndex((d) => d.kind === c.kind && d.page === c.page) < i) return "dotted";
      return kinds.length > 8 && kinds.indexOf(c.kind) % 2 === 1 ? "dashed" : undefined;
    });
    const low = decade(Math.max(10, Math.min(...curves.map((c) => c.low))), false);
    const high = decade(Math.max(...curves.map((c) => (tail ? c.top : c.high))), true);
    const floor = 1e-4;
    const tables = curves.map(({ points }) => {
      const first = { x: Math.min(low, points[0].x) / 2, done: 0, left: 1 };
      const kept = [first, ...points].filter((p) => !tail || p.left > 0);
      const last = { x: high * 2, done: 1 };
      if (!tail) kept.push(last);
      else kept.push({ x: points[points.length - 1].x, left: floor / 10 });
      return [kept.map((p) => p.x), kept.map((p) => (tail ? p.left : p.done))];
    });
    draw(figure, {
      data: uPlot.join(tables),
      series: curves.map((c, i) => ({
        label: c.label, stroke: colors[i], width: c.control ? 1.5 : 2, dash: DASHES[dashes[i]],
        spanGaps: true, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }),
      })),
      scales: {
        x: { time: false, distr: 3, range: () => [low, high] },
        y: tail ? { distr: 3, range: () => [floor, 1] } : { range: () => [0, 1] },
      },
      axes: [
        axis("latency of one fault", { size: 30, filter: powers, values: (u, s) => s.map((v) => (v == null ? null : tidy(time(v)))) }),
        axis(tail ? "share of faults that take longer" : "share of faults done", {
          size: 62, ...only(tail && powers), values: (u, s) => s.map((v) => (v == null ? null : share(v))),
        }),
      ],
      items: curves.map((c, i) => ({ label: c.label, color: colors[i], dashed: dashes[i], series: [i + 1] })),
      tip: { heading: time, word: share, keeps: true },
    });
  };

  const bandwidth = (figure) => {
    const lines = charts.bandwidth, x = charts.pages.map((_, i) => i);
    const on = (points) => x.map((i) => points.find((p) => p[0] === i)?.[1] ?? null);
    const data = [x, ...lines.map((l) => on(l.points))];
    const items = lines.map((l, i) => ({ label: l.label, color: hue(i), series: [i + 1] }));
    const series = lines.map((l, i) => ({
      label: l.label, stroke: hue(i), width: 2, spanGaps: true, points: { show: true, size: 8, fill: hue(i), width: 0 },
    }));
    // The line of the limit runs from edge to edge, beyond the first and the last page size.
    const edge = 0.45, limit = charts.clear;
    const hooks = [whiskers(lines.map((l, i) => ({ series: i + 1, points: l.points })))];
    if (limit != null) hooks.push(limitLine(limit, `clear limit ${rate(limit)}`));
    const most = Math.max(limit ?? 0, ...lines.flatMap((l) => l.points.map((p) => p[3])));
    draw(figure, {
      data, series, items, hooks,
      scales: { x: { time: false, range: () => [-edge, x.length - 1 + edge] }, y: { range: () => [0, most * 1.12] } },
      axes: [
        axis("page size", { size: 30, splits: () => x, values: (u, s) => s.map((i) => charts.pages[i] ?? null), grid: { show: false } }),
        axis("bandwidth, GB/s", { size: 52, values: (u, s) => s.map((v) => +(v / 1e9).toFixed(2)) }),
      ],
      tip: { heading: (i) => charts.pages[i], word: rate },
    });
  };

  const cost = (figure) => {
    const groups = charts.cost;
    const all = groups.flatMap((g) => g.points.map((p) => p[0]));
    const [low, high] = [Math.min(...all) / 1.4, Math.max(...all) * 1.4];
    const steps = Array.from({ length: 60 }, (_, i) => low * (high / low) ** (i / 59));
    const line = (fixed, slope) => [steps, steps.map((k) => fixed / k + slope)];
    const each = ([k, ...ns]) => [k, ...ns.map((v) => v / k)];
    const tables = [], series = [], items = [], marks = [];
    groups.forEach((g, i) => {
      const points = g.points.map(each);
      tables.push([points.map((p) => p[0]), points.map((p) => p[1])]);
      series.push({ label: g.label, stroke: hue(i), paths: () => null, points: { show: true, size: 12 - 2 * Math.min(i, 3), fill: hue(i), width: 0 } });
      const members = [series.length];
      marks.push({ series: series.length, points });
      if (g.line) {
        tables.push(line(...g.line));
        series.push({ label: g.label, stroke: hue(i), width: 1.5, spanGaps: true, points: { show: false } });
        members.push(series.length);
      }
      items.push({ label: g.label, color: hue(i), series: members });
    });
    if (charts.clear != null) {
      const color = css("--faint");
      tables.push(line(0, (1024 * 1e9) / charts.clear));
      series.push({ label: "clearing alone", stroke: color, width: 1.5, dash: [6, 5], spanGaps: true, points: { show: false } });
      items.push({ label: "clearing alone", color, dashed: "dashed", series: [series.length] });
    }
    const sizes = [...new Set(all)].sort((a, b) => a - b);
    const most = Math.max(...groups.flatMap((g) => g.points.map((p) => each(p)[3])));
    draw(figure, {
      data: uPlot.join(tables), series, items, hooks: [whiskers(marks)],
      scales: {
        x: { time: false, distr: 3, range: () => [low, high] },
        y: { range: () => [0, most * 1.15] },
      },
      axes: [
        axis("page size", { size: 30, splits: () => sizes, filter: (u, s) => s, values: (u, s) => s.map(kib), grid: { show: false } }),
        axis("cost of a fault, ns per KiB", { size: 56 }),
      ],
      tip: { heading: (k) => kib(+k.toPrecision(3)), word: (v) => `${three(v)} ns/KiB` },
    });
  };

  // ---- emulated memory and its traces

  const FAMILIES = { floor: "decoding", "fast-mem": "fast-mem's", base: "base", peer: "others'", ours: "pagelab's" };
  const replay = (figure) => {
    const { floor, arms } = charts.replay[+figure.dataset.nth], x = arms.map((_, i) => i);
    const colors = { floor: css("--faint"), "fast-mem": hue(0), base: hue(1), ours: hue(2), peer: hue(3) };
    const families = Object.keys(FAMILIES).filter((f) => arms.some((a) => a.family === f));
    const plot = figure.querySelector(".plot"), ink = css("--ink");
    plot.style.height = `${arms.length * 23 + 76}px`;
    const series = families.map((f) => ({
      label: FAMILIES[f], stroke: colors[f], fill: colors[f], width: 0,
      paths: uPlot.paths.bars({ size: [0.68, 16] }), points: { show: false },
    }));
    const items = families.map((f, i) => ({ label: FAMILIES[f], color: colors[f], series: [i + 1] }));
    const marks = families.map((f, i) => ({
      series: i + 1, points: x.filter((j) => arms[j].family === f).map((j) => [j, ...arms[j].ns]),
    }));
    marks.color = ink;
    const most = Math.max(...arms.map((a) => a.ns[2]));
    const names = Math.max(...arms.map((a) => a.name.length)) * 6.9 + 16;
    draw(figure, {
      data: [x, ...families.map((f) => arms.map((a) => (a.family === f ? a.ns[0] : null)))],
      series, items, padding: [20, 18, 0, 0],
      cursor: { x: false, y: false, drag: { x: false, y: false }, points: { show: false } },
      hooks: [whiskers(marks), ...(floor == null ? [] : [limitLine(floor, `noop ${three(floor)} ns`)])],
      scales: {
        x: { time: false, ori: 1, dir: -1, range: () => [-0.6, x.length - 0.4] },
        y: { ori: 0, dir: 1, range: () => [0, most * 1.04] },
      },
      axes: [
        axis("", { side: 3, size: names, labelSize: 0, splits: () => x, values: (u, s) => s.map((i) => arms[i]?.name ?? null), grid: { show: false } }),
        axis("CPU time of an operation, ns", { scale: "y", side: 2, size: 30 }),
      ],
      tip: { heading: (i) => arms[i].name, word: (v) => `${three(v)} ns` },
    });
  };

  // Traces keep their hue from chart to chart; what was published of one is hollow in the same hue.
  const traceLooks = (all) => {
    const trace = ({ label }) => label.replace(/, (published|LRU|direct-mapped)$/, "");
    const traces = [...new Set([...charts.trace.widths.series, ...charts.trace.hits].map(trace))];
    return all.map((s) => ({ color: hue(Math.max(0, traces.indexOf(trace(s)))), dashed: s.published ? "dotted" : undefined }));
  };
  const legendOf = (all, looks) => all.map(({ label }, i) => ({ label, ...looks[i], series: [i + 1] }));

  const bars = (figure, label, { tall, low } = {}) => {
    const { categories, series } = charts.trace[figure.dataset.chart], looks = traceLooks(series);
    const width = 0.84 / series.length, at = (i, k) => i + (k - (series.length - 1) / 2) * width;
    const data = uPlot.join(series.map((s, k) => [categories.map((_, i) => at(i, k)), s.shares.map((v) => (v > (low ?? 0) ? v : null))]));
    const room = figure.querySelector(".plot").clientWidth - 70;
    const nth = tall ? 1 : Math.max(1, Math.ceil((categories.length * 34) / room));
    const name = (i) => (tall ? categories[i]?.replace(" ", "\n") : compact(categories[i]));
    const most = Math.max(...series.flatMap((s) => s.shares.map((v) => v ?? 0)));
    draw(figure, {
      data, items: legendOf(series, looks),
      cursor: { x: false, y: false, drag: { x: false, y: false }, points: { show: false } },
      series: series.map((s, i) => ({
        label: s.label, stroke: looks[i].color, width: s.published ? 1.5 : 0, fill: s.published ? undefined : looks[i].color,
        paths: uPlot.paths.bars({ size: [width * 0.86, Infinity] }), points: { show: false },
      })),
      scales: { x: { time: false, range: () => [-0.6, categories.length - 0.4] }, y: low == null ? { range: () => [0, most * 1.08] } : { distr: 3, range: () => [low, 1] } },
      axes: [
        axis(label, {
          size: tall ? 46 : 30, grid: { show: false }, splits: () => categories.map((_, i) => i),
          values: (u, s) => s.map((i) => (i % nth ? null : name(i))),
        }),
        axis("share", { size: 62, ...only(low != null && powers), values: (u, s) => s.map((v) => (v == null ? null : share(v))) }),
      ],
      tip: {
        heading: (x) => categories[Math.round(x)], word: (v) => `${(v * 100).toFixed(2)} %`,
        pick: (s, x) => series[s - 1].shares[Math.round(x)],
      },
    });
  };
  const compact = (category) => {
    const from = parseInt(category, 10), i = from < 1024 ? 0 : Math.floor(Math.log2(from) / 10);
    return Number.isNaN(from) ? category : `${from / 1024 ** i}${["", "k", "M", "G", "T", "P", "E"][i]}`;
  };

  const curvesBySize = (figure, label, low) => {
    const all = charts.trace[figure.dataset.chart], looks = traceLooks(all);
    const sizes = all.flatMap((s) => s.points.map((p) => p[0])), drawn = low == null ? (v) => v : (v) => (v > 0 ? v : null);
    const least = Math.min(...all.flatMap((s) => s.points.map((p) => p[1])).filter((v) => v > 0), 1);
    const data = uPlot.join(all.map((s) => [s.points.map((p) => p[0]), s.points.map((p) => drawn(p[1]))]));
    const [from, to] = [Math.min(...sizes) / 1.3, Math.max(...sizes) * 1.3];
    const powersOfTwo = Array.from({ length: 64 }, (_, i) => 2 ** i).filter((v) => v >= from && v <= to);
    const step = Math.ceil(powersOfTwo.length / 11);
    draw(figure, {
      data, items: legendOf(all, looks),
      series: all.map((s, i) => ({
        label: s.label, stroke: looks[i].color, width: 2, dash: DASHES[looks[i].dashed], spanGaps: true,
        paths: s.apart && low != null ? () => null : undefined,
        points: { show: s.apart, size: 8, width: 1.5, fill: s.published ? css("--card") : looks[i].color },
      })),
      scales: {
        x: { time: false, distr: 3, log: 2, range: () => [from, to] },
        y: low == null ? { range: () => [Math.floor(least * 20 - 0.2) / 20, 1.004] } : { distr: 3, range: () => [Math.max(low, decade(least, false)), 1] },
      },
      axes: [
        axis("pages", { size: 30, grid: { show: false }, splits: () => powersOfTwo, filter: (u, s) => s, values: (u, s) => s.map((v, i) => (i % step ? null : compact(String(v)))) }),
        axis(label, { size: low == null ? 62 : 70, ...only(low != null && powers), values: (u, s) => s.map((v) => (v == null ? null : share(v))) }),
      ],
      tip: { heading: (v) => `${v} pages`, word: (v) => `${+(v * 100).toPrecision(4)} %`, keeps: false },
    });
  };

  // ---- memory types: a group for each test or operation, a bar for each type

  const grouped = (figure, { categories, series }, label, word) => {
    const type = (s) => s.label.replace(/, (published|flushed)$/, "");
    const types = [...new Set(series.map(type))], filled = (s) => s.label === type(s);
    const colors = series.map((s) => hue(types.indexOf(type(s))));
    const width = 0.84 / series.length, at = (i, k) => i + (k - (series.length - 1) / 2) * width;
    const points = series.map((s, k) => s.points.flatMap((p, i) => (p ? [[at(i, k), ...p]] : [])));
    const ends = points.flat().flatMap((p) => p.slice(1)).filter((v) => v > 0);
    const range = [decade(Math.min(...ends) / 1.3, false), Math.max(...ends) * 1.4];
    const marks = points.map((list, k) => ({ series: k + 1, points: list.filter((p) => p[2] < p[3] && p[2] > 0) }));
    marks.color = css("--ink");
    draw(figure, {
      // A place without a bar is null, not absent: the width of bars is taken from the places.
      data: uPlot.join(series.map((s, k) => [s.points.map((_, i) => at(i, k)), s.points.map((p) => (p?.[0] > 0 ? p[0] : null))])),
      items: series.map((s, i) => ({ label: s.label, color: colors[i], dashed: filled(s) ? undefined : "dotted", series: [i + 1] })),
      cursor: { x: false, y: false, drag: { x: false, y: false }, points: { show: false } },
      hooks: [whiskers(marks)],
      series: series.map((s, i) => ({
        label: s.label, stroke: colors[i], width: filled(s) ? 0 : 1.5, fill: filled(s) ? colors[i] : undefined,
        paths: uPlot.paths.bars({ size: [width * 0.86, Infinity] }), points: { show: false },
      })),
      scales: { x: { time: false, range: () => [-0.6, categories.length - 0.4] }, y: { distr: 3, range: () => range } },
      axes: [
        axis("", { size: 66, labelSize: 0, grid: { show: false }, splits: () => categories.map((_, i) => i), values: (u, s) => s.map((i) => categories[i]?.replaceAll("_", "\n") ?? null) }),
        axis(label, { size: 70, filter: powers, values: (u, s) => s.map((v) => (v == null ? null : tidy(word(v)))) }),
      ],
      tip: {
        heading: (x) => categories[Math.round(x)], word,
        pick: (s, x) => series[s - 1].points[Math.round(x)]?.[0],
      },
    });
  };

  // ---- simulated tiers

  const shades = (items) => items.map((item, i) => ({ ...item, color: hue(i), dashed: i >= HUES.length ? "dashed" : undefined }));
  const tierShares = (figure) => {
    const { shares } = charts.tier.cases[+figure.dataset.nth];
    const items = shades(shares.map(({ label }, i) => ({ label, series: [i + 1] })));
    const data = uPlot.join(shares.map((s) => [s.points.map((p) => p[0]), s.points.map((p) => p[1])]));
    const end = Math.max(...shares.map((s) => s.points[s.points.length - 1][0]));
    draw(figure, {
      data, items,
      series: shares.map((s, i) => ({
        label: s.label, stroke: items[i].color, width: 2, dash: DASHES[items[i].dashed], spanGaps: true, points: { show: false },
      })),
      scales: { x: { time: false, range: () => [0, end * 1.01] }, y: { range: () => [0, 1.02] } },
      axes: [
        axis("simulated time", { size: 30, values: (u, s) => s.map((v) => tidy(time(v))) }),
        axis("share of pages in the fast tier", { size: 62, values: (u, s) => s.map((v) => share(v)) }),
      ],
      tip: { heading: time, word: (v) => `${(v * 100).toFixed(1)} %`, keeps: true },
    });
  };

  const FATES = { useful: "worth it", wasted: "wasted", demoted: "demoted" };
  const tierPromotions = (figure) => {
    const arms = charts.tier.cases[+figure.dataset.nth].promotions, x = arms.map((_, i) => i);
    const colors = { useful: hue(2), wasted: hue(1), demoted: css("--faint") };
    const fates = Object.keys(FATES).filter((f) => arms.some((a) => a[f] > 0));
    // Wasted promotions end where all promotions do; they are drawn first, the useful ones over them.
    const ends = { wasted: (a) => a.useful + a.wasted, useful: (a) => a.useful, demoted: (a) => a.demoted };
    const order = ["wasted", "useful", "demoted"].filter((f) => fates.includes(f));
    const shift = (f) => (f === "demoted" && order.length > 1 ? 0.22 : order.includes("demoted") && order.length > 1 ? -0.22 : 0);
    const size = order.includes("demoted") && order.length > 1 ? 0.4 : 0.66;
    figure.querySelector(".plot").style.height = `${arms.length * 30 + 76}px`;
    const series = order.map((f) => ({
      label: FATES[f], stroke: colors[f], fill: colors[f], width: 0, points: { show: false },
      paths: uPlot.paths.bars({ size: [size, 14] }),
    }));
    const data = uPlot.join(order.map((f) => [x.map((i) => i + shift(f)), arms.map((a) => ends[f](a) || null)]));
    const most = Math.max(1, ...arms.flatMap((a) => [a.useful + a.wasted, a.demoted]));
    const names = Math.max(...arms.map((a) => a.label.length)) * 6.9 + 16;
    const count = (v) => (v >= 1e6 ? `${+(v / 1e6).toFixed(2)} M` : v >= 1e3 ? `${+(v / 1e3).toFixed(1)} k` : `${v}`);
    draw(figure, {
      data, series, padding: [8, 18, 0, 0],
      items: order.map((f, i) => ({ label: FATES[f], color: colors[f], series: [i + 1] })),
      cursor: { x: false, y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: false, ori: 1, dir: -1, range: () => [-0.6, arms.length - 0.4] },
        y: { ori: 0, dir: 1, range: () => [0, most * 1.04] },
      },
      axes: [
        axis("", { side: 3, size: names, labelSize: 0, splits: () => x, values: (u, s) => s.map((i) => arms[i]?.label ?? null), grid: { show: false } }),
        axis("pages", { scale: "y", side: 2, size: 30, values: (u, s) => s.map(count) }),
      ],
      tip: { heading: (i) => arms[Math.round(i)].label, word: count, pick: (s, i) => arms[Math.round(i)][order[s - 1]] },
    });
  };

  // A grid of words and colours, not a plot.
  const tierHeat = (figure) => {
    const { rows, columns, cells } = charts.tier.heat, plot = figure.querySelector(".plot");
    plot.style.height = "auto";
    const grid = document.createElement("div");
    grid.className = "heat";
    grid.style.gridTemplateColumns = `minmax(90px, max-content) repeat(${columns.length}, minmax(44px, 1fr))`;
    const cell = (name, text) => {
      const div = document.createElement("div");
      div.className = name;
      div.textContent = text;
      grid.append(div);
      return div;
    };
    cell("corner", "");
    columns.forEach((c) => cell("policy", c));
    rows.forEach((row, i) => {
      cell("work", row);
      columns.forEach((column, k) => {
        const regret = cells[i][k];
        const div = cell("regret", regret == null ? "–" : `${(regret * 100).toFixed(regret < 0.0995 ? 1 : 0)}`);
        if (regret == null) return;
        // 1 % is where it begins, ten times as long as the oracle where it ends.
        const depth = Math.min(1, Math.max(0, Math.log10(Math.max(regret, 1e-9) / 0.01) / 3));
        div.style.setProperty("--depth", `${Math.round(depth * 100)}%`);
        div.title = `${column} on ${row}: ${(regret * 100).toFixed(2)} % above the oracle`;
      });
    });
    plot.replaceChildren(grid);
    figure.querySelector(".legend").replaceChildren();
    tell(figure);
  };

  const DRAW = {
    "memtype-bandwidth": (f) => grouped(f, charts.memtype_bandwidth, "bandwidth", rate),
    "memtype-latency": (f) => grouped(f, charts.memtype_latency, "median of one operation", time),
    "tier-shares": tierShares, "tier-promotions": tierPromotions, "tier-heat": tierHeat,
    distribution: (f) => distribution(f, false), tail: (f) => distribution(f, true), bandwidth, cost, replay,
    widths: (f) => bars(f, "", { tall: true }),
    runs: (f) => bars(f, "operations on one page"),
    reuse: (f) => bars(f, "operations since the last use", { low: 1e-5 }),
    absent: (f) => bars(f, "operations since the last use", { low: 1e-5 }),
    hits: (f) => curvesBySize(f, "share of operations that hit"),
    misses: (f) => curvesBySize(f, "share of operations that miss", 1e-6),
  };
  const drawAll = () => figures.forEach((figure) => DRAW[figure.dataset.chart](figure));

  // ---- themes, sizes, paper

  document.getElementById("theme").onclick = () => {
    const is = root.dataset.theme ?? (dark.matches ? "dark" : "light");
    root.dataset.theme = is === "dark" ? "light" : "dark";
    drawAll();
  };
  dark.addEventListener("change", drawAll);
  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    drawAll();
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    drawAll();
  });
  root.dataset.charts = `0/${figures.length}`;
  drawAll();
  const sized = new ResizeObserver((entries) => entries.forEach(({ target, contentRect }) => {
    const u = plots.get(target.closest("figure"));
    const { width, height } = contentRect;
    if (u && width > 0 && (u.width !== width || u.height !== height)) u.setSize({ width, height });
  }));
  figures.forEach((figure) => sized.observe(figure.querySelector(".plot")));
})();
