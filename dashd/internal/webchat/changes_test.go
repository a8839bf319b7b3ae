package webchat

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// change stores an outbound row about a row of the group main, delivered.
func (r *fixture) change(t *testing.T, kind msg.Kind, about *msg.Message, content string) int64 {
	t.Helper()
	m := &msg.Message{
		ChatJID: "web:main", Direction: msg.Out, Kind: kind, Content: content, Source: msg.SourceTool, OutState: msg.OutSent,
		TargetID: about.PlatformID, Timestamp: 1, ReceivedAt: 1,
	}
	if about.Direction == msg.Out {
		m.DerivedFrom = about.ID
	}
	if err := r.st.Write(t.Context(), func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err }); err != nil {
		t.Fatal(err)
	}
	r.hub.Notify()
	return m.ID
}

func (r *fixture) row(t *testing.T, id int64) *msg.Message {
	t.Helper()
	m, err := r.st.Message(t.Context(), id)
	if err != nil || m == nil {
		t.Fatalf("row %d: %v, %v", id, m, err)
	}
	return m
}

func TestChanges_ShownInHistoryAndLive(t *testing.T) {
	r := newFixture(t)
	question := r.row(t, r.post(t, map[string]string{"text": "who?", "client_id": "1"}))
	answer := r.row(t, r.answered(t, "me", msg.OutSent))
	s := r.follow(t, "main", "", "")
	defer s.close()
	s.want("typing", `{"topics":[]}`)
	steps := []struct {
		kind    msg.Kind
		about   *msg.Message
		content string
		want    message
	}{
		{msg.KindEdit, answer, "not **me**", message{Edited: true, HTML: "<p>not <strong>me</strong></p>\n"}},
		{msg.KindReaction, answer, "👍", message{Edited: true, HTML: "<p>not <strong>me</strong></p>\n", Reactions: []string{"👍"}}},
		{msg.KindReaction, question, "👀", message{Reactions: []string{"👀"}}},
		{msg.KindReaction, question, "-👀", message{}},
		{msg.KindReaction, question, "🎉", message{Reactions: []string{"🎉"}}},
		{msg.KindDelete, answer, "", message{Edited: true, Deleted: true}},
	}
	for _, step := range steps {
		id := r.change(t, step.kind, step.about, step.content)
		e := s.next()
		var live message
		if err := json.Unmarshal([]byte(e.data), &live); err != nil || e.name != "change" || e.id != id || live.ID != step.about.ID {
			t.Fatalf("%s %q: event %s %d %s", step.kind, step.content, e.name, e.id, e.data)
		}
		all := get[struct{ Messages []message }](t, r, "/main/messages").Messages
		i := slices.IndexFunc(all, func(m message) bool { return m.ID == step.about.ID })
		for where, got := range map[string]message{"live": live, "history": all[i]} {
			if len(all) != 2 || got.Edited != step.want.Edited || got.Deleted != step.want.Deleted || got.HTML != step.want.HTML || !slices.Equal(got.Reactions, step.want.Reactions) {
				t.Errorf("%s %q, %s: %+v", step.kind, step.content, where, got)
			}
		}
	}
}

// A page that reconnects gets the changes that it has missed.
func TestChanges_AfterReconnect_AreSentAgain(t *testing.T) {
	r := newFixture(t)
	answer := r.row(t, r.answered(t, "me", msg.OutSent))
	id := r.change(t, msg.KindEdit, answer, "you")
	r.change(t, msg.KindEdit, &msg.Message{ID: 0, Direction: msg.In, PlatformID: "gone"}, "of a message that is not stored")
	last := r.answered(t, "later", msg.OutSent)
	s := r.follow(t, "main", "?after=1", "")
	defer s.close()
	if e := s.next(); e.name != "change" || e.id != id {
		t.Errorf("%+v", e)
	}
	if m := s.message(); m.ID != last {
		t.Errorf("%+v", m)
	}
}

func TestFile_OfAMessage(t *testing.T) {
	r := newFixture(t)
	put := func(m *msg.Message) int64 {
		m.Timestamp, m.ReceivedAt, m.Direction, m.Kind, m.OutState = 1, 1, msg.Out, msg.KindFile, msg.OutSent
		if err := r.st.Write(t.Context(), func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err }); err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	if err := os.MkdirAll(filepath.Join(r.chat.Data, "media"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"media/a.html": "<script>alert(1)</script>", "media/b.png": "png", "arizuko.db": "all"} {
		if err := os.WriteFile(filepath.Join(r.chat.Data, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../arizuko.db", filepath.Join(r.chat.Data, "media/link")); err != nil {
		t.Fatal(err)
	}
	ours := put(&msg.Message{ChatJID: "web:main", Content: "look", Attachments: []msg.Attachment{
		{Path: "media/a.html", Name: "a \"b\".html", MIME: "text/html", Size: 25}, {Path: "media/b.png", Name: "b.png", MIME: "image/png", Size: 3},
		{Name: "c", Error: "too large"}, {Path: "media/gone", Name: "d"}, {Path: "arizuko.db", Name: "e"}, {Path: "media/../../secret", Name: "f"},
	}})
	put(&msg.Message{ChatJID: "web:other", Attachments: []msg.Attachment{{Path: "media/b.png", Name: "b.png"}}})

	files := get[struct{ Messages []message }](t, r, "/main/messages").Messages[0].Files
	if len(files) != 6 || files[0].URL != "/chat/main/file?message=1&n=1" || files[0].Image || !files[1].Image || files[2].URL != "" || files[2].Error != "too large" {
		t.Errorf("%+v", files)
	}
	for query, want := range map[string]struct {
		status    int
		kind, how string
	}{
		"message=1&n=1": {200, "application/octet-stream", `attachment; filename="a \"b\".html"`}, "message=1&n=2": {200, "image/png", "inline; filename=b.png"},
		"message=1&n=3": {status: 404}, "message=1&n=4": {status: 404}, "message=1&n=5": {status: 404}, "message=1&n=6": {status: 404}, "message=1&n=7": {status: 404},
		"message=1&n=0": {status: 404}, "message=2&n=1": {status: 404}, "message=9": {status: 404}, "message=x": {status: 400}, "": {status: 404},
	} {
		res, err := http.Get(r.base + "/main/file?" + query)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		h := res.Header
		if res.StatusCode != want.status || want.status == 200 && (h.Get("Content-Type") != want.kind || h.Get("Content-Disposition") != want.how) {
			t.Errorf("%q: %d %s %s", query, res.StatusCode, h.Get("Content-Type"), h.Get("Content-Disposition"))
		}
	}
	if status, body := r.ask(t, "GET", "/main/file?message=1&n=2", ""); status != 200 || body != "png" {
		t.Errorf("%d %q", status, body)
	}
	r.change(t, msg.KindDelete, r.row(t, ours), "")
	if status, _ := r.ask(t, "GET", "/main/file?message=1&n=2", ""); status != 404 {
		t.Errorf("of a deleted message: %d", status)
	}
}
