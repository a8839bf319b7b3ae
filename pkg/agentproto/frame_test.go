package agentproto

import (
	"bytes"
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
