// Draws the planes of a report from the JSON in the page. Every number also stands in a table, so
// nothing here is needed to read the report; nothing here asks anything of a network.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.remove("no-js");
  const { planes } = JSON.parse(document.getElementById("data").textContent);
  const figures = [...document.querySelectorAll("figure.plane")];
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
  const doubled = (v) => {
    const i = v < 1024 ? 0 : Math.min(6, Math.floor(Math.log2(v) / 10));
    return `${+(v / 1024 ** i).toPrecision(3)}${["", "k", "M", "G", "T", "P", "E"][i]}`;
  };
  const WORDS = {
    ns: (v) => scaled(v, ["ns", "µs", "ms", "s"]),
    "B/s": (v) => scaled(v, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]),
    share: (v) => `${+(v * 100).toPrecision(3)} %`,
    "ns/KiB": (v) => `${+v.toPrecision(3)}`,
    count: doubled,
  };
  const colour = (hue) => (hue == null ? css("--faint") : `oklch(${css("--curve-l")} ${css("--curve-c")} ${hue})`);
  const DASHES = { dashed: [6, 5], dotted: [2, 3] };
  const FONT = "12px system-ui, sans-serif";

  // ---- axes

  const isLog = (axis) => axis.scale !== "linear";
  // What has no place on an axis, as nothing has on a logarithmic one, has no name either.
  planes.forEach((plane) => {
    const seen = plane.curves.filter((c) => c.points.some((p) => !isLog(plane.y) || p[1] > 0));
    if (seen.length) plane.curves = seen;
  });
  const powerUp = (v) => 10 ** Math.ceil(Math.log10(v) - 1e-9);
  // The nearest of 1, 2 and 5 times a power of ten, outwards.
  const round125 = (v, up) => {
    const power = powerUp(v) / 10, steps = [1, 2, 5, 10].map((m) => m * power);
    return up ? steps.find((s) => s >= v * 0.999) : steps.findLast((s) => s <= v * 1.001);
  };
  const ends = (axis, values) => {
    const known = values.filter((v) => Number.isFinite(v) && (!isLog(axis) || v > 0));
    const [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [1, 10];
    const meant = axis.scale === "linear" ? [0, high * 1.1 || 1]
      : axis.scale === "doublings" ? [low / 1.3, high * 1.3]
      : [round125(low * 0.9, false), round125(high * 1.1, true)];
    return meant.map((end, i) => axis.ends[i] ?? end);
  };
  const splits = (axis, [low, high], room, apart) => {
    if (axis.places.length) return axis.places.map(([at]) => at);
    const base = axis.scale === "doublings" ? 2 : 10;
    const from = Math.floor(Math.log(low) / Math.log(base) + 1e-9), marks = [];
    const decades = Math.log(high / low) / Math.log(base);
    const multiples = base === 10 && decades < 2.5 ? [1, 2, 5] : [1];
    const step = Math.max(1, Math.ceil((decades * apart) / room));
    for (let p = from; base ** p <= high * 1.001; p += 1) {
      if ((p - from) % step) continue;
      for (const m of multiples) if (m * base ** p >= low * 0.999 && m * base ** p <= high * 1.001) marks.push(m * base ** p);
    }
    return marks;
  };
  const axisOf = (axis, range, room, size, more) => {
    const named = new Map(axis.places), word = WORDS[axis.unit];
    const own = isLog(axis) || named.size ? { splits: () => splits(axis, range, room, more.side === 3 ? 24 : 46), filter: (u, s) => s } : {};
    // Names that do not fit beside each other lean.
    const along = (v) => (isLog(axis) ? Math.log(v) : v), px = room / (along(range[1]) - along(range[0]));
    const meet = ([at, name], i) => i > 0
      && (name.length + axis.places[i - 1][1].length) * 3.6 + 6 > (along(at) - along(axis.places[i - 1][0])) * px;
    const leans = more.side !== 3 && axis.places.some(meet);
    return {
      label: axis.name, stroke: css("--soft"), labelSize: 22, labelFont: FONT, font: FONT,
      size: leans ? 64 : size, ...(leans ? { rotate: 50 } : {}), ...own,
      values: (u, s) => s.map((v) => named.get(v) ?? word(v).replace(/\.0+(?= |$)/, "")),
      grid: { stroke: css("--grid"), width: 1, show: !named.size },
      ticks: { stroke: css("--line"), width: 1, size: 5 }, ...more,
    };
  };

  // ---- what is drawn beside the curves

  const line = (u, color, dash, points) => {
    const { ctx } = u;
    ctx.save();
    ctx.strokeStyle = color;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash(dash.map((d) => d * devicePixelRatio));
    ctx.beginPath();
    points.forEach(([from, to]) => { ctx.moveTo(...from); ctx.lineTo(...to); });
    ctx.stroke();
    ctx.restore();
  };
  const whiskers = (curves) => (u) => curves.forEach(({ spans, hue }, i) => {
    if (!u.series[i + 1].show) return;
    for (const [x, low, high] of spans) {
      if (low === high) continue;
      const at = u.valToPos(x, "x", true), cap = 4 * devicePixelRatio;
      const [a, b] = [u.valToPos(low, "y", true), u.valToPos(high, "y", true)];
      line(u, colour(hue), [], [[[at, a], [at, b]], [[at - cap, a], [at + cap, a]], [[at - cap, b], [at + cap, b]]]);
    }
  });
  const boundary = ([limit, name]) => (u) => {
    const { ctx, bbox } = u, color = css("--ink"), at = u.valToPos(limit, "y", true), r = devicePixelRatio;
    line(u, color, [6, 5], [[[bbox.left, at], [bbox.left + bbox.width, at]]]);
    ctx.save();
    ctx.fillStyle = color;
    ctx.font = `${12 * r}px system-ui, sans-serif`;
    ctx.textBaseline = "bottom";
    ctx.textAlign = "left";
    ctx.fillText(name, bbox.left + 8 * r, at - 4 * r);
    ctx.restore();
  };

  // Names stand at their curves: each at the place along it where it covers least of the others,
  // rather not where two curves meet, never where more do. A name that finds no such place stays above, as that of the only
  // curve does.
  const label = (figure, u, curves, chips, bound) => {
    const legend = figure.querySelector(".legend"), { clientWidth: width, clientHeight: height } = u.over;
    const CELL = 4, across = Math.ceil(width / CELL), taken = new Map(), shared = new Map();
    const cell = (x, y) => Math.floor(y / CELL) * across + Math.floor(x / CELL);
    const paths = curves.map((curve, i) => {
      if (!u.series[i + 1].show) return [];
      const path = [];
      let before = null;
      const walk = ([x, y]) => {
        const steps = before ? Math.max(1, Math.ceil(Math.hypot(x - before[0], y - before[1]) / CELL)) : 1;
        for (let s = 1; s <= Math.min(steps, 2000); s += 1) {
          const t = s / steps, [px, py] = before ? [before[0] + (x - before[0]) * t, before[1] + (y - before[1]) * t] : [x, y];
          if (px >= 0 && px < width && py >= 0 && py < height) path.push([px, py]);
        }
        before = [x, y];
      };
      for (const [x, y] of curve.points) {
        const at = [u.valToPos(x, "x"), u.valToPos(y, "y")];
        if (curve.mark === "points") before = null;
        else if (curve.mark === "steps" && before) walk([at[0], before[1]]);
        if (at.every(Number.isFinite)) walk(at);
      }
      return path;
    });
    paths.forEach((path, i) => path.forEach(([x, y]) => {
      const at = cell(x, y), name = curves[i].label;
      if ((taken.get(at) ?? name) !== name) shared.set(at, (shared.get(at) ?? 0) + 1);
      taken.set(at, name);
    }));
    if (bound) {
      const y = u.valToPos(bound[0], "y");
      for (let x = 0; x < width; x += CELL) for (let dy = x < bound[1].length * 7 + 16 ? -20 : 0; dy <= 0; dy += CELL) taken.set(cell(x, y + dy), "");
    }
    chips.forEach((chip, name) => {
      legend.append(chip);
      chip.style.left = chip.style.top = "";
      if (chips.size < 2 || chip.getAttribute("aria-pressed") === "false") return;
      const [w, h] = [chip.offsetWidth - 22, 16];
      let best = { cost: w * h * 0.012, x: 0, y: 0 };
      const path = curves.flatMap((c, i) => (c.label === name ? paths[i] : []));
      for (let i = path.length - 1; i >= 0; i -= 2) {
        const [x, y] = path[i], meets = shared.get(cell(x, y)) ?? 0;
        if (meets > 1) continue;
        for (const [left, top] of [[x + 6, y - h / 2], [x - w - 6, y - h / 2], [x - w / 2, y - h - 4], [x - w / 2, y + 4], [x + 4, y - h - 2], [x - w - 4, y + 2]]) {
          if (left < 0 || top < 0 || left + w > width || top + h > height) continue;
          let cost = meets * 5;
          for (let b = top; b <= top + h; b += CELL) {
            for (let a = left; a <= left + w; a += CELL) {
              const who = taken.get(cell(a, b));
              if (who !== undefined) cost += who === null ? 1e6 : who === name ? 0.4 : 1;
            }
          }
          if (cost < best.cost) best = { cost, x: left, y: top, found: true };
        }
      }
      if (!best.found) return;
      for (let b = best.y - 2; b <= best.y + h; b += CELL) for (let a = best.x - 2; a <= best.x + w + 2; a += CELL) taken.set(cell(a, b), null);
      u.over.append(chip);
      chip.style.left = `${best.x}px`;
      chip.style.top = `${best.y}px`;
    });
  };

  // What stands under the pointer; a stepped curve keeps its last value between steps.
  const tooltip = (plane) => {
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
        const rows = plane.curves.flatMap((curve, i) => {
          let at = idx;
          const values = u.data[i + 1];
          while (curve.mark === "steps" && at > 0 && values[at] == null) at -= 1;
          return u.series[i + 1].show && values[at] != null ? [[curve, WORDS[plane.y.unit](values[at])]] : [];
        });
        const title = document.createElement("b"), x = u.data[0][idx];
        title.textContent = new Map(plane.x.places).get(x) ?? WORDS[plane.x.unit](x);
        tip.replaceChildren(title, ...rows.map(([curve, value]) => {
          const row = document.createElement("div"), name = document.createElement("i");
          name.textContent = curve.label;
          name.style.color = colour(curve.hue);
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

  // ---- a plane

  const chipOf = ({ label: name, hue, dash }, series) => {
    const chip = document.createElement("button"), sign = document.createElement("i");
    chip.type = "button";
    chip.className = "key";
    chip.setAttribute("aria-pressed", "true");
    chip.style.color = sign.style.borderTopColor = colour(hue);
    sign.className = dash;
    chip.append(sign, name);
    chip.onclick = (event) => {
      event.stopPropagation();
      const u = plots.get(chip.closest("figure")), show = !u.series[series[0]].show;
      chip.setAttribute("aria-pressed", show);
      series.forEach((s) => u.setSeries(s, { show }));
    };
    return chip;
  };

  const draw = (figure, i) => {
    const plane = planes[i], { x, y, curves, bound } = plane, plot = figure.querySelector(".plot");
    plots.get(figure)?.destroy();
    plot.replaceChildren();
    figure.querySelector(".legend").replaceChildren();
    const [width, height] = [plot.clientWidth, plot.clientHeight];
    const chips = new Map();
    curves.forEach((curve) => {
      const same = curves.flatMap((c, k) => (c.label === curve.label ? [k + 1] : []));
      if (!chips.has(curve.label)) chips.set(curve.label, chipOf(curve, same));
    });
    const all = (of) => curves.flatMap(of);
    const rangeX = ends(x, all((c) => c.points.map((p) => p[0])));
    const rangeY = ends(y, [...(bound ? [bound[0]] : []), ...all((c) => c.points.map((p) => p[1])), ...all((c) => c.spans.flatMap((s) => s.slice(1)))]);
    const tip = tooltip(plane);
    const u = new uPlot({
      width, height, legend: { show: false }, padding: [12, 24, 0, 0],
      cursor: { y: false, drag: { x: true, y: false }, points: { size: 7 } },
      scales: {
        x: { time: false, distr: isLog(x) ? 3 : 1, range: () => rangeX },
        y: { distr: isLog(y) ? 3 : 1, range: () => rangeY },
      },
      axes: [axisOf(x, rangeX, width - 94, 30, {}), axisOf(y, rangeY, height - 60, 64, { side: 3 })],
      series: [{}, ...curves.map(({ label: name, hue, mark, dash }) => {
        const stroke = colour(hue), isPoints = mark === "points";
        return {
          label: name, stroke, width: hue == null ? 1.5 : 2, dash: DASHES[dash], spanGaps: true,
          points: { show: isPoints || mark === "knots", size: 8, width: 1.5, fill: dash === "dotted" ? css("--card") : stroke },
          paths: isPoints ? () => null : mark === "steps" ? uPlot.paths.stepped({ align: 1 }) : undefined,
        };
      })],
      hooks: {
        init: [tip.init], setCursor: [tip.setCursor],
        draw: [whiskers(curves), ...(bound ? [boundary(bound)] : []), (u) => {
          label(figure, u, curves, chips, bound);
          // For whoever waits until all is drawn.
          figure.dataset.drawn = "true";
          root.dataset.charts = `${figures.filter((f) => f.dataset.drawn).length}/${figures.length}`;
        }],
      },
    }, uPlot.join(curves.map((c) => {
      const drawn = isLog(y) ? c.points.filter((p) => p[1] > 0) : c.points;
      return [drawn.map((p) => p[0]), drawn.map((p) => p[1])];
    })), plot);
    plots.set(figure, u);
  };
  const drawAll = () => figures.forEach(draw);

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
    const figure = target.closest("figure"), u = plots.get(figure), { width, height } = contentRect;
    if (u && width > 0 && (u.width !== width || u.height !== height)) draw(figure, figures.indexOf(figure));
  }));
  figures.forEach((figure) => sized.observe(figure.querySelector(".plot")));
})();
