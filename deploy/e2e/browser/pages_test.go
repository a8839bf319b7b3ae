package browser_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"arizuko/pkg/testkit/browser"
	"arizuko/pkg/testkit/executable"
)

var reload = chromedp.Reload()

func overviewIsLive(t *testing.T, b *browser.Browser) {
	i := start(t)
	p, q := i.logIn(b), i.open(b)
	q.Visit(i.url + "/")
	q.says("#facts", "dashd")
	p.SendMessage("until go for the overview")
	q.says("#facts", "web:main")
	i.letGo("go")
	p.has("< until go for the overview")
	q.Wait(`!document.querySelector("#facts").innerText.includes("web:main")`)
	pid := i.Signal("gated", syscall.SIGTERM)
	i.Until("gated to be restarted", func() bool {
		pids := i.Processes("gated")
		return len(pids) == 1 && pids[0] != pid
	})
	p.SendMessage("again")
	p.has("< again")
}

func everyPageFits(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	p.SendMessage("a line that is rather long, with a `code span`, https://example.org/a/very/long/address/that/does/not/end and more")
	p.Wait(`document.querySelector(".out")`)
	p.Resize(375, 760)
	for _, scheme := range []string{"light", "dark"} {
		p.SetColorScheme(scheme)
		for _, path := range []string{"/", "/chat/", "/chat/main", "/chat/unknown"} {
			p.Visit(i.url + path)
			p.CheckFits()
			p.CheckContrast()
		}
	}
	p.visitChat(i, "main", "")
	if !browser.Eval[bool](p.Tab, `(r => r.bottom <= innerHeight && r.top >= 0)(document.getElementById("composer").getBoundingClientRect())`) {
		t.Error("the message box is not visible")
	}
}

// worker is an agent with fixed answers, in markdown.
const worker = `#!/bin/sh
while read -r line; do
  case "$line" in
    *flaky*) text='It holds its lock while it waits for the reader:\n\n` + "```go" + `\ntx, err := db.Begin(ctx)\nif err != nil {\n\treturn err\n}\ndefer lock.Release() // too late: Wait below needs it\n` + "```" + `\n\nReleasing it before the wait fixes both tests:\n\n| test | before | after |\n|---|--:|--:|\n| TestWriteOrder | 9.8 s | 0.2 s |\n| TestReopen | 1.1 s | 0.1 s |' ;;
    *staging*) text='Staging runs **v1.4.2** since 14:05. All checks are green.' ;;
    *) text='On it. I run the whole suite first, then open a *pull request*.' ;;
  esac
  printf '%s\n{"status":"ok","result":"%s"}\n%s\n' ---ARIZUKO_OUTPUT_START--- "$text" ---ARIZUKO_OUTPUT_END---
done
`

func conversation(t *testing.T, b *browser.Browser) {
	agent := filepath.Join(t.TempDir(), "agent")
	executable.Write(t, agent, []byte(worker))
	i := start(t, "AGENT_COMMAND=exec "+agent, "AGENT_READABLE="+agent, "ASSISTANT_NAME=Ada")
	p := i.logIn(b)
	p.tab("#deploy")
	p.SendMessage("How is staging?")
	p.Wait(`document.querySelector(".panel:not([hidden]) .out strong")`)
	p.tab("")
	p.SendMessage("Why is the write test flaky?")
	p.Wait(`document.querySelector(".panel:not([hidden]) .out table")`)
	p.SendMessage("Great, fix it please.")
	p.Wait(`document.querySelector(".panel:not([hidden]) .out em")`)
	p.Wait(`document.querySelector("[role=tab].working") === null`)
}
