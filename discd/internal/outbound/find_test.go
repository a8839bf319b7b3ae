package outbound

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/msg"
	fake "arizuko/pkg/testkit/fakes/discord"
)

// A crash after any form of a part was sent, and before its record: Find recognizes that form.
func TestFind_OtherFormArrived_IsFound(t *testing.T) {
	file := msg.Message{Kind: msg.KindFile, Content: "look", Attachments: []msg.Attachment{{Name: "a.txt", Path: "a.txt"}}}
	poll := msg.Message{Kind: msg.KindPoll, Content: `{"question":"Lunch?","options":["yes","no"]}`}
	for name, test := range map[string]struct {
		row     msg.Message
		end     func(fake.Place) // what becomes of the thread; nil for a row of the channel
		refused int              // Discord's code for the file, 0 if it takes it
		marked  bool
	}{
		"reply without its target":          {row: msg.Message{Content: "hello", ReplyToID: "5"}},
		"file refused":                      {row: file, refused: tooLarge},
		"file not allowed":                  {row: file, refused: noPermission},
		"file refused in a deleted thread":  {row: file, end: fake.Place.DeleteChannel, refused: tooLarge},
		"text of a closed thread":           {row: msg.Message{Content: "hello"}, end: closed},
		"poll of a closed thread":           {row: poll, end: closed},
		"marked text":                       {row: msg.Message{Content: "hello"}, marked: true},
		"marked file without a text":        {row: msg.Message{Kind: msg.KindFile, Attachments: file.Attachments}, marked: true},
		"marked poll":                       {row: poll, marked: true},
		"marked text of a deleted thread":   {row: msg.Message{Content: "hello"}, end: fake.Place.DeleteChannel, marked: true},
		"marked, closed, with refused file": {row: file, end: closed, refused: tooLarge, marked: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newSenderFixture(t)
			if err := os.WriteFile(filepath.Join(b.Data, "a.txt"), []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
			if test.end != nil {
				test.row.ThreadID = b.thread.ChannelID
				test.end(b.thread)
			}
			other, otherPart := b.row(t, msg.Message{Content: "hello, another"})
			b.send(t, other, otherPart)
			m, part := b.row(t, test.row)
			b.time = b.time.Add(nonceLifetime + time.Minute)
			b.find(t, m, part, "", 1)
			id := b.sendUnrecorded(t, m, part, test.refused, test.marked)
			b.time = b.time.Add(nonceLifetime + time.Minute)
			b.find(t, m, part, id, 2)
		})
	}
}

func closed(thread fake.Place) { thread.Archive(true, true) }

// sendUnrecorded sends a part, or its marked copy, in the form that Discord takes, and returns the id of the message.
func (b *senderFixture) sendUnrecorded(t *testing.T, m *msg.Message, part adapter.Part, refused int, marked bool) (id string) {
	t.Helper()
	if marked {
		part = b.Mark(part)
	}
	if refused != 0 {
		b.InjectFault(fake.Fault{Route: fake.CreateMessage, Status: http.StatusForbidden, Code: refused, Message: "refused"})
	}
	if _, err := adaptertest.Send(t.Context(), b, m, part); err != nil && b.made() != 2 {
		t.Fatal(err)
	}
	sent := b.Sent()
	return sent[len(sent)-1].MessageID
}
