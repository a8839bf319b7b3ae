package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	fake "arizuko/pkg/testkit/fakes/discord"
)

// The URL of a file is valid for a day. One that is wanted later has a fresh one in its message, as long as that is there.
func TestInbound_FilesWantedAfterDays_AreDownloaded(t *testing.T) {
	var ago atomic.Int64
	r := newHarness(t, fake.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ago.Load())) }})
	r.connect()
	dm, thread := r.discord.DM(r.alice), r.general.Thread(r.alice, "soup")
	file := func(text string) fake.File { return fake.File{Name: "notes.txt", Data: []byte(text)} }
	sent := r.general.Attach(r.alice, "sent", file("eggs"))
	r.general.Forward(r.alice, sent)
	thread.Attach(r.alice, "in a thread", file("ham"))
	dm.Attach(r.alice, "in private", file("salt"))
	gone := r.general.Attach(r.alice, "deleted since", file("oil"))
	r.Until("the rows", func() bool { return len(r.stored()) == 5 })
	ago.Store(int64(72 * time.Hour))
	r.general.Delete(gone.ID)
	r.Exec(`UPDATE messages SET files_wanted = 1 WHERE pending_files > 0`)
	r.Until("the files", func() bool { return r.Text(`SELECT count(*) FROM messages WHERE pending_files > 0`) == "0" })
	for content, want := range map[string]string{"sent": "eggs", "forwarded:\nsent": "eggs", "in a thread": "ham", "in private": "salt"} {
		path := r.Text(`SELECT attachments ->> '$[0].path' FROM messages WHERE content = ?`, content)
		if data, err := os.ReadFile(filepath.Join(r.Data, path)); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v: %s", content, data, err, r.Text(`SELECT attachments FROM messages WHERE content = ?`, content))
		}
	}
	const wanted = "its message cannot be read"
	if got := r.Text(`SELECT attachments ->> '$[0].error' FROM messages WHERE content = 'deleted since'`); !strings.Contains(got, wanted) {
		t.Errorf("the deleted one: %q, want %q in it", got, wanted)
	}
}
