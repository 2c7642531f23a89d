"use strict";
// Draws the figures when they come into sight, sorts and filters the rows, and follows the reader's colours.
(() => {
  const COLOURS = ["#3579c8", "#d24a5f", "#2c9a4b", "#b5830a", "#1698b0", "#a14fc4", "#808890", "#d8702a"];
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const SYMBOLS = ["circle", "square", "diamond", "cross", "x", "triangle-up", "triangle-down", "star"];
  const pictures = new Map(JSON.parse(document.getElementById("data").textContent).map((one) => [one.id, one]));
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const element = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };

  // Figures -----------------------------------------------------------------------------------------------------

  // A name looks the same in all figures of a suite.
  const suites = new Map();
  const look = (suite, name) => {
    if (!suites.has(suite)) suites.set(suite, new Map());
    const looks = suites.get(suite);
    if (!looks.has(name)) {
      const at = looks.size;
      looks.set(name, {
        color: COLOURS[at % COLOURS.length],
        dash: DASHES[Math.floor(at / COLOURS.length) % DASHES.length],
        symbol: SYMBOLS[(at + Math.floor(at / SYMBOLS.length)) % SYMBOLS.length],
      });
    }
    return looks.get(name);
  };
  const paint = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Lines to compare with are grey, so that they are told from what is compared.
  const LEVELS = { "untuned silence": ["--soft", "solid"], "tuned silence": ["--ink", "solid"], placebo: ["--soft", "dot"], "true data": ["--ink", "dash"], "true data, tuned": ["--link", "dash"] };
  const faint = (colour) => colour + "2e";

  function traces(suite, curve) {
    const common = { name: curve.name, legendgroup: curve.name, x: curve.x, y: curve.y, visible: curve.shown, ...(curve.texts && { text: curve.texts }) };
    if (curve.form === "level") {
      const [colour, dash] = LEVELS[curve.name.split(":")[0]] ?? ["--soft", "dashdot"];
      return [{ ...common, mode: "lines", line: { color: paint(colour), dash, width: 2 } }];
    }
    if (curve.form === "front") {
      return [{ ...common, mode: "lines+markers", line: { color: paint("--ink"), shape: "hv", width: 1.5, dash: "dot" }, marker: { color: paint("--ink"), size: 3 } }];
    }
    const { color, dash, symbol } = curve.name === "beaten" ? { color: paint("--soft"), symbol: "circle-open" } : look(suite, curve.name);
    if (curve.form === "band") {
      const line = { ...common, mode: "lines", line: { color, dash, width: 2 } };
      if (!curve.low) return [line];
      const edge = { ...common, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
      return [{ ...edge, y: curve.low }, { ...edge, y: curve.high, fill: "tonexty", fillcolor: faint(color) }, line];
    }
    const error = curve.low && {
      type: "data", symmetric: false, thickness: 1, width: 3, color,
      array: curve.high.map((high, i) => high - curve.y[i]),
      arrayminus: curve.low.map((low, i) => curve.y[i] - low),
    };
    const mode = curve.form === "points" ? "markers" : "lines+markers";
    return [{ ...common, mode, line: { color, dash, width: 2 }, marker: { color, symbol, size: 8 }, ...(error && { error_y: error }) }];
  }

  function axis(title, log, extra) {
    const rule = paint("--rule");
    return {
      title: { text: title, font: { size: 13 }, standoff: 10 }, type: log ? "log" : "linear", gridcolor: rule, linecolor: rule,
      zerolinecolor: rule, automargin: true, ...extra,
    };
  }

  const written = (value) => value >= 1e6 || value < 1e-3 ? value.toExponential(0).replace("e+", "e") : value.toLocaleString("en");

  // Of a logarithmic axis: about six round numbers, and the places that have a name.
  function ticks(labelled, numbers) {
    const named = labelled.map(([place]) => place);
    const places = numbers.filter((value) => value > 0 && !named.includes(value));
    const values = [...named], texts = labelled.map(([, text]) => text);
    if (places.length) {
      const low = Math.log10(Math.min(...places)) - 0.05, high = Math.log10(Math.max(...places)) + 0.05;
      const digits = high - low < 2 ? [1, 2, 5] : high - low < 3 ? [1, 3] : [1];
      const step = Math.max(1, Math.ceil((high - low) / 6));
      const span = named.length ? Math.log10(Math.max(...named, ...places) / Math.min(...named, ...places)) : 0;
      for (let power = Math.floor(low); power <= high; power += step) {
        for (const digit of digits) {
          const value = Number(`${digit}e${power}`), at = Math.log10(value);
          if (at < low || at > high || named.some((place) => Math.abs(Math.log10(place) - at) < span * 0.06)) continue;
          values.push(value);
          texts.push(written(value));
        }
      }
    }
    return { tickmode: "array", tickvals: values, ticktext: texts };
  }

  function draw(place) {
    const picture = pictures.get(place.dataset.picture);
    const { suite } = place.closest("figure").dataset;
    const shown = picture.curves.filter((curve) => curve.shown);
    // Room for the legend.
    const height = place.clientWidth < 480 ? 330 + 22 * shown.length : 320 + 11 * shown.length;
    place.style.height = `${height}px`;
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: paint("--ink"), family: "system-ui, sans-serif", size: 12 },
      margin: { l: 50, r: 10, t: 10, b: 40 }, height, hovermode: "closest",
      xaxis: axis(picture.x, picture.log, picture.log && ticks(picture.ticks, shown.flatMap((curve) => curve.x))),
      yaxis: axis(picture.y, picture.log, picture.log && ticks([], shown.flatMap((curve) => [...curve.y, ...(curve.low ?? []), ...(curve.high ?? [])]))),
      legend: { orientation: "h", x: 0, yref: "container", y: 0, yanchor: "bottom", font: { size: 12 } }, showlegend: true,
    };
    Plotly.react(place, picture.curves.flatMap((curve) => traces(suite, curve)), layout, { displayModeBar: false, responsive: true });
    place.dataset.drawn = "true";
    if (!performance.getEntriesByName("first figure").length) performance.mark("first figure");
  }

  function tabulate(into, picture) {
    const scroll = element("div", undefined, { class: "scroll", role: "region", tabindex: "0", "aria-label": `Numbers of ${picture.title}` });
    const table = element("table");
    const heads = element("tr");
    for (const text of ["Curve", picture.x, picture.y, "Lower end", "Upper end"]) heads.append(element("th", text, { scope: "col" }));
    const names = new Map(picture.ticks);
    const body = element("tbody");
    for (const curve of picture.curves) {
      curve.y.forEach((y, i) => {
        const line = element("tr");
        line.append(element("th", curve.texts?.[i] ?? curve.name, { scope: "row" }));
        const x = curve.form === "level" ? "everywhere" : names.get(curve.x[i]) ?? curve.x[i];
        for (const value of [x, y, curve.low?.[i], curve.high?.[i]]) line.append(element("td", value ?? "\u2013", { class: "number" }));
        if (curve.form !== "level" || i === 0) body.append(line);
      });
    }
    const head = element("thead");
    head.append(heads);
    table.append(head, body);
    scroll.append(table);
    into.replaceChildren(scroll);
  }

  const sight = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      sight.unobserve(target);
      draw(target);
    }
  }, { rootMargin: "200px" });

  for (const place of all(".plot")) {
    const picture = pictures.get(place.dataset.picture);
    sight.observe(place);
    if (picture.curves.some((curve) => !curve.shown)) {
      const first = picture.curves.map((curve) => curve.shown);
      const more = element("button", "Draw all entries", { type: "button", class: "more", "aria-pressed": "false" });
      more.addEventListener("click", () => {
        const every = more.getAttribute("aria-pressed") === "false";
        more.setAttribute("aria-pressed", String(every));
        picture.curves.forEach((curve, i) => { curve.shown = every || first[i]; });
        draw(place);
      });
      place.after(more);
    }
  }
  for (const words of all("details.words")) {
    words.addEventListener("toggle", () => {
      const into = words.querySelector(".numbers");
      if (words.open && !into.firstChild) tabulate(into, pictures.get(into.dataset.of));
    });
  }

  // Rows --------------------------------------------------------------------------------------------------------

  const body = document.querySelector("#ranking tbody");
  const rows = all("tr", body);
  const filters = ["suite", "track", "kind"].map((name) => [name, document.getElementById(`filter-${name}`)]);
  for (const [name, select] of filters) {
    for (const value of [...new Set(rows.map((row) => row.dataset[name]))].sort()) select.append(element("option", value));
  }
  const search = document.getElementById("filter-name");
  const count = document.getElementById("count");

  function filter() {
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !(row.dataset.name.includes(wanted) && filters.every(([name, { value }]) => !value || row.dataset[name] === value));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length} rows`;
    const suite = filters[0][1].value;
    for (const part of all("section[data-suite], figure[data-suite]")) part.hidden = Boolean(suite) && part.dataset.suite !== suite;
  }
  const form = document.getElementById("filters");
  // Not every browser tells of a choice as of input.
  for (const event of ["input", "change"]) form.addEventListener(event, filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));

  // What has no value comes last, either way round.
  function compare(a, b, sign) {
    if (a === "" || b === "") return (a === "") - (b === "");
    return sign * (typeof a === "number" ? (a > b) - (a < b) : a.localeCompare(b, "en", { numeric: true }));
  }
  const heads = all("#ranking thead th");
  heads.forEach((head, column) => {
    head.firstChild.addEventListener("click", () => {
      const other = { ascending: "descending", descending: "ascending" };
      const order = other[head.getAttribute("aria-sort")] ?? head.dataset.first;
      heads.forEach((one) => one.setAttribute("aria-sort", one === head ? order : "none"));
      const key = ({ children: { [column]: cell } }) => {
        const { value } = cell.dataset;
        return value === undefined ? cell.textContent : value === "" ? "" : Number(value);
      };
      const sign = order === "ascending" ? 1 : -1;
      // Open rows stay below all others, by whatever is sorted.
      const below = ([a, one], [b, other]) => ("open" in one.dataset) - ("open" in other.dataset) || compare(a, b, sign);
      body.append(...rows.map((row) => [key(row), row]).sort(below).map(([, row]) => row));
    });
  });

  function open() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.matches("details.row")) return;
    target.open = true;
    target.scrollIntoView();
    target.firstChild.focus();
  }
  addEventListener("hashchange", open);
  for (const button of all(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.closest("details").querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
    });
  }

  // Colours -----------------------------------------------------------------------------------------------------

  const theme = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  function wear(isDark) {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    theme.setAttribute("aria-pressed", String(isDark));
    all(".plot[data-drawn]").forEach(draw);
  }
  theme.addEventListener("click", () => wear(theme.getAttribute("aria-pressed") === "false"));
  dark.addEventListener("change", () => wear(dark.matches));

  wear(dark.matches);
  filter();
  open();
})();
