"""What the HTML page carries inside itself: its style, and a small script that filters the table.

The page is complete without the script: it only adds the filter, opens the job that a link names,
and opens everything for printing.
"""

from __future__ import annotations

from typing import Final

CSS: Final = """
:root{color-scheme:light dark;
--bg:light-dark(#fff,#14171a);--fg:light-dark(#1b1f23,#e4e7ea);--dim:light-dark(#57606a,#9aa4ae);
--line:light-dark(#d5dade,#343b42);--panel:light-dark(#f5f7f8,#1d2226);
--red:light-dark(#b42318,#ff8a80);--amber:light-dark(#8a5a00,#ffc861);--green:light-dark(#17693a,#7ddc9a);
--blue:light-dark(#1a56b0,#8ab8ff);
--gone:light-dark(#ffebe9,#46211f);--new:light-dark(#e2f6e8,#1c3a26);--changed:light-dark(#fff5d6,#3d3413)}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem;max-width:110rem;background:var(--bg);color:var(--fg);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.6rem;margin:0 0 .25rem}h2{font-size:1.2rem;margin:2.2rem 0 .6rem}
p{margin:.3rem 0 .8rem;max-width:60rem}.dim{color:var(--dim)}
a{color:var(--blue)}
code,pre,.d{font:12.5px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
code{overflow-wrap:anywhere}
.cards{display:flex;flex-wrap:wrap;gap:.7rem;margin:1rem 0}
.card{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.6rem 1rem;min-width:7.5rem}
.card b{display:block;font-size:1.7rem;line-height:1.2;font-variant-numeric:tabular-nums}
.card span{color:var(--dim)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{padding:.35rem .7rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{background:var(--panel);font-weight:600;white-space:nowrap}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
i.c{display:none}
.z{white-space:normal}
tfoot td{font-weight:600;border-top:2px solid var(--line)}
.tag{display:inline-block;border:1px solid currentColor;border-radius:99px;padding:0 .55rem;font-size:.85em;
white-space:nowrap}
.error,.refused{color:var(--red)}.warning,.held{color:var(--amber)}.note{color:var(--blue)}.migrated{color:var(--green)}
.short{color:var(--red);font-weight:600}
ul.f{list-style:none;margin:.4rem 0 1rem;padding:0}
ul.f li{padding:.3rem 0 .3rem .8rem;border-left:3px solid var(--line);margin:.3rem 0;overflow-wrap:anywhere}
ul.f li.error{border-color:var(--red)}ul.f li.warning{border-color:var(--amber)}ul.f li.note{border-color:var(--blue)}
ul.f li>*{color:var(--fg)}ul.f .k{font-weight:600}li.error .k{color:var(--red)}li.warning .k{color:var(--amber)}
li.note .k{color:var(--blue)}
details{border:1px solid var(--line);border-radius:8px;margin:.5rem 0;content-visibility:auto;
contain-intrinsic-size:auto 2.6rem}
details[open]{content-visibility:visible}
summary{padding:.5rem .9rem;cursor:pointer;overflow-wrap:anywhere}
td details{border:0;margin:0}td summary{padding:0;white-space:nowrap;color:var(--blue)}
.in{padding:0 .9rem .9rem}
.jobs td:first-child{overflow-wrap:anywhere;min-width:12rem}.jobs td:nth-child(2){min-width:15rem}
.bar{display:flex;flex-wrap:wrap;gap:.6rem 1rem;align-items:center;margin:.5rem 0}
.bar input[type=search]{font:inherit;padding:.3rem .6rem;min-width:16rem;background:var(--bg);color:var(--fg);
border:1px solid var(--line);border-radius:6px}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(34rem,100%),1fr));gap:.8rem;align-items:start}
.d{border:1px solid var(--line);table-layout:fixed}
.d td,.d th{border:0;padding:0 .5rem;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate}
.d th{border-bottom:1px solid var(--line);white-space:normal;padding:.3rem .5rem;font-weight:600}
.d col.l{width:3.4rem}.d col.e{width:6.2rem}.w{min-width:9rem}
details.q{border:0;margin:.2rem 0 .8rem}details.q>summary{padding:.2rem 0;color:var(--blue)}
.d td:first-child{text-align:right;color:var(--dim);user-select:none;padding-right:.3rem}
.d td:last-child{text-align:right;color:var(--dim);user-select:none;overflow-wrap:normal}
.gone,.d .gone td{background:var(--gone)}.new,.d .new td{background:var(--new)}
.changed,.d .changed td{background:var(--changed)}
.key{padding:.1rem .5rem;border-radius:4px;color:var(--fg)}
tr[hidden],details[hidden]{display:none}
@media (max-width:50rem){
body{padding:.8rem}.in{padding:0 .4rem .6rem}.d col.l{width:2.6rem}.d col.e{width:3.8rem}
table:not(.d),table:not(.d)>tbody,table:not(.d)>tfoot,table:not(.d)>*>tr,table:not(.d)>*>tr>td{display:block}
table:not(.d)>thead{display:none}
table:not(.d)>*>tr{border:1px solid var(--line);border-radius:8px;margin:.5rem 0;padding:.4rem .7rem}
table:not(.d)>*>tr>td{border:0;padding:.12rem 0;text-align:left}
td[data-l]::before{content:attr(data-l) ": ";color:var(--dim)}
td[data-l]:empty{display:none!important}.jobs td{min-width:0!important}
tr[hidden]{display:none!important}
td.n br{display:none}td.n .c{display:inline;font-style:normal}
}
@media print{
:root{color-scheme:light}body{max-width:none;padding:0;font-size:11px}
.bar{display:none}details{break-inside:auto;content-visibility:visible}
tr,li{break-inside:avoid}.card{padding:.3rem .6rem}
}
"""

JS: Final = """
(function(){
var bar=document.getElementById('bar'),q=document.getElementById('q');
if(!bar||!q)return;
bar.hidden=false;
var rows=[].slice.call(document.querySelectorAll('tr[data-state]'));
var boxes=[].slice.call(bar.querySelectorAll('input[type=checkbox]'));
function run(){
var words=q.value.toLowerCase().split(/\\s+/).filter(Boolean),n=0;
rows.forEach(function(r){
var box=boxes.filter(function(b){return b.value===r.dataset.state})[0];
var text=r.dataset.text;
var ok=(!box||box.checked)&&words.every(function(w){return text.indexOf(w)>=0});
r.hidden=!ok;if(ok)n++;
var d=document.getElementById(r.dataset.job);if(d)d.hidden=!ok;
});
document.getElementById('n').textContent=n+' of '+rows.length;
}
q.addEventListener('input',run);boxes.forEach(function(b){b.addEventListener('change',run)});
function show(){var d=document.getElementById(location.hash.slice(1));
if(d&&d.tagName==='DETAILS'){d.open=true;d.scrollIntoView()}}
window.addEventListener('hashchange',show);show();
window.addEventListener('beforeprint',function(){
[].forEach.call(document.querySelectorAll('details'),function(d){if(!d.hidden)d.open=true})});
run();
})();
"""
