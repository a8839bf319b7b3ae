package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestUnconfined_ReachedGroupsByRuntime(t *testing.T) {
	open := []msg.Route{{ID: 1, Match: "platform=telegram", Target: "acme"}}
	closed := []msg.Route{{ID: 1, Match: "sender=telegram:42", Target: "acme"}}
	for name, tc := range map[string]struct {
		routes   []msg.Route
		config   string // of acme
		instance groupconfig.Runtime
		want     []string // beginnings of the lines
	}{
		"process": {open, `{}`, groupconfig.Process, []string{
			"strangers can reach group acme (by route 1), whose agent runs as process", "strangers can reach group acme/eng (by route 1 and @name from acme)",
		}},
		"its own process":     {open, `{"agent":{"runtime":"process"}}`, groupconfig.Docker, []string{"strangers can reach group acme (by route 1)"}},
		"its own bwrap":       {open, `{"agent":{"runtime":"bwrap"},"reach":"none"}`, groupconfig.Process, nil},
		"bwrap for all":       {open, `{}`, groupconfig.Bwrap, nil},
		"its own group alone": {open, `{"reach":"none"}`, groupconfig.Process, []string{"strangers can reach group acme (by route 1)"}},
		"a list of users":     {open, `{"access":["telegram:42"]}`, groupconfig.Process, nil},
		"closed":              {closed, `{}`, groupconfig.Process, nil},
		"no agent runs":       {open, `{"observe":7,"reach":"none"}`, groupconfig.Process, nil},
	} {
		groups := []msg.Group{{Folder: "acme", Config: json.RawMessage(tc.config)}, {Folder: "acme/eng", Config: json.RawMessage(`{}`)}}
		got := unconfined(tc.routes, groups, groupconfig.Config{Agent: groupconfig.Agent{Runtime: tc.instance}})
		if len(got) != len(tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
			continue
		}
		for i, want := range tc.want {
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	}
}

func TestWarnOfStrangers_StoredRoutes_Named(t *testing.T) {
	path := storetest.Path(t)
	st := storetest.OpenAt(t, path, nil)
	err := st.Write(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.PutGroup(&msg.Group{Folder: "acme", Config: json.RawMessage(`{}`)}); err != nil {
			return err
		}
		return tx.PutRoute(&msg.Route{Target: "acme"})
	})
	if err != nil {
		t.Fatal(err)
	}
	var cfg Config
	cfg.Data = filepath.Dir(path)
	defaults := groupconfig.Config{Agent: groupconfig.Agent{Runtime: groupconfig.Process}}
	var out bytes.Buffer
	if err := warnOfGroups(t.Context(), cfg, defaults, &out); err != nil || !strings.HasPrefix(out.String(), "warning: strangers can reach group acme (by route 1)") {
		t.Errorf("%v: %s", err, &out)
	}
	out.Reset()
	cfg.Data = t.TempDir()
	if err := warnOfGroups(t.Context(), cfg, defaults, &out); err != nil || out.Len() > 0 {
		t.Errorf("without a database: %v: %s", err, &out)
	}
}

func TestCheck_TranscriberIsMissing_IsNamed(t *testing.T) {
	path := storetest.Path(t)
	st := storetest.OpenAt(t, path, nil)
	err := st.Write(t.Context(), func(tx *store.Tx) error {
		for folder, command := range map[string]string{"acme": "no-such-whisper -f {file}", "other": "cat {file}", "quiet": ""} {
			config, err := json.Marshal(groupconfig.Config{Transcribe: command})
			if err != nil {
				return err
			}
			if _, err := tx.PutGroup(&msg.Group{Folder: folder, Config: config}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var cfg Config
	cfg.Data = filepath.Dir(path)
	defaults := groupconfig.Config{Agent: groupconfig.Agent{Runtime: groupconfig.Process}}
	var out bytes.Buffer
	if err := warnOfGroups(t.Context(), cfg, defaults, &out); err != nil {
		t.Fatal(err)
	}
	const want = "warning: group acme gets no transcripts of voice notes: its config.transcribe cannot be run as process: "
	if got := out.String(); !strings.HasPrefix(got, want) || !strings.Contains(got, "no-such-whisper") || strings.Count(got, "\n") != 1 {
		t.Errorf("%s", got)
	}
}
