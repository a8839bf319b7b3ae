package adapter

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
)

func TestUnixMilli_InvalidTime_IsZero(t *testing.T) {
	for ms, want := range map[int64]int64{
		1: 1, 1764000001000: 1764000001000, 253402300800_000: 253402300800_000,
		0: 0, -1: 0, 253402300800_001: 0, math.MaxInt64: 0, math.MinInt64: 0,
	} {
		if got := UnixMilli(ms); got != want {
			t.Errorf("UnixMilli(%d) = %d, want %d", ms, got, want)
		}
	}
}

func TestNewAttachment_MissingFields_GetDefaults(t *testing.T) {
	got := []msg.Attachment{
		NewAttachment("a.txt", "text/plain", 3, "ref", ""),
		NewAttachment("", "", -1, "ref", ""),
		NewAttachment("b.txt", "", 3, "ref", "it was deleted"),
	}
	want := []msg.Attachment{
		{Name: "a.txt", MIME: "text/plain", Size: 3, Ref: "ref"},
		{Name: "file", MIME: "application/octet-stream", Ref: "ref"},
		{Name: "b.txt", MIME: "application/octet-stream", Size: 3, Error: "it was deleted"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attachments (-want +got):\n%s", diff)
	}
	if n := Pending(got); n != 2 {
		t.Errorf("%d are pending, want 2", n)
	}
}
