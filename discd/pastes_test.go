package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	fake "arizuko/pkg/testkit/fakes/discord"
)

// Discord's clients send a long text as a file: it is the text, and the file stays. While the file cannot be read, the
// message is the file alone, and nothing else waits for long.
func TestInbound_LongPaste_IsTheText(t *testing.T) {
	r := newHarness(t, fake.Options{})
	stop := r.connect()
	dm := r.discord.DM(r.alice)
	long := strings.TrimSpace(strings.Repeat("soup ", 600))
	paste := func(at fake.Place, text string) {
		at.Attach(r.alice, "", fake.File{Name: "message.txt", Data: []byte(text)})
	}
	us := r.discord.Me()
	want := []string{
		fmt.Sprintf("mention: please review\n%s [#general]", long),
		fmt.Sprintf("message: `@user %s` %s [#general]", us.ID, long), // code mentions no user
		fmt.Sprintf("message: /new %s [Alice]", long),
	}
	paste(r.general, us.Mention()+" please review\n"+long)
	paste(r.general, "`"+us.Mention()+"` "+long)
	paste(dm, "/new "+long)
	r.expect(want...)

	r.discord.InjectFault(fake.Fault{Route: fake.Download, Delay: time.Hour})
	paste(r.general, "not read")
	paste(r.general, "nor this")
	r.general.Say(r.alice, "after")
	want = append(want, "message:  [#general]", "message:  [#general]", "message: after [#general]")
	r.expect(want...)
	stop()

	paste(r.general, us.Mention()+" missed")
	r.discord.InjectFault(fake.Fault{Route: fake.GetMessages, Status: http.StatusBadGateway})
	r.connect()
	r.expect(append(want, "mention: missed [#general]")...)
	if got := r.Text(`SELECT group_concat(DISTINCT (attachments ->> '$[0].name') || pending_files) FROM messages WHERE content != 'after'`); got != "message.txt1" {
		t.Errorf("the files are %q", got)
	}
}

// What a user forwards or answers may be such a file, too: also where discd has not seen it before.
func TestInbound_LongPasteForwardedOrAnswered_IsTheText(t *testing.T) {
	r := newHarness(t, fake.Options{})
	long := strings.TrimSpace(strings.Repeat("soup ", 600))
	before := r.general.Attach(r.alice, "", fake.File{Name: "message.txt", Data: []byte(long)})
	stop := r.connect()
	r.general.Forward(r.alice, before)
	r.general.Reply(r.alice, before.ID, r.discord.Me().Mention()+" why?")
	forwarded := fmt.Sprintf("message: forwarded:\n%s [#general]", long)
	want := []string{forwarded, fmt.Sprintf("message: %s [#general]", long), "mention: why? [#general]"}
	r.expect(want...)
	stop()
	r.general.Forward(r.alice, before)
	r.connect()
	r.expect(append(want, forwarded)...)
}
