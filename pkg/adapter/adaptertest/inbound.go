package adaptertest

import (
	"context"
	"slices"
	"strings"
	"time"
)

// inboundCases are the cases of users' messages.
func inboundCases() []testCase {
	writes := func(p Platform) bool { return p.Writes }
	return []testCase{
		{"event refused by the database", writes, func(b *fixture) { refusedEvent(b, Outage{}) }},
		{"missed event refused by the database", func(p Platform) bool { return p.Writes && p.Outages },
			func(b *fixture) {
				refusedEvent(b, Outage{Kind: Refusing})
			}},
	}
}

const (
	// maxRefused bounds the tries of an event that the database refuses, together with one of a page of missed ones.
	maxRefused = 4
	// maxAgain is when Slack has sent an event for the last time: in the minute before a new connection none is read
	// from the history.
	maxAgain = 6 * time.Minute
)

// refusedEvent makes a user write three messages, in an outage if there is one, of which the database refuses the
// second for good. It is tried a few times, logged with the cause and passed over, and the others are stored in order.
func refusedEvent(b *fixture, o Outage) {
	b.listening = true
	b.start()
	b.online(maxReconnect)
	b.remote.Write("hello") // platforms may know a chat only after a message in it
	b.within(maxReconnect, "the first message", func() bool { return slices.Contains(b.written(), "hello") })
	b.exec(`CREATE TRIGGER refuse BEFORE INSERT ON messages WHEN new.content = 'bad' BEGIN SELECT raise(ABORT, 'a bad row'); END`)
	b.remote.SetOutage(o)
	for _, text := range []string{"one", "bad", "two"} {
		b.pass(time.Second)
		b.remote.Write(text)
	}
	b.pass(time.Second)
	b.remote.SetOutage(Outage{})
	b.within(maxAgain, "the message after the refused one", func() bool { return slices.Contains(b.written(), "two") })
	b.pass(time.Minute)

	got := b.written()
	if got = got[slices.Index(got, "hello")+1:]; !slices.Equal(got, []string{"one", "two"}) {
		b.Errorf("stored %q, want one and two", got)
	}
	var skipped []string
	for line := range strings.Lines(b.log.String()) {
		if strings.Contains(line, "event refused by the database skipped") {
			skipped = append(skipped, line)
		}
	}
	if len(skipped) != 1 || !strings.Contains(skipped[0], "a bad row") {
		b.Errorf("logged %q, want one line with the cause", skipped)
	}
	if n := strings.Count(b.log.String(), "a bad row"); n > maxRefused {
		b.Errorf("refused %d times, want %d at most:\n%s", n, maxRefused, b.log.String())
	}
}

// written lists the texts of Write, in the order of the rows.
func (b *fixture) written() (texts []string) {
	b.Helper()
	last, err := b.store.LastMessageID(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	for id := int64(1); id <= last; id++ {
		if m, err := b.store.Message(context.Background(), id); err == nil && m != nil &&
			slices.Contains([]string{"hello", "one", "bad", "two"}, m.Content) {
			texts = append(texts, m.Content)
		}
	}
	return texts
}
