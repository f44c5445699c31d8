"""How the fleet's page looks."""

from __future__ import annotations

COLOURS = ("#4269d0", "#efb118", "#97bbf5", "#3ca951", "#9c6b4e", "#a463f2", "#ff8ab7", "#6cc5b0", "#ff725c", "#9498a0", "#555")
STYLE = (
    """
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;color:#222;background:#fff}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.25em .6em;border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:anywhere}
th{white-space:nowrap}td:first-child{min-width:6em}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}
b.pass,.pass{color:#17692b}b.fail,.fail{color:#b00020}b.warn,.warn{color:#8a5a00}.skipped,.not-judged{color:#666}
.bar{display:flex;height:1em;min-width:16em;background:#eee;position:relative}.bar i{height:100%}
.legend i{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 .8em}
.floor::after{content:"";position:absolute;left:66.67%;top:-2px;bottom:-2px;border-left:2px solid #222}
i.pass{background:#3ca951}i.fail{background:#d62839}i.warn{background:#efb118}
details{border-bottom:1px solid #ddd;padding:.3em 0}summary{cursor:pointer}
"""
    + "".join(f".s{at}{{background:{colour}}}" for at, colour in enumerate(COLOURS))
    + "\n"
)
