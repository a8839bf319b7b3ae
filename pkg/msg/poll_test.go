package msg

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePoll(t *testing.T) {
	got, err := ParsePoll(`{"question":"Lunch?","options":["yes","no"],"multiple":true,"closes_at":5,"new":1}`)
	want := &Poll{Question: "Lunch?", Options: []string{"yes", "no"}, Multiple: true, ClosesAt: 5}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, content := range []string{"", "lunch", `[]`, `{"options":"yes"}`} {
		if got, err := ParsePoll(content); err == nil || got != nil {
			t.Errorf("%q gives %+v", content, got)
		}
	}
}
