package tour_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/testkit/browser"
	"arizuko/pkg/testkit/need"
)

// The pictures of docs/run.md: the same run of the demo agent on four surfaces, while it goes on and after it.

const (
	runPage = "../../../docs/run.md"
	// order is a user's message: the agent shows a plan and tools, then its answer piece by piece, in so many seconds.
	order = "work stream slow 24 How many bikes wait for brakes?"
)

// surface is a place in which the run is shown.
type surface struct {
	name string // of its picture
	// open opens it and writes the order.
	open func(*browser.Tab)
	// running and done are true when the page shows a part of the answer, and all of it.
	running, done string
}

// fakeEnv matches a variable that a fake prints, and its page.
var (
	fakeEnv  = regexp.MustCompile(`^export (.+)$`)
	fakePage = regexp.MustCompile(`^# write to the bot at (.+)/$`)
)

// startFake serves a fake platform until the test ends, and returns its page, and the environment of its adapter.
func startFake(t *testing.T, bin, platform string) (page string, env []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "fakeplatform"), platform, "-addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test has killed it
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := fakeEnv.FindStringSubmatch(lines.Text()); m != nil {
			env = append(env, m[1])
		}
		if m := fakePage.FindStringSubmatch(lines.Text()); m != nil {
			return m[1], env
		}
	}
	t.Fatalf("the fake of %s has no page", platform)
	return "", nil
}

// onPlatform is a surface on the page of a fake platform: its first chat, or the thread of a chat of that name.
func onPlatform(name, page, threadOf string) surface {
	const answer = `[...document.querySelectorAll("article.bot .text")].at(-1)?.innerText`
	return surface{
		name: name, running: answer + `?.includes("work stream")`, done: answer + `?.includes("How many bikes wait for brakes?")`,
		open: func(p *browser.Tab) {
			p.Visit(page + "/")
			if threadOf != "" {
				p.Follow(func() {
					browser.Eval[bool](p, `([...document.querySelectorAll("nav[aria-label=Chats] a")].find(a => a.innerText === "`+threadOf+`").click(), true)`)
				})
				p.Follow(func() { p.Click(`nav[aria-label="Threads"] a:last-child`) })
			}
			p.Follow(func() {
				browser.Eval[bool](p, `((field) => { field.value = "`+order+`"; field.form.requestSubmit(); return true; })(document.querySelector("textarea"))`)
			})
		},
	}
}

func TestRun_FourSurfaces_ShowTheWorkAndTheAnswer(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	bin, err := programs.Bin()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"DASH_PASSWORD=correct horse battery", "ASSISTANT_NAME=Ada"}
	pages := map[string]string{}
	for _, platform := range []string{"telegram", "discord", "slack"} {
		page, own := startFake(t, bin, platform)
		pages[platform], env = page, append(env, own...)
	}
	f := harness.NewLauncherFixture(t, bin, env...)
	f.Launch().WaitReady()
	for platform := range pages {
		f.Run("routd", "groups", "add", platform)
		f.Run("routd", "routes", "add", "--match", "platform="+platform, "--target", platform)
	}
	f.Exec(`UPDATE registered_groups SET config = '{"progress":"live"}'`)
	f.Until("the platforms to be connected", func() bool {
		return len(f.Query(`SELECT name FROM daemons WHERE connection = 'connected' AND name IN ('teled', 'discd', 'slakd')`)) == 3
	})
	web := surface{
		name: "web", running: `document.querySelector(".progress .body")?.textContent.includes("work stream")`,
		done: `document.querySelector(".log .message.out") && !document.querySelector(".progress")`,
		open: func(p *browser.Tab) {
			p.Visit(f.Instance.URL("dashd") + "/login?next=/chat/main")
			p.Follow(func() {
				browser.Eval[bool](p, `((field) => { field.value = "correct horse battery"; field.form.requestSubmit(); return true; })(document.querySelector("[name=password]"))`)
			})
			p.WaitConnected()
			p.SendMessage(order)
		},
	}
	all := []surface{web, onPlatform("telegram", pages["telegram"], ""), onPlatform("discord", pages["discord"], ""), onPlatform("slack", pages["slack"], "Alice")}
	folder := t.TempDir()
	if *pictures != "" {
		folder = filepath.Join(filepath.Dir(*pictures), "run")
	}
	b := browser.Start(t)
	tabs := make([]*browser.Tab, len(all))
	for i, s := range all {
		tabs[i] = b.Open(t)
		tabs[i].Resize(400, 620)
		s.open(tabs[i])
	}
	var made []string
	for i, s := range all {
		tabs[i].Wait(s.running)
		browser.Eval[bool](tabs[i], `(document.activeElement.blur(), true)`)
		name := s.name + ".png"
		made = append(made, name)
		path := filepath.Join(folder, name)
		tabs[i].Screenshot(path)
		checkPicture(t, path, 400, 620)
	}
	for i, s := range all {
		tabs[i].Wait(s.done)
	}
	f.WaitIdle()
	if answers := f.Query(`SELECT count(*) FROM messages WHERE direction = 'out' AND source = 'agent' GROUP BY chat_jid`); !slices.Equal(answers, []string{"1", "1", "1", "1"}) {
		t.Errorf("answers in each chat: %v", answers)
	}
	f.Until("no preview is left", func() bool {
		return len(f.Query(`SELECT id FROM previews WHERE state = 'open'`)) == 0
	})
	text, err := os.ReadFile(runPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range made {
		if !strings.Contains(string(text), "run/"+name) {
			t.Errorf("docs/run.md does not show %s", name)
		}
	}
}
