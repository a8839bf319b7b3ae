package agents

import (
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

func TestFrames_OverLimit_AreDiscarded(t *testing.T) {
	parts := strings.Repeat("more part; ", agentproto.MaxFrames)
	for _, tt := range []struct {
		name, script string
		frames       int
		reason       msg.Reason
	}{
		{"a part too many", parts + "say the answer", agentproto.MaxFrames, msg.ReasonPartial},
		{"as many as allowed", strings.TrimPrefix(parts, "more part; ") + "say the answer", agentproto.MaxFrames, msg.ReasonAnswered},
		{"silent ones", strings.Repeat("more; ", 3*agentproto.MaxFrames) + "say the answer", 1, msg.ReasonPartial},
		{"an error that ends the turn", parts + parts + "partial the answer", agentproto.MaxFrames, msg.ReasonPartial},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			asked := r.ask("!" + tt.script)
			done := r.await(asked, msg.TurnDone)
			replies := r.replies(asked)
			notices := count(replies, overLimit)
			if done.Frames != tt.frames || done.Reason != tt.reason || replies[len(replies)-1] != "the answer" {
				t.Errorf("%d frames, reason %s, last %q", done.Frames, done.Reason, replies[len(replies)-1])
			}
			if over := tt.reason == msg.ReasonPartial; (notices == 1) != over || notices > 1 || (done.Error != "") != over {
				t.Errorf("%d notices, error %q", notices, done.Error)
			}
			if logged := strings.Count(r.log.String(), "frame discarded"); logged > 1 {
				t.Errorf("logged %d times", logged)
			}
			if next := r.answered(r.ask("hi")); next[0] != "re: hi" {
				t.Errorf("then %q", next)
			}
		})
	}
}

func count(texts []string, text string) (n int) {
	for _, s := range texts {
		if s == text {
			n++
		}
	}
	return n
}

// Further messages of an answered turn count too.
func TestFrames_AfterTheEnd_AreBounded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	asked := r.ask("!say the answer; " + strings.Repeat("say another; ", 2*agentproto.MaxFrames) + "say last")
	r.await(asked, msg.TurnDone)
	r.until("the chat is notified", func() bool { return count(r.replies(asked), overLimit) == 1 })
	r.answered(r.ask("and now?"))
	if replies := r.replies(asked); len(replies) != agentproto.MaxFrames+1 {
		t.Errorf("%d messages", len(replies))
	}
}

// Twenty parts of a million characters that a page shows with five each.
func TestResults_AreBounded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	asked := r.ask("!" + strings.Repeat("longmore 1000000; ", 10) + "long 1000000")
	done := r.await(asked, msg.TurnDone)
	var sum, longest int
	replies := r.replies(asked)
	for _, text := range replies {
		sum, longest = sum+len(text), max(longest, len(text))
	}
	if sum > agentproto.MaxResults+len(overLimit) || longest > agentproto.MaxResult || count(replies, overLimit) != 1 {
		t.Errorf("%d bytes in %d messages, the longest %d", sum, len(replies), longest)
	}
	last := replies[len(replies)-1]
	if !strings.HasSuffix(last, "Missing: 849 KiB.)") || len(last) < agentproto.MaxResult-1024 || done.Reason != msg.ReasonPartial {
		t.Errorf("reason %s, last answer of %d bytes, end %q", done.Reason, len(last), last[len(last)-60:])
	}
}

func TestSessionID_TooLong_IsRefused(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	fits, tooLong := strings.Repeat("s", agentproto.MaxSessionID), strings.Repeat("é", agentproto.MaxSessionID/2+1)
	if got := r.answered(r.ask("!session "+fits+"; say a"), r.ask("!session "+tooLong+"; say b")); got[1] != "b" {
		t.Errorf("answers %q", got)
	}
	if s := r.session("main", ""); s != fits {
		t.Errorf("session %q", s)
	}
	r.await(r.ask("!kind permanent; session "+tooLong+"; error broken"), msg.TurnFailed)
	if s := r.session("main", ""); s != fits {
		t.Errorf("after an error: session %q", s)
	}
	for _, past := range must[[]rows.PastSession](r)(rows.PastSessions(t.Context(), r.st.Reader, "main", "", 1000, 10)) {
		if len(past.SessionID) > agentproto.MaxSessionID {
			t.Errorf("the log has a session id of %d bytes", len(past.SessionID))
		}
	}
	if n := strings.Count(r.log.String(), "session refused"); n != 2 {
		t.Errorf("logged %d times", n)
	}
}

func TestError_Long_IsCut(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	failed := r.await(r.ask("!kind permanent; error "+strings.Repeat("é", agentproto.MaxError)), msg.TurnFailed)
	if len(failed.Error) > agentproto.MaxError || len(failed.Error) < agentproto.MaxError-2 {
		t.Errorf("error of %d bytes", len(failed.Error))
	}
}

// An agent that writes on and on, but nothing that counts, is not at work.
func TestFrames_Discarded_DoNotPutOffTheTimeout(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"forever more", "forever as 99999"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, timeout(5*time.Second), attempts(1), impatient) // a busy machine takes a part of it to start the agent
			asked := r.ask("!" + script)
			r.until("the turn has ended", func() bool { s := r.turn(asked.ID).State; return s == msg.TurnDone || s == msg.TurnFailed })
			r.stop()
			if n := strings.Count(r.log.String(), "not logged"); n != 1 {
				t.Errorf("logged %d times", n)
			}
		})
	}
}
