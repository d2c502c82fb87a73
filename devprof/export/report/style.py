"""How the page looks, and the one thing that it can do: sort a table by the column that is clicked."""

from __future__ import annotations

import base64
import hashlib

from devprof.export.report.markup import Markup

__all__ = ["POLICY", "SCRIPT", "STYLE"]

STYLE = Markup("""
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b2733;--soft:#5b6b7b;--line:#dfe4ea;--hover:#f0f4f9;
--k0:#2f6fdd;--k1:#9a4fd0;--k2:#e08a1e;--h0:#0d8f80;--h1:#63bfae;--h2:#bfe0d8;--light:#c8d8f2;
--host:#d9534f;--launch:#e5b93a;--dependency:#8f6fc9;--between:#8fa3b8;--unknown:#c9ced4;
--info:#2f6fdd;--warning:#b7791f;--error:#c53030;--good:#24855b}
@media (prefers-color-scheme:dark){:root{--page:#12171d;--card:#1a2129;--ink:#e4eaf0;--soft:#95a4b3;--line:#2d3742;
--hover:#222b35;--k0:#5b93f5;--k1:#b983e6;--k2:#f0a44a;--h0:#2bb3a2;--h1:#1d7268;--h2:#1c4a45;--light:#2c4670;
--host:#e8736f;--launch:#e9c65a;--dependency:#aa8fe0;--between:#6f8296;--unknown:#4a545e;
--info:#7aa7f7;--warning:#e0b058;--error:#f08a8a;--good:#5cc497}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main,header,footer{max-width:1180px;margin:0 auto;padding:0 20px}
header{padding-top:22px}
h1{font-size:22px;margin:0;overflow-wrap:anywhere}
h2{font-size:16px;margin:0 0 10px}
h3{font-size:13px;margin:14px 0 6px;color:var(--soft)}
nav{display:flex;flex-wrap:wrap;gap:4px 14px;margin:8px 0 14px;font-size:13px}
a{color:var(--info);text-decoration:none}a:hover{text-decoration:underline}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px 16px;margin:0 0 14px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:0 0 14px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px}
.tile b{display:block;font-size:20px;font-weight:600;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:12px}
.good b{color:var(--good)}.warning b{color:var(--warning)}.error b{color:var(--error)}
.note,.legend,.sub{color:var(--soft);font-size:12px;margin:8px 0 0}
.sub{margin:2px 0 0}
.legend span{display:inline-flex;align-items:center;margin-right:14px;gap:6px}
.legend i{width:11px;height:11px;border-radius:2px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13px}
th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap;
unicode-bidi:isolate}
thead th{color:var(--soft);font-weight:500;font-size:12px;vertical-align:bottom;cursor:pointer}
thead th[aria-sort=descending]::after{content:" ▾"}thead th[aria-sort=ascending]::after{content:" ▴"}
tbody tr:hover{background:var(--hover)}
.n{text-align:right;font-variant-numeric:tabular-nums}
.t{max-width:420px;overflow:hidden;text-overflow:ellipsis}
.facts th{color:var(--soft);font-weight:500;width:220px}.facts td{white-space:normal;overflow-wrap:anywhere}
svg{display:block;width:100%}
.bar{display:inline-block;height:6px;width:80px;margin-left:8px;background:var(--line);border-radius:3px;vertical-align:middle}
.stacked{height:16px}.range{height:16px;min-width:180px}
.columns,.area{height:120px;border-bottom:1px solid var(--line)}
figure{margin:0}
.rows{display:grid;grid-template-columns:minmax(90px,230px) minmax(0,1fr) 64px;gap:3px 12px;align-items:center;font-size:12px}
.rows .place{grid-column:1/-1;font-weight:600;margin-top:6px;overflow-wrap:anywhere}
.rows .name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;color:var(--soft);unicode-bidi:isolate}
.strip{height:26px;background:var(--page);border-radius:3px}
.axis{position:relative;height:18px;grid-column:2;font-size:11px;color:var(--soft);border-top:1px solid var(--line)}
.axis span{position:absolute;padding-left:3px;border-left:1px solid var(--line)}
.ends{display:flex;justify-content:space-between;font-size:11px;color:var(--soft);font-variant-numeric:tabular-nums}
.k0{fill:var(--k0);background:var(--k0)}.k1{fill:var(--k1);background:var(--k1)}.k2{fill:var(--k2);background:var(--k2)}
.host .k0,.h0{fill:var(--h0);background:var(--h0)}.host .k1,.h1{fill:var(--h1);background:var(--h1)}
.host .k2,.h2{fill:var(--h2);background:var(--h2)}
.c0{fill:var(--host);background:var(--host)}.c1{fill:var(--launch);background:var(--launch)}
.c2{fill:var(--dependency);background:var(--dependency)}.c3{fill:var(--between);background:var(--between)}
.c4{fill:var(--unknown);background:var(--unknown)}
.light{fill:var(--light);background:var(--light)}.thin{fill:var(--light)}.tick{fill:var(--ink)}
.mark{stroke:var(--soft);stroke-width:1;stroke-dasharray:2 2;fill:none;vector-effect:non-scaling-stroke;opacity:.7}
.line{stroke:var(--k2);stroke-width:1.5;fill:none;vector-effect:non-scaling-stroke}
.findings{list-style:none;margin:0;padding:0}
.findings li{padding:6px 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
.findings b{display:inline-block;min-width:72px;margin-right:8px}.findings code{color:var(--soft);margin-right:8px}
.findings .info b{color:var(--info)}.findings .warning b{color:var(--warning)}.findings .error b{color:var(--error)}
footer{color:var(--soft);font-size:12px;padding-bottom:24px}
@media print{:root{--page:#fff;--card:#fff;--ink:#000;--soft:#444;--line:#bbb}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
nav{display:none}section{border:0;border-top:1px solid var(--line);border-radius:0;padding:10px 0}
.tile,figure,tr{break-inside:avoid}h2,h3{break-after:avoid}
body{font-size:11px}table{font-size:10px}.scroll{overflow:visible}
.t{white-space:normal;overflow-wrap:anywhere;max-width:260px}}
""")

SCRIPT = Markup("""
"use strict";
for (const head of document.querySelectorAll("thead th")) {
  head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0], column = head.cellIndex;
    const up = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const order = (a, b) => up * (a - b || String(a).localeCompare(b));
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up < 0 ? "descending" : "ascending");
    body.append(...[...body.rows].sort((a, b) => order(key(a), key(b))));
  });
}
""")

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    f"script-src 'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'"
)
"""What the page may do: nothing but its own script; a second wall behind the escaping of every text."""
