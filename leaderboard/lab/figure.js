"use strict";
// A figure as an element: <lab-figure figure="{data, layout}">, drawn by the leaderboard's copy of plotly.js.
customElements.define("lab-figure", class extends HTMLElement {
  static observedAttributes = ["figure"];

  connectedCallback() {
    this.style.display = "block";
    this.attributeChangedCallback();
  }

  attributeChangedCallback() {
    if (!this.isConnected) return;
    const { data, layout } = JSON.parse(this.getAttribute("figure"));
    const ink = getComputedStyle(this).color;
    const axis = { gridcolor: "#8884", linecolor: "#8888", zerolinecolor: "#8888" };
    // Room for the legend, which is below on any width.
    const curves = data.filter(({ showlegend }) => showlegend !== false).length;
    const columns = this.clientWidth < 480 ? 1 : 2;
    const height = layout.height + (layout.showlegend ? 22 * Math.ceil(curves / columns) : 0);
    Plotly.react(this, data, {
      ...layout, height, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, size: 12 },
      xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis },
    }, { displayModeBar: false, responsive: true });
  }

  disconnectedCallback() {
    Plotly.purge(this);
  }
});
