package adaptertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func textInOrder(b *fixture) {
	var ids []int64
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("line %d", i))
		ids = append(ids, b.say(want[i]))
	}
	b.start()
	b.ends(msg.OutSent, ids...)
	b.expect(want...)
	for _, id := range ids {
		b.until("word of the end", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.settled[id] == 1 })
	}
}

// longText is cut where words end, and nothing is left out or added.
func longText(b *fixture) {
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, "word%d", i)
		text.WriteString([]string{" ", " ", " ", "\n", "\n\n"}[i%5])
	}
	whole := strings.TrimSpace(text.String())
	id, next := b.say(whole), b.say("next")
	b.start()
	b.ends(msg.OutSent, id, next)
	got := b.received(b.platform.Chats[0])
	if len(got) < 2 || got[len(got)-1] != "next" {
		b.Fatalf("received %d parts, and not the next row after them", len(got))
	}
	parts := got[:len(got)-1]
	if joined := strings.Join(parts, "\n"); !slices.Equal(strings.Fields(joined), strings.Fields(whole)) {
		b.Errorf("the parts are not the text: %.500q … %.500q", joined, joined[max(0, len(joined)-500):])
	}
	for i, part := range parts {
		if b.platform.TooLong != nil && b.platform.TooLong(part) {
			b.Errorf("part %d is too long: %d bytes", i, len(part))
		}
	}
}

// twoChats makes the first one slow, if the remote can fail.
func twoChats(b *fixture) {
	held := b.fail(Fault{Class: msg.Rate, After: 2 * time.Second})
	slow := b.say("slow")
	b.start()
	if !b.platform.Foreign {
		b.until("the slow row's beginning", func() bool { return b.row(slow).OutState != msg.OutQueued })
	}
	quick := b.say("quick", b.elsewhere)
	b.ends(msg.OutSent, quick)
	if held && isEnd(b.row(slow).OutState) {
		b.Errorf("the slow row was as quick: %+v", b.parts(slow))
	}
	b.ends(msg.OutSent, slow)
	b.expect("slow")
	if got := b.received(b.platform.Chats[1]); !slices.Equal(got, []string{"quick"}) {
		b.Errorf("the other chat received %q", got)
	}
}

func reply(b *fixture) {
	first := b.say("question")
	stop := b.start()
	b.ends(msg.OutSent, first)
	stop()
	id := b.row(first).PlatformID
	second := b.say("answer", func(m *msg.Message) { m.ReplyToID = id })
	b.start()
	b.ends(msg.OutSent, second)
	got := b.remote.Received()
	if last := got[len(got)-1]; id == "" || last.Text != "answer" || last.ReplyTo != id {
		b.Errorf("received %+v, want an answer to %q", last, id)
	}
}

func thread(b *fixture) {
	inThread := func(m *msg.Message) { m.ThreadID = b.platform.Thread }
	b.start()
	b.ends(msg.OutSent, b.say("inside", inThread), b.say("outside"))
	for _, r := range b.remote.Received() {
		if want := map[string]string{"inside": b.platform.Thread}[r.Text]; r.Thread != want {
			b.Errorf("%q arrived in thread %q, want %q", r.Text, r.Thread, want)
		}
	}
	if got := b.remote.Received(); len(got) != 2 {
		b.Errorf("received %+v", got)
	}
}

// permanentFailure ends the row at once, and delays no other row.
func permanentFailure(b *fixture) {
	if !b.fail(Fault{Class: msg.Permanent}) {
		return
	}
	bad, next, other := b.say("bad"), b.say("next"), b.say("other", b.elsewhere)
	begin := time.Now()
	b.start()
	b.ends(msg.OutFailed, bad)
	b.ends(msg.OutSent, next, other)
	if took := time.Since(begin); took > patience/2 {
		b.Errorf("that took %v", took)
	}
	b.expect("next")
	if p := b.parts(bad)[0]; p.ErrorClass != msg.Permanent || p.Error == "" || p.Attempts > 1 {
		b.Errorf("the part: %+v", p)
	}
}

// rateFailure is waited for, and uses up no attempt.
func rateFailure(b *fixture) {
	const after = 2 * time.Second
	if !b.fail(Fault{Class: msg.Rate, After: after}) {
		return
	}
	begin := time.Now()
	id := b.say("patience")
	b.start()
	b.until("the failure", func() bool { p := b.parts(id); return len(p) > 0 && p[0].NotBefore > 0 })
	p := b.parts(id)[0]
	if p.Attempts != 0 || p.ErrorClass != msg.Rate || p.NotBefore < begin.Add(after).UnixMilli() {
		b.Errorf("the part: %+v", p)
	}
	b.expect()
	b.ends(msg.OutSent, id)
	if took := time.Since(begin); took < after {
		b.Errorf("sent again after %v, want %v", took, after)
	}
	b.expect("patience")
}

func transientFailure(b *fixture) {
	if !b.fail(Fault{Class: msg.Transient}) {
		return
	}
	id, next := b.say("again"), b.say("next")
	b.start()
	b.ends(msg.OutSent, id, next)
	b.expect("again", "next")
	if p := b.parts(id)[0]; p.Attempts > 1 { // none if the platform was not reached
		b.Errorf("the part: %+v", p)
	}
}

// ambiguousFailure makes one part arrive and another one not; both answers get lost.
func ambiguousFailure(b *fixture) {
	if b.remote.Fail == nil {
		return
	}
	for _, arrived := range []bool{true, false} {
		text := fmt.Sprintf("arrived %v", arrived)
		b.fail(Fault{Class: msg.Ambiguous, Arrived: arrived})
		id := b.say(text)
		stop := b.start()
		b.until("the end of the row", func() bool { return isEnd(b.row(id).OutState) })
		stop()
		b.checkAmbiguous(id, text, arrived)
	}
}

// crashBeforeTheRecord crashes after a part has arrived, before that is recorded.
func crashBeforeTheRecord(b *fixture) {
	first, id, next := b.say("first"), b.say("middle"), b.say("last")
	b.exec(fmt.Sprintf(`CREATE TRIGGER no BEFORE UPDATE OF state ON deliveries
		WHEN new.state <> 'sending' AND new.message_id = %d BEGIN SELECT raise(ABORT, 'no'); END`, id))
	stop := b.start()
	b.ends(msg.OutSent, first)
	b.until("the row", func() bool { return b.row(id).OutState == msg.OutSending })
	if bare := func() int { n, _ := b.copies("middle"); return n }; !b.policy().repeats || bare() > 0 {
		b.until("its part", func() bool { return bare() > 0 })
	}
	stop()
	if p := b.parts(id); p[0].State != msg.OutSending {
		b.Fatalf("the crash left %+v", p)
	}
	b.exec(`DROP TRIGGER no`)
	b.start()
	b.until("the end of the row", func() bool { return isEnd(b.row(id).OutState) })
	b.ends(msg.OutSent, next)
	b.checkAmbiguous(id, "middle", true)
}

// crashBeforeTheSend crashes before a claimed part is sent.
func crashBeforeTheSend(b *fixture) {
	id := b.say("middle")
	b.write(func(tx *store.Tx) error { return tx.ClaimOutbound(id, 1, 1) })
	next := b.say("last")
	b.start()
	b.until("the end of the row", func() bool { return isEnd(b.row(id).OutState) })
	b.ends(msg.OutSent, next)
	b.checkAmbiguous(id, "middle", false)
}

// checkAmbiguous checks that a part whose first try was ambiguous ended as the adapter's policy says.
func (b *fixture) checkAmbiguous(id int64, text string, arrived bool) {
	b.Helper()
	bare, marked := b.copies(text)
	state, p := b.row(id).OutState, b.policy()
	first := map[bool]int{true: 1}[arrived]
	switch {
	case p.repeats: // a second copy is harmless
		if bare == 0 || marked > 0 {
			b.Errorf("%q is there %d times, and %d times with a mark", text, bare, marked)
		}
	case p.finds:
		if bare != 1 || marked != 0 || state != msg.OutSent {
			b.Errorf("%q is there %d times, and %d times with a mark: %s", text, bare, marked, state)
		}
	case p.marks:
		if bare != first || marked != 1 || state != msg.OutSent {
			b.Errorf("%q is there %d times, and %d times with a mark: %s", text, bare, marked, state)
		}
	default:
		if bare != first || marked != 0 || state != msg.OutAmbiguous {
			b.Errorf("%q is there %d times, and %d times with a mark: %s", text, bare, marked, state)
		}
	}
}

// stopInTheMiddle stops during a send, which ends; the next shell continues after it.
func stopInTheMiddle(b *fixture) {
	var ids []int64
	var want []string
	for i := range 60 {
		want = append(want, fmt.Sprintf("line %d", i))
		ids = append(ids, b.say(want[i]))
	}
	stop := b.start()
	b.until("the beginning", func() bool { return len(b.received(b.platform.Chats[0])) > 0 })
	stop()
	b.start()
	b.ends(msg.OutSent, ids...)
	b.expect(want...)
}

func cancelledRow(b *fixture) {
	first := b.say("first")
	never := b.say("never", func(m *msg.Message) { m.TurnID = 1 })
	last := b.say("last")
	b.write(func(tx *store.Tx) error { return gatedtest.CancelReplies(tx, 1) })
	b.start()
	b.ends(msg.OutSent, first, last)
	b.ends(msg.OutCancelled, never)
	b.expect("first", "last")
	if p := b.parts(never); len(p) > 0 {
		b.Errorf("the cancelled row was begun: %+v", p)
	}
}

// oddContent may be sent or refused, but delays no other row.
func oddContent(b *fixture) {
	odd := []string{
		"", " ", "\n\n", "\x00", "a\x00b", "\xff\xfe", "\u202e\u200b", "\ufeff", "👩‍👩‍👧‍👦",
		strings.Repeat("e\u0301", 3000),
		"```", "```go\nfunc", "**", "[](", "[a](javascript:alert(1))", "<b>", "</script>", "&amp;&#0;",
		"`" + strings.Repeat("x", 9000) + "`",
		strings.Repeat("> ", 2000) + "deep", strings.Repeat("[", 5000), strings.Repeat("*a", 5000),
		strings.Repeat("\n", 9000),
		strings.Repeat("x", 100<<10), strings.Repeat("世", 30<<10), strings.Repeat("|a|b|\n", 2000),
	}
	var ids []int64
	for _, content := range odd {
		ids = append(ids, b.say(content))
	}
	next, other := b.say("next"), b.say("other", b.elsewhere)
	b.start()
	b.ends(msg.OutSent, other)
	for i, id := range ids {
		b.until("the end of a row", func() bool { return isEnd(b.row(id).OutState) })
		if state := b.row(id).OutState; state == msg.OutAmbiguous {
			b.Errorf("%.40q is %s: %+v", odd[i], state, b.parts(id))
		}
	}
	b.ends(msg.OutSent, next)
	got := b.received(b.platform.Chats[0])
	if len(got) == 0 || got[len(got)-1] != "next" {
		b.Error("the row after it did not arrive")
	}
	for _, part := range got {
		if b.platform.TooLong != nil && b.platform.TooLong(part) {
			b.Errorf("a part is too long: %d bytes of %.40q", len(part), part)
		}
	}
}

func secrets(b *fixture) {
	id := b.say("the key is " + secret + ", keep it")
	b.start()
	b.ends(msg.OutSent, id)
	got := b.received(b.platform.Chats[0])
	if len(got) != 1 || !strings.Contains(got[0], "the key is") {
		b.Errorf("received %q", got)
	}
	if strings.Contains(strings.Join(got, ""), secret) {
		b.Errorf("the secret is out: %q", got)
	}
}

// massMentions are texts that agents may be talked into writing.
func massMentions(b *fixture) {
	hostile := []string{
		"@everyone", "@here", "@channel", "@all", "hello @everyone and @here", "**@everyone**", "`@everyone`",
		"```\n@here\n```",
		"<!channel>", "<!here>", "<!everyone>", "<!subteam^S1|@team>", "<@U12345678>", "<@123456789012345678>",
		"<@!123456789012345678>",
		"<@&123456789012345678>", "<#C12345678>", "&lt;!channel&gt;", "[x](<!channel>)", "@\u200beveryone",
		"@ everyone", "@every\none",
	}
	b.start()
	for _, text := range hostile {
		id := b.say(text)
		b.until("the end of a row", func() bool { return isEnd(b.row(id).OutState) })
	}
	for _, r := range b.remote.Received() {
		if b.platform.Mentions(r.Text) {
			b.Errorf("pings users: %q", r.Text)
		}
	}
	if len(b.remote.Received()) == 0 {
		b.Error("nothing arrived")
	}
}
