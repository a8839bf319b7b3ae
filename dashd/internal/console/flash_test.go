package console

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestFlashes_Page_ShowsItsOwnForAMinute(t *testing.T) {
	var f flashes
	now := time.UnixMilli(1_000_000)
	address, err := url.Parse(f.add("/turns?state=failed", "", "turn 7 has ended already", now))
	if err != nil {
		t.Fatal(err)
	}
	key := address.Query().Get(flashParameter)
	if address.Path != "/turns" || address.Query().Get("state") != "failed" || key == "" {
		t.Fatalf("the address is %s", address)
	}
	for range 2 { // also after a reload
		if notice, problem := f.take(key, now.Add(flashLife)); notice != "" || problem != "turn 7 has ended already" {
			t.Errorf("%q, %q", notice, problem)
		}
	}
	for _, other := range []string{"", "x", strings.ToLower(key)} {
		if notice, problem := f.take(other, now); notice+problem != "" {
			t.Errorf("%q shows %q %q", other, notice, problem)
		}
	}
	f.add("/", "done", "", now.Add(-time.Millisecond)) // of a request that read the clock before
	if _, problem := f.take(key, now); problem == "" {
		t.Error("the one of another request is gone")
	}
	if notice, problem := f.take(key, now.Add(flashLife+1)); notice+problem != "" {
		t.Errorf("after a minute: %q %q", notice, problem)
	}
}

func TestFlashes_ManyForms_AreBounded(t *testing.T) {
	var f flashes
	now := time.UnixMilli(1_000_000)
	long := f.add("/", strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20), now)
	if notice, problem := f.take(strings.TrimPrefix(long, "/?"+flashParameter+"="), now); len(notice)+len(problem) > 3*maxFlashText || notice == "" {
		t.Errorf("texts of %d and %d bytes are kept", len(notice), len(problem))
	}
	for range 3 * maxFlashes {
		f.add("/", "done", "", now)
	}
	if len(f.all) > maxFlashes {
		t.Errorf("%d are kept", len(f.all))
	}
	f.add("/", "done", "", now.Add(-time.Hour)) // a clock that was set back
	if len(f.all) > 1 {
		t.Errorf("%d of a time to come are kept", len(f.all))
	}
}
