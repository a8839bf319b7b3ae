package doctor

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/apierr"
	"arizuko/pkg/facts"
	"arizuko/pkg/httpx"
)

func TestFix_Modes_AreSetAndNothingElse(t *testing.T) {
	x := newInstance(t)
	data := x.cfg.Base.Data
	modes := map[string]os.FileMode{data: 0o755, x.cfg.Base.SecretPath(): 0o644, x.cfg.Base.DBPath(): 0o640}
	for path, mode := range modes {
		x.ok(os.Chmod(path, mode))
	}
	group := filepath.Join(data, "groups/main")
	x.ok(os.Chmod(group, 0o755))
	var out strings.Builder
	Fix(t.Context(), x.cfg, nil, Examine(t.Context(), x.cfg).Findings, &out)
	for path, mode := range map[string]os.FileMode{data: 0o700, x.cfg.Base.SecretPath(): 0o600, x.cfg.Base.DBPath(): 0o600, group: 0o755} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want %v", path, info.Mode(), err, mode)
		}
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 3 || !strings.Contains(out.String(), "chmod 700 "+data+", since the data folder ") ||
		strings.Count(out.String(), ": done\n") != 3 {
		t.Error(out.String())
	}
	out.Reset()
	Fix(t.Context(), x.cfg, nil, Examine(t.Context(), x.cfg).Findings, &out)
	if out.Len() > 0 {
		t.Errorf("again: %s", &out)
	}
}

func TestFix_Link_IsNotFollowed(t *testing.T) {
	x := newInstance(t)
	other := filepath.Join(t.TempDir(), "other")
	x.ok(os.WriteFile(other, nil, 0o644))
	x.ok(os.Remove(x.cfg.Base.SecretPath()))
	x.ok(os.Symlink(other, x.cfg.Base.SecretPath()))
	var out strings.Builder
	Fix(t.Context(), x.cfg, nil, []facts.Fact{{Kind: "secret-mode", Text: "open", Fix: "chmod"}}, &out)
	if info, err := os.Stat(other); err != nil || info.Mode().Perm() != 0o644 || !strings.HasPrefix(out.String(), "chmod, since open: could not: ") {
		t.Errorf("%v %v: %s", info.Mode(), err, &out)
	}
}

func TestFix_Turns_OnlyThoseThatWaitForTheClock(t *testing.T) {
	var calls []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.Method+" "+r.URL.Path)
		if strings.Contains(r.URL.Path, "8") {
			httpx.Error(w, apierr.New(apierr.Conflict, "turn 8 has ended"))
			return
		}
		httpx.JSON(w, http.StatusOK, struct{}{})
	}))
	defer server.Close()
	gated := httpx.NewClient("gated", server.URL, "")
	var out strings.Builder
	Fix(t.Context(), newInstance(t).cfg, gated, []facts.Fact{{Kind: "clock-turn", Subject: "7", Text: "turn 7 waits", Fix: "`gated retry 7`"},
		{Kind: "turns-failed", Subject: "9"}, {Kind: "clock-turn", Subject: "8", Text: "turn 8 waits", Fix: "`gated retry 8`"}, {Kind: "turn-lost", Subject: "9"}}, &out)
	want := "retry turn 7, since turn 7 waits: done\nretry turn 8, since turn 8 waits: could not: "
	if !strings.HasPrefix(out.String(), want) || !strings.Contains(out.String(), "turn 8 has ended") ||
		strings.Join(calls, ", ") != "POST /v1/turns/7/retry, POST /v1/turns/8/retry" {
		t.Errorf("%v: %s", calls, &out)
	}
}
