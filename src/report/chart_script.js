/* Charts that answer: values at the pointer, and a closer look at the range that is dragged over. All charts along the
 * same axis follow. Without this script the page shows the same, at rest. */
"use strict";
(() => {
  const charts = [...document.querySelectorAll("svg.chart")].map(read);

  /* What a chart shows, in its own units. frame: x0, x1, y0, y1; box: left, right, top and bottom in the picture. */
  function read(svg) {
    const frame = svg.dataset.frame.split(" ").map(Number), box = svg.dataset.box.split(" ").map(Number);
    const chart = {svg, frame, whole: frame, box, axis: svg.dataset.axis, percent: "percent" in svg.dataset};
    const back = (x, y) => [data(chart, 0, x), data(chart, 1, y)];
    chart.lines = [...svg.querySelectorAll("path.line")].map(path => ({
      path, d: path.getAttribute("d"), name: path.dataset.name,
      points: (path.getAttribute("d").match(/[-\d.]+ [-\d.]+/g) || []).map(p => back(...p.split(" ").map(Number))),
    }));
    chart.dots = [...svg.querySelectorAll("circle")].map(dot => ({
      dot, point: back(+dot.getAttribute("cx"), +dot.getAttribute("cy")),
    }));
    chart.ticks = [...svg.querySelectorAll("text[data-at]")].map(tick => ({
      tick, text: tick.textContent, along: tick.dataset.along === "x" ? 0 : 1, at: +tick.dataset.at,
    }));
    chart.rule = add(svg, "line", {class: "rule", y1: box[2], y2: box[3], visibility: "hidden"});
    chart.brush = add(svg, "rect", {class: "brush", y: box[2], height: box[3] - box[2], visibility: "hidden"});
    chart.tip = svg.parentNode.appendChild(document.createElement("div"));
    chart.tip.className = "tip";
    chart.tip.hidden = true;
    svg.classList.add("live");
    return chart;
  }

  function add(svg, name, attributes) {
    const element = svg.appendChild(document.createElementNS(svg.namespaceURI, name));
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return element;
  }

  /* From the picture to the data and back, along x (0) or y (1), which grows upwards. */
  function ends(chart, along) {
    const [left, right, top, bottom] = chart.box, [x0, x1, y0, y1] = chart.frame;
    return along ? [bottom, top, y0, y1] : [left, right, x0, x1];
  }
  function data(chart, along, at) {
    const [from, to, low, high] = ends(chart, along);
    return low + (at - from) / (to - from) * (high - low);
  }
  function place(chart, along, value) {
    const [from, to, low, high] = ends(chart, along);
    return from + (value - low) / (high - low) * (to - from);
  }

  /* As many digits as tell apart what lies `step` apart. */
  function show(chart, along, value, step) {
    const scale = along && chart.percent ? 100 : 1, digits = Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(step * scale))));
    const text = along ? (value * scale).toFixed(digits) : Math.round(value).toLocaleString("en");
    return text + (along && chart.percent ? " %" : "");
  }

  /* --- the pointer --- */

  function nearest(points, x) {
    let low = 0, high = points.length - 1;
    while (high - low > 1) {
      const middle = low + high >> 1;
      if (points[middle][0] <= x) low = middle; else high = middle;
    }
    return points[Math.abs(points[low][0] - x) <= Math.abs(points[high][0] - x) ? low : high];
  }

  function point(chart, x) {
    const at = place(chart, 0, x), inside = at >= chart.box[0] && at <= chart.box[1];
    chart.rule.setAttribute("visibility", inside ? "visible" : "hidden");
    chart.tip.hidden = !inside;
    if (!inside) return;
    chart.rule.setAttribute("x1", at);
    chart.rule.setAttribute("x2", at);
    chart.tip.replaceChildren(`${chart.axis} ${show(chart, 0, x)}`);
    for (const line of chart.lines) {
      if (!line.points.length || line.path.classList.contains("faint")) continue;
      const row = chart.tip.appendChild(document.createElement("div"));
      const mark = row.appendChild(document.createElement("i"));
      mark.style.background = line.path.style.stroke;
      row.append(`${show(chart, 1, nearest(line.points, x)[1], (chart.frame[3] - chart.frame[2]) / 100)} ${line.name || ""}`);
    }
    const share = at / chart.svg.viewBox.baseVal.width;
    chart.tip.style.left = share < 0.5 ? `${100 * share + 2}%` : "";
    chart.tip.style.right = share < 0.5 ? "" : `${100 - 100 * share + 2}%`;
  }

  function leave(chart) {
    chart.rule.setAttribute("visibility", "hidden");
    chart.tip.hidden = true;
  }

  /* --- a closer look --- */

  function redraw(chart) {
    const [x0, x1] = chart.frame, is_whole = chart.frame === chart.whole;
    const inside = p => p[0] >= x0 && p[0] <= x1, draw = p => `${place(chart, 0, p[0]).toFixed(1)} ${place(chart, 1, p[1]).toFixed(1)}`;
    for (const line of chart.lines)
      line.path.setAttribute("d", is_whole ? line.d : line.points.filter(inside).map((p, i) => (i ? "L" : "M") + draw(p)).join(""));
    for (const {dot, point} of chart.dots) {
      dot.setAttribute("cx", place(chart, 0, point[0]));
      dot.setAttribute("cy", place(chart, 1, point[1]));
      dot.setAttribute("visibility", inside(point) ? "visible" : "hidden");
    }
    for (const {tick, text, along, at} of chart.ticks)
      tick.textContent = is_whole ? text : show(chart, along, data(chart, along, at), (chart.frame[3] - chart.frame[2]) / 10);
  }

  /* The range of x, and of y what is seen in it; nothing changes where that is nothing. */
  function zoom(chart, x0, x1) {
    const seen = chart.lines.flatMap(line => line.points.filter(p => p[0] >= x0 && p[0] <= x1).map(p => p[1]));
    if (!seen.length) return;
    const low = Math.min(...seen), high = Math.max(...seen), room = (high - low || Math.abs(high) || 1) * 0.05;
    chart.frame = [x0, x1, low - room, high + room];
    redraw(chart);
  }

  function reset(chart) {
    chart.frame = chart.whole;
    redraw(chart);
  }

  for (const chart of charts) {
    const alike = charts.filter(other => other.axis === chart.axis);
    const at = event => {
      const area = chart.svg.getBoundingClientRect();
      const x = (event.clientX - area.left) / area.width * chart.svg.viewBox.baseVal.width;
      return Math.max(chart.box[0], Math.min(chart.box[1], x));
    };
    let from = null;
    chart.svg.addEventListener("pointermove", event => {
      const x = at(event);
      for (const other of alike) point(other, data(chart, 0, x));
      if (from === null) return;
      chart.brush.setAttribute("x", Math.min(from, x));
      chart.brush.setAttribute("width", Math.abs(x - from));
      chart.brush.setAttribute("visibility", "visible");
    });
    chart.svg.addEventListener("pointerdown", event => {
      if (event.button === 0) from = at(event);
    });
    const end = event => {
      const to = at(event), begin = from;
      from = null;
      chart.brush.setAttribute("visibility", "hidden");
      if (begin === null || Math.abs(to - begin) < 6) return;
      const range = [data(chart, 0, Math.min(begin, to)), data(chart, 0, Math.max(begin, to))];
      for (const other of alike) zoom(other, ...range);
    };
    chart.svg.addEventListener("pointerup", end);
    chart.svg.addEventListener("pointerleave", event => {
      end(event);
      alike.forEach(leave);
    });
    chart.svg.addEventListener("dblclick", () => alike.forEach(reset));
  }

  const first = document.querySelector(".charts");
  if (first && charts.length) {
    const hint = document.createElement("p");
    hint.className = "dim hint";
    hint.textContent = "Point at a chart for its values; drag over a range to look closer, and double click to go back.";
    first.before(hint);
  }
})();
