package console

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/daemon"
	"arizuko/pkg/facts"
)

// An examination that hangs delays pages a little; they show what the last one has found.
func TestFindings_HungExamination_HoldsNoPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failure error
		list := []facts.Fact{{Text: "late"}}
		hang := make(chan struct{})
		var f findings
		c := &site{Config: Config{Now: time.Now, Examine: func(context.Context) ([]facts.Fact, error) {
			<-hang
			return slices.Clone(list), failure
		}}}
		old := []facts.Fact{{Text: "looking for problems takes long: this list is not up to date", Fix: "`dashd doctor` on the server shows why"}}
		down := ""
		read := func(what string, took time.Duration, want []facts.Fact, wantErr error) {
			t.Helper()
			began := time.Now()
			got, err := f.read(t.Context(), c, down)
			if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, wantErr) || time.Since(began) != took {
				t.Errorf("%s: %v after %s, want %s (-want +got):\n%s", what, err, time.Since(began), took, diff)
			}
		}
		read("nothing is known", askTimeout, old, nil)
		close(hang)
		synctest.Wait()
		read("it was found meanwhile", 0, list, nil)
		down, list[0].Text = "gated", "gated hangs"
		read("a daemon is down since", 0, list, nil)
		<-time.After(findingsLife)
		hang = make(chan struct{})
		read("it hangs again", findingsWait, list, nil)
		<-time.After(maxFindingsAge)
		read("for long", findingsWait, append(old, list...), nil)
		failure = errors.New("unreadable")
		close(hang)
		synctest.Wait()
		read("the database is unreadable", 0, nil, failure)
		failure = nil
		read("and readable again", 0, list, nil)
	})
}

func TestPlatforms_AreThoseOfTheAdapters(t *testing.T) {
	t.Parallel()
	var names, want []string
	for _, p := range platforms() {
		names = append(names, p.Daemon+" "+p.Secrets[0])
	}
	for _, a := range daemon.Adapters() {
		want = append(want, a.Name+" "+a.Token)
	}
	if !slices.Equal(names, want) {
		t.Errorf("first steps explain %q, want %q", names, want)
	}
}

func TestIsOf_AnyAccount(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"teled": true, "teled+work": true, "slakd+work": false, "gated": false} {
		if got := isOf(name, "teled"); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
