// Package tour makes the pictures of docs/tour.md: pages of a real instance with some days of a small company, in Chromium. Each
// run makes them again and checks that the page says what the tour says of it.
package tour_test

import (
	"bytes"
	"flag"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/testkit/browser"
	"arizuko/pkg/testkit/executable"
	"arizuko/pkg/testkit/need"
)

var pictures = flag.String("pictures", "", "write the pictures of docs/tour.md into this folder")

var programs = harness.NewPrograms("", "arizuko/routd", "arizuko/gated", "arizuko/onbod", "arizuko/dashd",
	"arizuko/teled", "arizuko/discd", "arizuko/slakd", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo", "arizuko/deploy/launcher",
	"arizuko/pkg/testkit/fakes/cmd/fakeplatform")

func TestMain(m *testing.M) { os.Exit(programs.RunTests(m, "2")) }

// maxPicture is how large a picture may be, in bytes: the repository keeps each version.
const maxPicture = 60 << 10

// page is a page of the tour. Its pictures are NAME.png and NAME-phone.png.
type page struct {
	name  string
	path  string // from the overview's address; %d is id
	id    string // a query of that number
	ready string // the condition to wait for
	do    func(*browser.Tab)
	shown string // the element at the top of the picture, "" for the page's beginning
	dark  bool
}

func pagesOfTour() []page {
	return []page{
		{name: "chat", path: "/chat/main", ready: `document.querySelector(".out em, .out table")`},
		{name: "overview", path: "/", ready: `document.querySelector(".chart")`},
		{name: "messages", path: "/messages"},
		{name: "why", path: "/messages/%d", id: `SELECT max(id) FROM messages WHERE verb = 'mention' AND disposition = 'routed'`},
		{name: "lost", path: "/lost", do: func(p *browser.Tab) {
			p.Follow(func() { p.Click(".counts a") })
		}},
		{name: "turn", path: "/turns/%d", id: `SELECT id FROM turns WHERE state = 'failed'`},
		{name: "figures", path: "/figures?by=day", ready: `document.querySelectorAll(".chart").length > 3`},
		{name: "search", path: "/search?q=brakes"},
		{name: "sender", path: "/senders/telegram:61907"},
		{name: "approvals", path: "/approvals", ready: `document.querySelector(".request")`},
		{name: "routes", path: "/routes/edit", do: compareRoutes, shown: "#replay", dark: true},
		{name: "group", path: "/groups/bikes/workshop"},
		{name: "access", path: "/access?chat=" + workshop + "&sender=telegram:61455", shown: "#answer"},
		{name: "reminders", path: "/reminders"},
		{name: "polls", path: "/polls"},
	}
}

// compareRoutes leads mentions in the workshop elsewhere, and compares.
func compareRoutes(p *browser.Tab) {
	browser.Eval[bool](p, `(document.querySelector("input[name=target]").value = "bikes/orders", true)`)
	p.Follow(func() { p.Click(`button[value=replay]`) })
}

// TestTour_Pictures_ShowWhatTheTourSays makes each picture at both widths.
func TestTour_Pictures_ShowWhatTheTourSays(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	words := boldWords(t)
	c := startCompany(t)
	folder := *pictures
	if folder == "" {
		folder = t.TempDir()
	}
	p := browser.Start(t).Open(t)
	c.converse(p)
	c.fill()
	var made []string
	for _, page := range pagesOfTour() {
		for _, size := range []struct {
			suffix        string
			width, height int64
		}{{"", 1280, 800}, {"-phone", 375, 760}} {
			name := page.name + size.suffix + ".png"
			made = append(made, name)
			t.Run(name, func(t *testing.T) {
				p := p.WithTest(t)
				p.Resize(size.width, size.height)
				p.SetColorScheme(map[bool]string{true: "dark", false: "light"}[page.dark && size.suffix != ""])
				c.show(p, page)
				text := strings.Join(strings.Fields(p.Text("body")), " ")
				for _, word := range words[page.name] {
					if !strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
						t.Errorf("docs/tour.md says %q, the page does not:\n%s", word, text)
					}
				}
				path := filepath.Join(folder, name)
				p.Screenshot(path)
				checkPicture(t, path, size.width, size.height)
			})
		}
	}
	want := used(t)
	slices.Sort(made)
	if !slices.Equal(made, want) {
		t.Errorf("docs/tour.md shows %q, made are %q", want, made)
	}
}

func startCompany(t *testing.T) *company {
	t.Helper()
	bin, err := programs.Bin()
	if err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(t.TempDir(), "agent")
	executable.Write(t, agent, []byte(worker))
	c := &company{LauncherFixture: harness.NewLauncherFixture(t, bin, "AGENT_COMMAND=exec "+agent, "AGENT_READABLE="+agent,
		"ASSISTANT_NAME=Ada", "OPERATORS="+maja, "DASH_PASSWORD=correct horse battery"), now: time.Now().UnixMilli()}
	l := c.Launch()
	l.WaitReady()
	return c
}

// converse writes to the agent in the web chat.
func (c *company) converse(p *browser.Tab) {
	c.T.Helper()
	p.Visit(c.Instance.URL("dashd") + "/login?next=/chat/main")
	p.Wait(`document.activeElement.id === "password"`)
	p.TypeKeys("correct horse battery")
	p.Follow(func() { p.PressEnter() })
	p.WaitConnected()
	p.SendMessage("#rentals Are both rental bikes ready for Saturday?")
	p.Wait(`document.querySelectorAll("[role=tab]").length === 2 && !document.querySelector("[role=tab].working")`)
	p.SendMessage("Which bikes wait for brakes, and where would you begin?")
	p.Wait(`document.querySelector(".panel:not([hidden]) .out table")`)
	p.SendMessage("Good, tell the workshop.")
	p.Wait(`document.querySelectorAll(".panel:not([hidden]) .out").length === 2`)
	c.WaitIdle()
}

// show opens a page of the tour.
func (c *company) show(p *browser.Tab, page page) {
	path := page.path
	if page.id != "" {
		path = strings.Replace(path, "%d", c.query(page.id), 1)
	}
	c.heartbeat()
	p.Visit(c.Instance.URL("dashd") + path)
	if page.ready != "" {
		p.Wait(page.ready)
	}
	if page.do != nil {
		page.do(p)
	}
	scroll := `(window.scrollTo(0, 0), document.activeElement.blur(), true)`
	if page.shown != "" {
		scroll = fmt.Sprintf(`(document.querySelector(%q).scrollIntoView(), true)`, page.shown)
	}
	browser.Eval[bool](p, scroll)
	p.WaitLayout()
}

// checkPicture makes a picture compact, and checks its size.
func checkPicture(t *testing.T, path string, width, height int64) {
	t.Helper()
	screenshot, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	small, err := compact(screenshot)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, small, 0o644); err != nil {
		t.Fatal(err)
	}
	size, err := png.DecodeConfig(bytes.NewReader(small))
	if err != nil || int64(size.Width) != width || int64(size.Height) != height || len(small) > maxPicture {
		t.Errorf("%d by %d, %d bytes, %v", size.Width, size.Height, len(small), err)
	}
}

const tourPage = "../../../docs/tour.md"

func tour(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(tourPage)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	picture = regexp.MustCompile(`tour/([a-z]+)(-phone)?\.png`)
	bold    = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// used lists the pictures that the tour shows.
func used(t *testing.T) (all []string) {
	t.Helper()
	for _, m := range picture.FindAllStringSubmatch(tour(t), -1) {
		all = append(all, m[1]+m[2]+".png")
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// boldWords is what the tour has in bold letters beside each picture: words on the page.
func boldWords(t *testing.T) map[string][]string {
	t.Helper()
	words := map[string][]string{}
	for _, section := range strings.Split(tour(t), "\n## ")[1:] {
		shown := picture.FindStringSubmatch(section)
		if shown == nil {
			continue
		}
		for _, m := range bold.FindAllStringSubmatch(section, -1) {
			words[shown[1]] = append(words[shown[1]], strings.Join(strings.Fields(m[1]), " "))
		}
		if len(words[shown[1]]) == 0 {
			t.Errorf("the tour says nothing of %s in bold letters", shown[1])
		}
	}
	return words
}
