package adaptertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/msg"
)

// refusalCases are the cases of parts that the platform does not take as they are.
func refusalCases() []testCase {
	return []testCase{
		{"flood wait of the account", func(p Platform) bool { return p.Floods && p.Lane != nil }, accountFlood},
		{"reply to what is gone", func(p Platform) bool { return p.GoneID != "" }, replyToGone},
		{"closed thread", func(p Platform) bool { return p.Closes },
			func(b *fixture) { endedThread(b, b.remote.CloseThread) }},
		{"refused photo", func(p Platform) bool { return p.Photos }, refusedPhoto},
		{"deleted thread", func(p Platform) bool { return p.Deletes },
			func(b *fixture) { endedThread(b, b.remote.DeleteThread) }},
	}
}

// accountFlood makes the account wait. Once it knows that, other lanes ask for nothing before the wait is over.
func accountFlood(b *fixture) {
	const (
		wait = 30 * time.Second
		// maxAsked is how many sends may find out: a platform may answer a chat's wait and the account's alike, so that
		// it takes two chats, each with a send that is under way while the other is answered.
		maxAsked = 4
	)
	b.remote.FloodAccount(wait)
	began := time.Now()
	first, second := b.say("first"), b.say("second", b.elsewhere)
	b.start()
	b.pass(wait / 3)
	var later []int64
	for i := range 10 {
		chat := b.platform.Lane(i)
		later = append(later, b.say(fmt.Sprintf("later %d", i), func(m *msg.Message) { m.ChatJID = chat }))
	}
	b.pass(wait / 3)
	if asked := b.remote.Asked(); asked > maxAsked {
		b.Errorf("%d sends in a wait of the account, want %d at most", asked, maxAsked)
	}
	b.within(2*wait, "the first row", func() bool { return isEnd(b.row(first).OutState) })
	b.ends(msg.OutSent, first, second)
	if took := time.Since(began); took < wait {
		b.Errorf("sent after %v, want %v", took, wait)
	}
	b.expect("first")
	for _, id := range later { // to chats that need not exist
		b.until("the end of a row", func() bool { return isEnd(b.row(id).OutState) })
	}
}

// replyToGone is sent without the reply.
func replyToGone(b *fixture) {
	id := b.say("answer", func(m *msg.Message) { m.ReplyToID = b.platform.GoneID })
	b.start()
	b.ends(msg.OutSent, id)
	if got := b.remote.Received(); len(got) != 1 || got[0].Text != "answer" || got[0].ReplyTo != "" {
		b.Errorf("received %+v, want an answer that is no reply", got)
	}
}

// endedThread sends to a thread that is closed or deleted. The row is sent there all the same, if the platform reopens
// it, or to the thread's chat, with a remark; there it may say so in front.
func endedThread(b *fixture, end func()) {
	end()
	id := b.say("inside", func(m *msg.Message) { m.ThreadID = b.platform.Thread })
	next := b.say("outside")
	b.start()
	b.ends(msg.OutSent, id, next)
	got := b.remote.Received()
	i := slices.IndexFunc(got, func(r Received) bool {
		return strings.HasSuffix(r.Text, "inside") &&
			r.ChatJID == b.platform.Chats[0]
	})
	if len(got) != 2 || i < 0 {
		b.Fatalf("received %+v, want two parts in the first chat", got)
	}
	if got[i].Thread == "" && b.parts(id)[0].Error == "" {
		b.Errorf("it left its thread without a remark: %+v", b.parts(id))
	}
}

// refusedPhoto sends a picture that the platform does not take as a photo. It arrives in another form, or its text
// arrives and names it. The text is not lost, the next row follows, and the row says why.
func refusedPhoto(b *fixture) {
	const name, caption = "chart.png", "the chart"
	picture, reason := b.remote.RefusePhoto()
	if err := os.WriteFile(filepath.Join(b.remote.Data, name), picture, 0o600); err != nil {
		b.Fatal(err)
	}
	id := b.say(caption, func(m *msg.Message) {
		m.Kind, m.Attachments = msg.KindFile, []msg.Attachment{{Name: name, Path: name, MIME: "image/png"}}
	})
	next := b.say("next")
	b.start()
	b.ends(msg.OutSent, id, next)
	got := b.remote.Received()
	if len(got) != 2 || got[1].Text != "next" {
		b.Fatalf("received %+v, want the picture, or a text in its place, and the next row", got)
	}
	if first := got[0]; !strings.Contains(first.Text, caption) ||
		first.File != name && !strings.Contains(first.Text, name) {
		b.Errorf("received %+v, want the file %s, or its name, with its text", first, name)
	}
	if parts := b.parts(id); len(parts) != 1 || !strings.Contains(parts[0].Error, reason) {
		b.Errorf("the row does not say %q: %+v", reason, parts)
	}
}
