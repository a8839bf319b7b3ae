package agentproto

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestFrame_ErrorKind_UnknownIsSession(t *testing.T) {
	for kind, want := range map[Kind]Kind{
		"": KindSession, "session": KindSession, "transient": KindTransient, "permanent": KindPermanent,
		"Transient": KindSession, "later": KindSession,
	} {
		if got := (Frame{Status: StatusError, Kind: kind}).ErrorKind(); got != want {
			t.Errorf("%q is %q, want %q", kind, got, want)
		}
	}
}

func TestFrame_RetryDelay_IsBounded(t *testing.T) {
	for _, tt := range []struct {
		kind    Kind
		seconds float64
		want    time.Duration
	}{
		{KindTransient, 0, 0},
		{KindTransient, 2.5, 2500 * time.Millisecond},
		{KindTransient, -3, 0},
		{KindTransient, 1e300, MaxRetryAfter},
		{KindTransient, 86400, MaxRetryAfter},
		{KindPermanent, 5, 0},
		{KindSession, 5, 0},
		{"", 5, 0},
	} {
		if got := (Frame{Kind: tt.kind, RetryAfter: tt.seconds}).RetryDelay(); got != tt.want {
			t.Errorf("%q, %v s: %v, want %v", tt.kind, tt.seconds, got, tt.want)
		}
	}
}

func TestWriteFrame_NoKind_OmitsKindAndDelay(t *testing.T) {
	var out bytes.Buffer
	if err := WriteFrame(&out, Frame{Status: StatusOK, Result: "r"}); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out.Bytes(), []byte("kind")) || bytes.Contains(out.Bytes(), []byte("retry_after")) {
		t.Errorf("frame %s", out.String())
	}
}

func TestFrame_TurnIDs_AreChecked(t *testing.T) {
	for body, want := range map[string]string{
		`{"status":"ok","turnIds":["1","2"]}`:                                       "",
		`{"status":"ok","turnIds":null,"turnId":"1"}`:                               "",
		`{"status":"ok","turnId":"1","turnIds":["1","2"]}`:                          "turnId and turnIds are both set",
		`{"status":"ok","turnIds":[]}`:                                              "turnIds has 0 turns",
		`{"status":"ok","turnIds":["7","8","7"]}`:                                   `turnIds names turn "7" twice`,
		`{"status":"ok","turnIds":["7",""]}`:                                        "turnIds has an empty text",
		`{"status":"ok","turnIds":[7]}`:                                             "cannot unmarshal",
		`{"status":"ok","turnIds":["1"` + strings.Repeat(`,"2"`, MaxTurnIDs) + `]}`: "turnIds has 65 turns, want 1 to 64",
	} {
		out := FrameStart + "\n" + body + "\n" + FrameEnd + "\n"
		f, err := NewScanner(strings.NewReader(out), io.Discard).NextFrame()
		var bad *Malformed
		switch {
		case want == "" && (err != nil || len(f.Turns()) == 0):
			t.Errorf("%s: %+v, %v", body, f, err)
		case want != "" && (!errors.As(err, &bad) || !strings.Contains(bad.Reason, want)):
			t.Errorf("%s: %v, want %q", body, err, want)
		case strings.Contains(want, "twice") && bad.TurnID != "7":
			t.Errorf("%s: turn %q pays, want the first", body, bad.TurnID)
		}
	}
}
