package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/egress/secrets"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
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
	p := programs{defaults: defaults}
	if err := p.warnOfGroups(t.Context(), cfg, &out); err != nil || !strings.HasPrefix(out.String(), "warning: strangers can reach group acme (by route 1)") {
		t.Errorf("%v: %s", err, &out)
	}
	out.Reset()
	cfg.Data = t.TempDir()
	if err := p.warnOfGroups(t.Context(), cfg, &out); err != nil || out.Len() > 0 {
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
	cfg.AgentCommand = "true"
	p := storetest.Must(cfg.programs(""))(t)
	var out bytes.Buffer
	if err := p.warnOfGroups(t.Context(), cfg, &out); err != nil {
		t.Fatal(err)
	}
	const want = "warning: group acme gets no transcripts of voice notes: its config.transcribe cannot be run as process: "
	if got := out.String(); !strings.HasPrefix(got, want) || !strings.Contains(got, "no-such-whisper") || strings.Count(got, "\n") != 1 {
		t.Errorf("%s", got)
	}
}

func TestCheck_BudgetWithoutReportedDollars_IsNamed(t *testing.T) {
	path, now := storetest.Path(t), time.Now()
	st := storetest.OpenAt(t, path, nil)
	db, err := storetest.OpenSQL(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	groups := []msg.Group{{Folder: "acme", Config: json.RawMessage(`{"budget":{"day_usd":1}}`)}, {Folder: "paid", Config: json.RawMessage(`{"budget":{"turn_usd":1}}`)},
		{Folder: "idle", Config: json.RawMessage(`{"budget":{"day_usd":1}}`)}, {Folder: "free", Config: json.RawMessage(`{}`)}}
	db.SetMaxOpenConns(1)
	_, pragmaErr := db.Exec(`PRAGMA foreign_keys = OFF`)
	_, turnsErr := db.Exec(`INSERT INTO turns (kind, folder, chat_jid, topic, surface, ceiling, trigger_message_id, state, created_at, started_at, ended_at) SELECT 'conversation', value, 'web:x', '', '', 0, 1, 'done', ?1, ?1, ?1 FROM json_each('["acme","paid","free"]')`, now.UnixMilli())
	_, spendErr := db.Exec(`INSERT INTO spend (day, folder, chat_jid, cost_usd) VALUES (?, 'paid', 'web:x', 0.1)`, now.Format(time.DateOnly))
	var got []string
	for _, g := range groups {
		got = append(got, storetest.Must((&programs{}).warnings(t.Context(), st.Reader, g, now))(t)...)
	}
	if err = errors.Join(pragmaErr, turnsErr, spendErr); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "the budget of group acme, in dollars, limits nothing") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCheck_KeysThatTheFirewallCouldHide_AreNamed(t *testing.T) {
	for config, want := range map[string][]string{
		`{"agent":{"runtime":"bwrap","env":["API_KEY","EDITOR"]}}`:                                    {"group main gives its agent API_KEY"},
		`{"agent":{"runtime":"process","env":["API_KEY"]}}`:                                           nil,
		`{"agent":{"runtime":"bwrap","network":"none","secrets":{"API_KEY":"key"}}}`:                  {"the agent of group main gets no agent.secrets"},
		`{"agent":{"runtime":"bwrap","network":"ask","secrets":{"API_KEY":"key","R":"key.refresh"}}}`: nil,
		`{"agent":{"network":"ask"}}`:                                                                 {"the agent of group main cannot be run: its agent.network is ask"},
	} {
		p := &programs{defaults: groupconfig.Config{Agent: groupconfig.Agent{Runtime: groupconfig.Process}}}
		got, err := p.warnings(t.Context(), store.Reader{}, msg.Group{Folder: "main", Config: json.RawMessage(config)}, time.Now())
		if err != nil || len(got) != len(want) || want != nil && !strings.HasPrefix(got[0], want[0]) {
			t.Errorf("%s: %q, %v, want %q", config, got, err, want)
		}
	}
}

func TestCheck_RuleWithoutItsSecret_IsNamed(t *testing.T) {
	path := storetest.Path(t)
	st := storetest.OpenAt(t, path, nil)
	var cfg Config
	cfg.Data = filepath.Dir(path)
	keep := secrets.New(cfg.Data)
	ruleErr := st.Write(t.Context(), func(tx *store.Tx) error {
		return egressrows.PutRule(tx, &egress.Rule{Host: "a.test", Action: egress.Inject, Secret: "key", Author: "cli"})
	})
	warnings := func() string {
		var out bytes.Buffer
		if err := (&programs{}).warnOfGroups(t.Context(), cfg, &out); err != nil {
			t.Error(err)
		}
		return out.String()
	}
	want := " (a.test → inject key) has no secret: set it with `gated secret set key`\n"
	if got := warnings(); ruleErr != nil || !strings.HasPrefix(got, "warning: egress rule ") || !strings.HasSuffix(got, want) ||
		strings.Count(got, "\n") != 1 {
		t.Errorf("%q, %v", got, ruleErr)
	}
	if err := keep.Set("key", "12345678"); err != nil {
		t.Error(err)
	}
	if got := warnings(); got != "" {
		t.Errorf("once it is set: %q", got)
	}
}
