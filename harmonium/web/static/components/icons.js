// The icons of buttons; each button also has a label.

import { html } from "../vendor/preact.js";

const PATHS = {
  play: "M7 4.5v15l13-7.5z",
  pause: "M6 5h4.5v14H6zM13.5 5H18v14h-4.5z",
  next: "M5 5v14l10-7zM16.5 5H19v14h-2.5z",
  previous: "M19 5v14L9 12zM5 5h2.5v14H5z",
  close:
    "M6.4 5 12 10.6 17.6 5 19 6.4 13.4 12l5.6 5.6-1.4 1.4-5.6-5.6L6.4 19 5 17.6 10.6 12 5 6.4z",
  pencil: "M4 16.500 15 5.500 18.500 9 7.500 20H4zM16.400 4.100 18 2.500 21.500 6 19.900 7.600z",
  minus: "M5 11h14v2H5z",
  plus: "M11 5h2v6h6v2h-6v6h-2v-6H5v-2h6z",
  search:
    "M10 3a7 7 0 0 1 5.6 11.2l5.1 5.1-1.4 1.4-5.1-5.1A7 7 0 1 1 10 3m0 2a5 5 0 1 0 0 10 5 5 0 0 0 0-10",
  alike:
    "M3 9.5c3-4 6-4 9-1s6 3 9-1v3c-3 4-6 4-9 1s-6-3-9 1zM3 15.500c3-4 6-4 9-1s6 3 9-1v3c-3 4-6 4-9 1s-6-3-9 1z",
  path: "M4 11h12.2l-4.600-4.600L13 5l7 7-7 7-1.400-1.400 4.600-4.600H4z",
  download:
    "M11 4h2v8.200l3.300-3.300 1.400 1.400L12 16l-5.700-5.700 1.400-1.400 3.300 3.300zM5 18h14v2H5z",
  folder: "M3 5h7l2 2h9v12H3zm2 4v8h14V9z",
  note: "M9 4.500 19 3v12.500a3 3 0 1 1-2-2.800V7.400l-6 .9v9.200a3 3 0 1 1-2-2.800z",
};

export const Icon = ({ name }) =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d=${PATHS[name]} />
  </svg>`;
