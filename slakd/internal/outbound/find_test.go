package outbound

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
	fake "arizuko/pkg/testkit/fakes/slack"
	"arizuko/slakd/internal/slackapi"
)

// searchFixture is a channel in which a part is searched for.
type searchFixture struct {
	*Sender
	fake.Place
	server *fake.Server
	alice  fake.User
	row    *msg.Message
	part   adapter.Part
}

func newSearchFixture(t *testing.T, o fake.Options) *searchFixture {
	t.Helper()
	server := fake.New(o)
	base, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	api := slackapi.NewClient(base+"/api/", server.BotToken(), "", adapter.NewCallClient())
	t.Cleanup(api.Close)
	alice := server.User("Alice", "alice")
	f := &searchFixture{
		Sender: &Sender{Identity: first, Log: slog.New(slog.DiscardHandler), API: api, Store: storetest.Open(t)}, server: server, alice: alice,
		Place: server.Channel("team", alice),
	}
	f.row = &msg.Message{ID: 7, ChatJID: "slack:" + f.ChannelID, Content: "see https://example.org", ReceivedAt: time.Now().UnixMilli()}
	parts, err := f.Cut(f.row)
	if err != nil {
		t.Fatal(err)
	}
	f.part = parts[0]
	return f
}

// send sends the part, or the text of another row.
func (f *searchFixture) send(t *testing.T, row *msg.Message) (ts string) {
	t.Helper()
	parts, err := f.Cut(row)
	if err != nil {
		t.Fatal(err)
	}
	ts, err = adaptertest.Send(t.Context(), f.Sender, row, parts[0])
	if remark := new(adapter.Remark); err != nil && !errors.As(err, &remark) {
		t.Fatal(err)
	}
	return ts
}

func withoutMetadata() fake.Options {
	return fake.Options{Scopes: slices.DeleteFunc(fake.DefaultScopes(), func(s string) bool { return s == "metadata.message:read" })}
}

func TestFind_ScopeMissing_NamesTheScope(t *testing.T) {
	f := newSearchFixture(t, fake.Options{Scopes: slices.DeleteFunc(fake.DefaultScopes(), func(s string) bool { return s == "channels:history" })})
	if id, err := f.Find(t.Context(), f.row, f.part); err == nil || id != "" || !strings.Contains(err.Error(), "channels:history") {
		t.Errorf("found %q, %v", id, err)
	}
}

// Without metadata the text is the evidence, and where that differs too, nothing is certain.
func TestFind_NoMetadata_IsNoProofOfAbsence(t *testing.T) {
	f := newSearchFixture(t, withoutMetadata())
	if id, err := f.Find(t.Context(), f.row, f.part); id != "" || err != nil {
		t.Errorf("before anything is sent: %q, %v", id, err)
	}
	other := *f.row
	other.ID, other.Content = 8, "something else"
	f.send(t, &other)
	failure := &adapter.Failure{}
	if id, err := f.Find(t.Context(), f.row, f.part); id != "" || !errors.As(err, &failure) || failure.Class != msg.Permanent {
		t.Errorf("after another message: %q, %v", id, err)
	}
	ts := f.send(t, f.row)
	if id, err := f.Find(t.Context(), f.row, f.part); id != ts || err != nil {
		t.Errorf("after the message: %q, %v, want %q", id, err, ts)
	}
}

func TestFind_MetadataOfOthers_ProvesAbsence(t *testing.T) {
	f := newSearchFixture(t, fake.Options{})
	other := *f.row
	other.ID = 8 // of the same text
	f.send(t, &other)
	if id, err := f.Find(t.Context(), f.row, f.part); id != "" || err != nil {
		t.Errorf("found %q, %v", id, err)
	}
}

// A file that another row has sent is not the one that is searched for, though its name and size are the same.
func TestFind_FileOfAnotherRow_IsNotTaken(t *testing.T) {
	f := newSearchFixture(t, fake.Options{})
	f.Data = t.TempDir()
	if err := os.WriteFile(filepath.Join(f.Data, "cat.txt"), []byte("meow"), 0o600); err != nil {
		t.Fatal(err)
	}
	row := *f.row
	row.Kind, row.Content, row.Attachments = msg.KindFile, "", []msg.Attachment{{Name: "cat.txt", Path: "cat.txt"}}
	parts, err := f.Cut(&row)
	if err != nil {
		t.Fatal(err)
	}
	first := f.send(t, &row)
	if id, err := f.Find(t.Context(), &row, parts[0]); id != first || err != nil {
		t.Errorf("found %q, %v, want %q", id, err, first)
	}
	other := row
	other.ID, other.PlatformID, other.Direction, other.OutState = 0, first, msg.Out, msg.OutSent
	other.Source, other.Sender, other.Timestamp = msg.SourceAgent, "agent:main", other.ReceivedAt
	if _, _, err := storetest.Put(t.Context(), f.Store, &other); err != nil {
		t.Fatal(err)
	}
	if id, err := f.Find(t.Context(), &row, parts[0]); id != "" || err != nil {
		t.Errorf("found %q, %v, which is of another row", id, err)
	}
	second := f.send(t, &row)
	if id, err := f.Find(t.Context(), &row, parts[0]); id != second || err != nil {
		t.Errorf("found %q, %v, want %q", id, err, second)
	}
}

func TestFind_OddMessages_HideNothing(t *testing.T) {
	f := newSearchFixture(t, fake.Options{})
	ts := f.send(t, f.row)
	f.InjectHistory(`7`, `{"ts":7,"files":[{"initial_comment":"x","size":"big"}],"metadata":[]}`, `{"files":"none","user":{}}`)
	if id, err := f.Find(t.Context(), f.row, f.part); id != ts || err != nil {
		t.Errorf("found %q, %v, want %q", id, err, ts)
	}
}

// A search that a rate limit ends goes on at its page, of a channel or of a thread. An equal text of another row is not
// taken for the part.
func TestFind_RateLimited_GoesOn(t *testing.T) {
	for method, threaded := range map[string]bool{"conversations.history": false, "conversations.replies": true} {
		f := newSearchFixture(t, fake.Options{})
		place, row, other := f.Place, *f.row, *f.row
		if threaded {
			place = f.Thread(f.Say(f.alice, "root").TS)
			row.ThreadID, other.ThreadID = place.ThreadTS, place.ThreadTS
		}
		chatter := func(wanted bool) {
			for i := 0; wanted && i < 450; i++ {
				place.Say(f.alice, "chatter")
			}
		}
		chatter(threaded) // replies come with the oldest first
		other.ID = 8
		f.send(t, &other)
		ts := f.send(t, &row)
		chatter(!threaded)
		parts, err := f.Cut(&row)
		if err != nil {
			t.Fatal(err)
		}
		f.server.InjectFault(fake.Fault{Method: method, Delay: time.Nanosecond}, fake.Fault{Method: method, Delay: time.Nanosecond}, fake.Fault{Method: method, RetryAfter: 3600})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		failure := &adapter.Failure{}
		id, err := f.Find(ctx, &row, parts[0])
		if id != "" || !errors.As(err, &failure) || failure.Class != msg.Rate || failure.After != time.Hour {
			t.Errorf("%s, while limited: %q, %v", method, id, err)
		}
		before := len(f.server.Calls())
		if id, err := f.Find(ctx, &row, parts[0]); id != ts || err != nil {
			t.Errorf("%s, after that: %q, %v, want %q", method, id, err, ts)
		}
		if calls := len(f.server.Calls()) - before; calls > 2 { // auth.test and one page
			t.Errorf("%s: that took %d calls", method, calls)
		}
	}
}

func TestSend_ThreadGone_GoesToTheChannel(t *testing.T) {
	f := newSearchFixture(t, fake.Options{})
	row := *f.row
	row.ThreadID = "1764000000.000100"
	parts, err := f.Cut(&row)
	if err != nil {
		t.Fatal(err)
	}
	ts, err := adaptertest.Send(t.Context(), f.Sender, &row, parts[0])
	remark := new(adapter.Remark)
	if all := f.Messages(); ts == "" || !errors.As(err, &remark) || all[len(all)-1].ThreadTS != "" || all[len(all)-1].TS != ts {
		t.Errorf("sent %q, %v: %+v", ts, err, all)
	}
}

func TestSend_FileRefused_SaysSo(t *testing.T) {
	scopes := slices.DeleteFunc(fake.DefaultScopes(), func(s string) bool { return s == "files:write" })
	f := newSearchFixture(t, fake.Options{Scopes: scopes})
	f.Data = t.TempDir()
	if err := os.WriteFile(filepath.Join(f.Data, "cat.txt"), []byte("meow"), 0o600); err != nil {
		t.Fatal(err)
	}
	row := *f.row
	row.Kind, row.Content, row.Attachments = msg.KindFile, "look", []msg.Attachment{{Name: "<!here> & cat.txt", Path: "cat.txt"}}
	f.send(t, &row)
	if all := f.Messages(); all[len(all)-1].Text != "look\nSlack does not take the file `&lt;!here&gt; &amp; cat.txt` (missing_scope)." {
		t.Errorf("sent %+v", all[len(all)-1])
	}
}

// Each form in which a part may have been sent is found, with and without metadata.
func TestFind_EachForm_IsFound(t *testing.T) {
	const goneThread = "1764000000.000100"
	locked := func(f *searchFixture) string {
		place := f.Thread(f.Say(f.alice, "root").TS)
		place.LockThread()
		return place.ThreadTS
	}
	for what, tt := range map[string]struct {
		thread func(*searchFixture) string
		file   bool
		refuse string // Slack's code for the file
		marked bool
		bare   bool // the file has no text
	}{
		"text":                          {},
		"marked text":                   {marked: true},
		"thread gone":                   {thread: func(*searchFixture) string { return goneThread }},
		"thread gone, marked":           {thread: func(*searchFixture) string { return goneThread }, marked: true},
		"thread locked":                 {thread: locked},
		"file":                          {file: true},
		"marked file":                   {file: true, marked: true},
		"file refused":                  {file: true, refuse: "file_uploads_disabled"},
		"file refused, marked":          {file: true, refuse: "storage_limit_reached", marked: true},
		"refused, marked, no text":      {file: true, refuse: "file_uploads_disabled", marked: true, bare: true},
		"file, thread locked":           {file: true, thread: locked},
		"file refused, thread gone":     {file: true, refuse: "file_uploads_disabled", thread: func(*searchFixture) string { return goneThread }},
		"all of them, and it is a copy": {file: true, refuse: "malware_detected", thread: locked, marked: true},
	} {
		for scope, o := range map[string]fake.Options{"with metadata": {}, "without": withoutMetadata()} {
			t.Run(what+", "+scope, func(t *testing.T) {
				f := newSearchFixture(t, o)
				row := *f.row
				if tt.thread != nil {
					row.ThreadID = tt.thread(f)
				}
				if tt.file {
					f.Data = t.TempDir()
					if err := os.WriteFile(filepath.Join(f.Data, "cat.txt"), []byte("meow"), 0o600); err != nil {
						t.Fatal(err)
					}
					if tt.bare {
						row.Content = ""
					}
					row.Kind, row.Attachments = msg.KindFile, []msg.Attachment{{Name: "<!here> & cat.txt", Path: "cat.txt"}}
				}
				if tt.refuse != "" {
					f.server.InjectFault(fake.Fault{Method: "files.getUploadURLExternal", Error: tt.refuse, Times: -1})
				}
				parts, err := f.Cut(&row)
				if err != nil {
					t.Fatal(err)
				}
				if id, err := f.Find(t.Context(), &row, parts[0]); id != "" || err != nil {
					t.Errorf("before it is sent: %q, %v", id, err)
				}
				part := parts[0]
				if tt.marked {
					part = f.Mark(part)
				}
				remark := &adapter.Remark{}
				sent, err := adaptertest.Send(t.Context(), f.Sender, &row, part)
				if sent == "" || err != nil && !errors.As(err, &remark) {
					t.Fatalf("sent %q, %v", sent, err)
				}
				if id, err := f.Find(t.Context(), &row, parts[0]); id != sent || err != nil {
					t.Errorf("found %q, %v, want %q", id, err, sent)
				}
			})
		}
	}
}
