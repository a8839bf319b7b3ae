package webchat

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// found searches the chat of main once all rows are in the index, and returns the messages.
func found(t *testing.T, r *fixture, text string) (texts []string) {
	t.Helper()
	for more := true; more; {
		r.write(t, func(tx *store.Tx) (err error) { _, more, err = tx.IndexMessages(); return err })
	}
	for _, m := range get[struct{ Messages []message }](t, r, "/main/search?text="+url.QueryEscape(text)).Messages {
		texts = append(texts, m.SenderName+": "+*m.Content)
	}
	return texts
}

func TestSearch_FindsWhatTheChatShows(t *testing.T) {
	r := newFixture(t)
	first := r.said(t, "", "Deploy the <b>red</b> build")
	r.put(t, row{folder: "main", direction: "in", content: "a copy, red", derived: first})
	r.put(t, row{folder: "other", direction: "in", content: "red elsewhere"})
	r.answered(t, "not sent, red", msg.OutFailed)
	r.answered(t, "the RED\n\nend", msg.OutSent)
	r.sql(t, `UPDATE messages SET sender_name = '' WHERE direction = 'out'`)
	for text, want := range map[string][]string{
		"red":       {"Robot: the RED\n\nend", "main: Deploy the <b>red</b> build"},
		`"red b"`:   {"main: Deploy the <b>red</b> build"},
		"build re*": {"main: Deploy the <b>red</b> build"},
		"green":     nil,
	} {
		if diff := cmp.Diff(want, found(t, r, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "!?"} {
		if status, body := r.ask(t, "GET", "/main/search?text="+text, ""); status != 400 || !strings.Contains(body, "a word to search for") {
			t.Errorf("%q: %d %s", text, status, body)
		}
	}
}

func TestHistory_MessageForAnotherTopic_LinksThere(t *testing.T) {
	r := newFixture(t)
	asked := r.said(t, "", "#deploy ship it")
	moved := r.put(t, row{folder: "main", direction: "in", topic: "#deploy", content: "ship it", derived: asked})
	r.said(t, "", "stays")
	rows := get[struct{ Messages []message }](t, r, "/main/messages").Messages
	if len(rows) != 3 || rows[0].MovedTo != "#deploy" || rows[1].ID != moved || rows[1].MovedFrom != asked || rows[2].MovedTo != "" || rows[2].MovedFrom != 0 {
		t.Errorf("%+v", rows)
	}
}
