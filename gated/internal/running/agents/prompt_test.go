package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// events are the system messages of a turn's prompt, in order.
func (g given) events() (all []string) {
	for _, s := range g.prompt.System {
		all = append(all, s.Event)
	}
	return all
}

// last is the last input of the agents of main.
func (r *harness) last() given {
	r.t.Helper()
	all := r.inputs("main")
	return all[len(all)-1]
}

func TestSystem_NewSession_IsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.answered(r.ask("!session s1; say hi"))
	first := r.last()
	diff(t, "first prompt", first.events(), []string{"new_session"})
	if body := first.prompt.System[0].Body; body != "This is the first session of this topic." {
		t.Errorf("body %q", body)
	}
	r.answered(r.ask("piped"))
	diff(t, "piped prompt", r.last().events(), []string(nil))
	r.answered(r.ask("resumed", chat("telegram:2")))
	diff(t, "prompt of a resumed session", r.last().events(), []string(nil))
	r.answered(r.ask("other", topic("#x")))
	diff(t, "prompt of another topic", r.last().events(), []string{"new_session"})
	if n := r.systemMessages(first.start().TurnID); n != 0 {
		t.Errorf("%d lines are left of an answered turn", n)
	}
}

func (r *harness) systemMessages(turnID string) int {
	r.t.Helper()
	var id int64
	_, _ = fmt.Sscan(turnID, &id)
	return len(must[[]rows.SystemMessage](r)(rows.TurnSystemMessages(r.t.Context(), r.st.Reader, id)))
}

func TestSystem_NewSession_ListsPastOnes(t *testing.T) {
	t.Parallel()
	r := newHarness(t, attempts(1))
	r.answered(r.ask("!session s1; say hi"), r.ask("again"))
	r.reset("main", "")
	r.noRun()
	r.await(r.ask("!exit 1"), msg.TurnFailed)
	r.answered(r.ask("hello"))
	var lines []string
	for _, s := range r.last().prompt.System {
		if s.Event == "new_session" {
			lines = strings.Split(s.Body, "\n")
		}
	}
	want := []string{
		"This session is new: you do not remember the earlier ones of this topic. The last one was lost because the agent failed; the chat knows.",
		"Before you ask users again, look into the files of your folder and, if you have tools for it, into the history of the chat.",
		"The earlier ones, newest first:",
		"- from TIME to TIME, messages answered: 0, end: the agent failed",
		"- from TIME to TIME, messages answered: 2, end: regular",
	}
	for i := range lines { // with their offset, as the times of messages
		lines[i] = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)`).ReplaceAllString(lines[i], "TIME")
	}
	diff(t, "the notice", lines, want)
}

func TestSystem_Retry_RepeatsMessages(t *testing.T) {
	t.Parallel()
	r := newHarness(t, attempts(3))
	r.write(func(tx *store.Tx) error {
		return tx.PutSystemMessage("main", "routd", "note", "one & only", r.cfg.Now().UnixMilli())
	})
	asked := r.ask("!once exit 1; error again; say never")
	r.await(asked, msg.TurnFailed)
	var attempts int
	for _, g := range r.inputs("main") {
		attempts++
		diff(t, fmt.Sprintf("attempt %d", attempts), g.events(), []string{"note", "new_session"})
	}
	if attempts != 3 {
		t.Errorf("%d attempts", attempts)
	}
	r.answered(r.ask("hello"))
	if !slices.Contains(r.last().events(), "note") {
		t.Errorf("what no user has read is lost: %q", r.last().events())
	}
	r.answered(r.ask("more"))
	diff(t, "after that", r.last().events(), []string(nil))
}

func TestSystem_LiveRun_ReceivesMessage(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.answered(r.ask("hi"))
	r.write(func(tx *store.Tx) error {
		return tx.PutSystemMessage("main", "routd", "note", "news", r.cfg.Now().UnixMilli())
	})
	r.answered(r.ask("more"))
	diff(t, "prompt", r.last().events(), []string{"note"})
}

func TestSystem_NewDay_IsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.answered(r.ask("!session s1; say hi"))
	day := 24 * time.Hour
	r.ahead.Add(day.Milliseconds())
	tomorrow := r.cfg.Now().UTC().Format("Today is Monday, 2 January 2006.")
	r.answered(r.ask("piped"))
	diff(t, "piped", r.last().events(), []string{"new_day"})
	if body := r.last().prompt.System[0].Body; body != tomorrow {
		t.Errorf("body %q, want %q", body, tomorrow)
	}
	r.answered(r.ask("same day"))
	diff(t, "same day", r.last().events(), []string(nil))
	r.answered(r.ask("same day, another run", chat("telegram:2")))
	diff(t, "another run", r.last().events(), []string(nil))
	r.ahead.Add(day.Milliseconds())
	r.answered(r.ask("next day, another run"))
	diff(t, "next day", r.last().events(), []string{"new_day"})
}

func TestObservedRows(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	observed := func() []string { return texts(r.last().prompt.Observed.Rows) }
	r.observe("telegram:-2", "one")
	r.observe("telegram:-3", "two")
	r.observe("telegram:1", "of the chat itself")
	r.answered(r.ask("!session s1; say hi"))
	diff(t, "first", observed(), []string{"one", "two"})
	r.answered(r.ask("piped"))
	diff(t, "nothing twice", observed(), []string(nil))
	r.observe("telegram:-2", "three")
	r.answered(r.ask("🚫 alone please"))
	diff(t, "in isolation", observed(), []string(nil))
	r.answered(r.ask("and now"))
	diff(t, "after that", observed(), []string{"three"})
	r.observe("telegram:-2", "four")
	r.answered(r.ask("another run, same session", chat("telegram:4")))
	// The folder's own rows of the other chat count: the session is one.
	got := observed()
	if !slices.Contains(got, "four") || slices.Contains(got, "three") {
		t.Errorf("another run was shown %q", got)
	}
}

func TestObserved_RowsAreBounded(t *testing.T) {
	t.Parallel()
	const maxObserved = 100
	r := newHarness(t)
	for i := range maxObserved + 5 {
		r.observe("telegram:-2", fmt.Sprint(i))
	}
	r.answered(r.ask("hi"))
	observed := r.last().prompt.Observed
	if n := len(observed.Rows); n != maxObserved || observed.LeftOut != 5 || observed.Rows[0].Text != "5" {
		t.Errorf("%d rows from %q on, %d left out", n, observed.Rows[0].Text, observed.LeftOut)
	}
}

func TestObserved_GroupConfiguration(t *testing.T) {
	tests := []struct {
		config string
		want   []string
	}{
		{`{}`, []string{"in public"}},
		{`{"observe":"all"}`, []string{"in private", "in a chat not described yet", "in public"}},
		{`{"observe":"shared"}`, []string{"in public"}},
		{`{"observe":"none"}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.config, func(t *testing.T) {
			r := newHarness(t)
			r.write(func(tx *store.Tx) error {
				if err := tx.PutChat("discord:5", msg.ChatDM, "Bob", 1); err != nil {
					return err
				}
				_, err := tx.PutGroup(&msg.Group{Folder: "main", Config: []byte(tt.config)})
				return err
			})
			r.observe("discord:5", "in private")
			r.observe("telegram:2", "in a chat not described yet")
			r.observe("telegram:-3", "in public")
			r.answered(r.ask("hi"))
			diff(t, "observed", texts(r.last().prompt.Observed.Rows), tt.want)
		})
	}
}

func TestObserved_Retry_ShowsThemAgain(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.observe("telegram:-2", "one")
	r.answered(r.ask("!once exit 1; say hi"))
	diff(t, "second attempt", texts(r.last().prompt.Observed.Rows), []string{"one"})
}

func TestReplyChain(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	chain := func() []string { return texts(r.last().prompt.ReplyChain) }
	r.answered(r.askRows([]*msg.Message{{PlatformID: "a", Content: "root"}}))
	r.stop() // a run is not shown a message twice: begin another
	r.start()
	r.answered(r.askRows([]*msg.Message{{PlatformID: "b", Content: "middle", ReplyToID: "a"}}))
	diff(t, "parent", chain(), []string{"root"})
	r.stop()
	r.start()
	r.answered(r.askRows([]*msg.Message{
		{PlatformID: "c", Content: "leaf", ReplyToID: "b"},
		{PlatformID: "d", Content: "sibling", ReplyToID: "a"},
		{PlatformID: "e", Content: "orphan", ReplyToID: "gone"},
		{PlatformID: "f", Content: "of the batch", ReplyToID: "c"},
	}))
	diff(t, "chain", chain(), []string{"root", "middle"})
	rows := r.last().prompt.Messages
	if rows[0].ReplyTo != r.last().prompt.ReplyChain[1].ID || rows[2].ReplyTo != 0 || rows[3].ReplyTo != rows[0].ID {
		t.Errorf("replies to %d, %d, %d", rows[0].ReplyTo, rows[2].ReplyTo, rows[3].ReplyTo)
	}
	r.answered(r.askRows([]*msg.Message{{Content: "piped", ReplyToID: "b"}}))
	diff(t, "nothing twice", chain(), []string(nil))
	if got := r.last().prompt.Messages[0].ReplyTo; got == 0 {
		t.Error("the piped row does not say what it answers")
	}
}

func TestReplyChain_Fork_BeginsWithCorrectedMessage(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.answered(r.askRows([]*msg.Message{{PlatformID: "a", Content: "when?"}}))
	r.answered(r.askRows([]*msg.Message{{PlatformID: "b", Content: "on Monday", ReplyToID: "a"}}))
	wrong, err := r.st.MessageByPlatformID(t.Context(), "telegram:1", "b")
	if err != nil {
		t.Fatal(err)
	}
	r.write(func(tx *store.Tx) error {
		return rows.PutFork(tx, &msg.Fork{ChatJID: "telegram:1", Topic: "#fix", Folder: "main", MessageID: wrong.ID, CreatedAt: 1})
	})
	r.answered(r.askRows([]*msg.Message{{Content: "it was Tuesday"}}, topic("#fix")))
	diff(t, "first prompt of the fork", texts(r.last().prompt.ReplyChain), []string{"when?", "on Monday"})
	r.answered(r.askRows([]*msg.Message{{Content: "really"}}, topic("#fix")))
	diff(t, "its second prompt", texts(r.last().prompt.ReplyChain), []string(nil))
	r.answered(r.askRows([]*msg.Message{{Content: "another topic"}}, topic("#other")))
	diff(t, "another topic", texts(r.last().prompt.ReplyChain), []string(nil))
}

func TestReplyChain_IsBounded(t *testing.T) {
	t.Parallel()
	const maxChain = 20
	r := newHarness(t)
	rows := []*msg.Message{{PlatformID: "x", ReplyToID: "y", Content: "x"}, {PlatformID: "y", ReplyToID: "x", Content: "y"}}
	r.store(newTurn(chat("telegram:1"), group("elsewhere")), rows...)
	parent := "y"
	for i := range maxChain + 5 {
		id := fmt.Sprintf("deep%d", i)
		r.store(newTurn(group("elsewhere")), &msg.Message{PlatformID: id, ReplyToID: parent, Content: id})
		parent = id
	}
	r.answered(r.askRows([]*msg.Message{{Content: "loop", ReplyToID: "x"}}))
	diff(t, "a loop", texts(r.last().prompt.ReplyChain), []string{"x", "y"})
	r.answered(r.askRows([]*msg.Message{{Content: "deep", ReplyToID: parent}}, topic("#deep")))
	if n := len(r.last().prompt.ReplyChain); n != maxChain {
		t.Errorf("%d rows of a long chain", n)
	}
}

func TestAttachments(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	media := filepath.Join(r.cfg.Data, "media", "202611")
	if err := os.MkdirAll(media, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(media, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(media, "1f-cat.jpg"), "meow")
	write(filepath.Join(r.cfg.Data, "secret"), "hunter2")
	link("../../secret", "relative.txt")
	link(filepath.Join(r.cfg.Data, "secret"), "absolute.txt")

	const gone = "the file is not there any more"
	tests := []struct {
		in    msg.Attachment
		name  string // in the inbox, after row and number
		error string
	}{
		{msg.Attachment{Path: "media/202611/1f-cat.jpg", Name: "cat.jpg"}, "cat.jpg", ""},
		{msg.Attachment{Path: "media/202611/1f-cat.jpg"}, "1f-cat.jpg", ""},
		{msg.Attachment{Path: "media/202611/1f-cat.jpg", Name: "../../../etc/passwd"}, "passwd", ""},
		{msg.Attachment{Path: "media/202611/1f-cat.jpg", Name: "a b\n<ü>.jpg"}, "a_b____.jpg", ""},
		{msg.Attachment{Path: "media/202611/1f-cat.jpg", Name: ".."}, "..", ""},
		{msg.Attachment{Path: "media/202611/1f-cat.jpg", Name: strings.Repeat("x", 300) + ".jpg"}, strings.Repeat("x", 76) + ".jpg", ""},
		{msg.Attachment{Path: "media/202611/lost.jpg", Name: "lost.jpg"}, "", gone},
		{msg.Attachment{Path: "media/202611", Name: "folder"}, "", gone},
		{msg.Attachment{Path: "secret", Name: "secret"}, "", gone},
		{msg.Attachment{Path: "media/../secret", Name: "secret"}, "", gone},
		{msg.Attachment{Path: "/media/../../secret", Name: "secret"}, "", gone},
		{msg.Attachment{Path: filepath.Join(r.cfg.Data, "secret"), Name: "secret"}, "", gone},
		{msg.Attachment{Path: "media/202611/relative.txt", Name: "relative.txt"}, "", gone},
		{msg.Attachment{Path: "media/202611/absolute.txt", Name: "absolute.txt"}, "", gone},
		{msg.Attachment{Path: "media/202611/1f-cat.jpg", Name: "cat.jpg", Error: "too large"}, "", "too large"},
	}
	row := &msg.Message{Content: "look"}
	for _, tt := range tests {
		row.Attachments = append(row.Attachments, tt.in)
	}
	r.answered(r.askRows([]*msg.Message{row}))
	got := r.last().prompt.Messages[0].Attachments
	if len(got) != len(tests) {
		t.Fatalf("%d attachments", len(got))
	}
	for i, tt := range tests {
		want := ""
		if tt.name != "" {
			want = fmt.Sprintf("inbox/%d-%d-%s", row.ID, i+1, tt.name)
		}
		if got[i].Path != want || got[i].Error != tt.error {
			t.Errorf("%q named %q: %+v, want path %q, error %q", tt.in.Path, tt.in.Name, got[i], want, tt.error)
		}
		if want != "" {
			if text := readFile(t, r.cfg.Groups, "main", want); text != "meow" {
				t.Errorf("%s holds %q", want, text)
			}
		}
	}
}
