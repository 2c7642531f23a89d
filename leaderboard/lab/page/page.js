"use strict";
// Fills the menus, and draws and tabulates what they choose.
(() => {
  const COLOURS = ["#3579c8", "#d24a5f", "#2c9a4b", "#b5830a", "#a14fc4", "#1698b0"];
  const { problems, schedules, summaries } = JSON.parse(document.getElementById("data").textContent);
  const menus = {};
  for (const name of ["problem", "compare", "algorithm", "epsilon", "schedule", "axes"]) menus[name] = document.getElementById(name);
  const plot = document.getElementById("plot");

  // Offers options, and keeps the one chosen where it is still among them.
  function fill(menu, options, first = options[0][0]) {
    const before = menu.value;
    menu.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
    menu.value = options.some(([value]) => value === before) ? before : first;
  }
  const named = (names) => names.map((name) => [String(name), String(name)]);

  function offer() {
    const { sharing, private: noisy, curves } = problems[menus.problem.value];
    const compared = menus.compare.value;
    const epsilons = [...new Set(curves.map(({ epsilon }) => epsilon).filter((epsilon) => epsilon !== null))];
    fill(menus.algorithm, named(compared === "epsilon" ? noisy : [...noisy, ...sharing]), noisy[1]);
    fill(menus.epsilon, named(epsilons), "1");
    fill(menus.schedule, named(schedules));
    menus.algorithm.disabled = compared === "algorithm";
    // True data has no epsilon.
    menus.epsilon.disabled = compared === "epsilon" || (compared === "schedule" && sharing.includes(menus.algorithm.value));
    menus.schedule.disabled = compared === "schedule";
  }

  // The curves that menus choose, silent ones last, each with the name it has among them.
  function chosen() {
    const { silent, curves } = problems[menus.problem.value];
    const compared = menus.compare.value;
    const said = { algorithm: menus.algorithm.value, epsilon: Number(menus.epsilon.value), schedule: menus.schedule.value };
    const fits = (curve, name) => name === compared || curve[name] === said[name] || (name === "epsilon" && curve.epsilon === null);
    const among = curves.filter((curve) => !silent.includes(curve.algorithm) && ["algorithm", "epsilon", "schedule"].every((name) => fits(curve, name)));
    const label = { algorithm: (curve) => curve.algorithm, epsilon: ({ epsilon }) => `epsilon ${epsilon}`, schedule: ({ schedule }) => schedule }[compared];
    return [
      ...among.map((curve) => ({ ...curve, name: label(curve) })),
      ...silent.map((name) => ({ ...curves.find(({ algorithm }) => algorithm === name), name, silent: true })),
    ];
  }

  const paint = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });

  function draw(curves, rounds) {
    const log = menus.axes.value === "log";
    const axis = (title) => ({ title: { text: title, font: { size: 13 }, standoff: 10 }, type: menus.axes.value, gridcolor: paint("--rule"), linecolor: paint("--rule"), zerolinecolor: paint("--rule"), automargin: true, ...(log && { dtick: 1 }) });
    let quiet = 0;
    const traces = curves.flatMap((curve, i) => {
      const line = curve.silent ? { color: paint("--soft"), dash: ["dash", "dot", "dashdot"][quiet++ % 3], width: 2 } : { color: COLOURS[i % COLOURS.length], width: 2 };
      const common = { x: rounds, mode: "lines", legendgroup: curve.name, name: curve.silent ? `${curve.name} (silent)` : curve.name };
      const edge = { ...common, line: { width: 0 }, hoverinfo: "skip", showlegend: false };
      // A logarithmic axis has no place for 0.
      const above = (value) => (log && value <= 0 ? null : value);
      return [
        { ...edge, y: curve.low.map((low, j) => above(low) ?? above(curve.mean[j])) },
        { ...edge, y: curve.high.map(above), fill: "tonexty", fillcolor: curve.silent ? "rgba(128,136,144,.15)" : `${line.color}2e` },
        { ...common, y: curve.mean.map(above), line, hovertemplate: "%{y:.4g} after %{x} rounds" },
      ];
    });
    const height = (plot.clientWidth < 480 ? 330 : 340) + 20 * Math.ceil(curves.length / (plot.clientWidth < 480 ? 1 : 2));
    plot.style.height = `${height}px`;
    Plotly.react(plot, traces, {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: paint("--ink"), family: "system-ui, sans-serif", size: 12 },
      margin: { l: 50, r: 10, t: 10, b: 40 }, height, hovermode: "closest", xaxis: axis("round"), yaxis: axis("cumulative regret per agent"),
      legend: { orientation: "h", x: 0, yref: "container", y: 0, yanchor: "bottom", font: { size: 11 } }, showlegend: true,
    }, { displayModeBar: false, responsive: true });
  }

  function cell(tag, text, also) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (tag === "th") made.scope = "row";
    else made.className = "number";
    if (also) made.append(Object.assign(document.createElement("small"), { textContent: also }));
    return made;
  }

  function spent({ claim, schedule }) {
    if (schedule === null) return ["0", "nothing is sent"];
    if (claim === null) return ["\u221e", "true data"];
    if (claim.epsilon === null) return ["unknown", claim.reason];
    return [number(claim.epsilon), `delta ${claim.delta}, ${claim.adjacency}`];
  }

  function tabulate(curves) {
    document.querySelector("#numbers tbody").replaceChildren(...curves.map((curve) => {
      const row = document.createElement("tr");
      row.append(
        cell("th", curve.name, summaries[curve.algorithm]), cell("td", number(curve.mean.at(-1))),
        cell("td", `${number(curve.low.at(-1))} \u2013 ${number(curve.high.at(-1))}`), cell("td", ...spent(curve)),
        cell("td", number(curve.messages)), cell("td", number(curve.bytes)),
      );
      return row;
    }));
  }

  function show() {
    offer();
    const { title, rounds } = problems[menus.problem.value];
    const curves = chosen();
    const held = ["algorithm", "epsilon", "schedule"].filter((name) => !menus[name].disabled).map((name) => (name === "epsilon" ? `epsilon ${menus.epsilon.value}` : menus[name].value));
    document.getElementById("title").textContent = `${title}: ${held.join(", ")}`;
    const [best, ...others] = [...curves].sort((a, b) => a.mean.at(-1) - b.mean.at(-1));
    const silence = curves.filter(({ silent }) => silent).sort((a, b) => a.mean.at(-1) - b.mean.at(-1))[0];
    document.getElementById("words").textContent = `After ${number(rounds.at(-1))} rounds ${best.name} has least regret, ${number(best.mean.at(-1))} per agent, of ${others.length + 1} curves; ${silence.name}, which is silent, has ${number(silence.mean.at(-1))}.`;
    draw(curves, rounds);
    tabulate(curves);
  }

  fill(menus.problem, Object.entries(problems).map(([name, { title }]) => [name, title]));
  const form = document.getElementById("menus");
  // Not every browser tells of a choice as of input.
  for (const event of ["input", "change"]) form.addEventListener(event, show);
  form.addEventListener("submit", (event) => event.preventDefault());

  const dark = matchMedia("(prefers-color-scheme: dark)");
  function wear() {
    document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
    show();
  }
  dark.addEventListener("change", wear);
  wear();
})();
