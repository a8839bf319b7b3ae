package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/deploy/e2e/invariants"
)

func TestCheckPermissions_WhatIsDone_IsWhatWasAllowed(t *testing.T) {
	const line = `{"turn":"1","text":"ask_permission m1"}`
	sum := sha256.Sum256([]byte(line))
	ask := func(turn int, shown, hash, end string) string {
		return fmt.Sprintf(`INSERT INTO asks (turn_id, ask_id, message_id, question, options, payload_hash, who, state, option, answered_by, created_at, expires_at, ended_at)
			VALUES (%d, 'permission', 2, 'Append?' || char(10) || '%s', '["Allow once","Deny"]', '%s', '{}', %s, 1, 9, %s);`, turn, shown, hash, end, "3")
	}
	const allowed, denied, expired = `'answered', 'Allow once', 'telegram:1'`, `'answered', 'Deny', 'telegram:1'`, `'expired', NULL, NULL`
	hash := "sha256:" + hex.EncodeToString(sum[:])
	second := strings.NewReplacer("(1, 1, 'conv", "(2, 1, 'conv").Replace(oneAnswer[strings.Index(oneAnswer, "INSERT INTO turns"):strings.Index(oneAnswer, "INSERT INTO deliveries")])
	for name, tc := range map[string]struct {
		rows string
		done string
		want counts
	}{
		"allowed and done":                 {rows: ask(1, line, hash, allowed), done: line},
		"denied and not done":              {rows: ask(1, line, hash, denied)},
		"allowed and not done":             {rows: ask(1, line, hash, allowed), want: counts{invariants.Lost: 1}},
		"allowed, of a turn that goes on":  {rows: ask(1, line, hash, allowed) + `UPDATE turns SET reason = 'cancelled', state = 'cancelled'`},
		"denied and done":                  {rows: ask(1, line, hash, denied), done: line, want: counts{invariants.Doubled: 1}},
		"expired and done":                 {rows: ask(1, line, hash, expired), done: line, want: counts{invariants.Doubled: 1}},
		"not asked and done":               {done: line, want: counts{invariants.Doubled: 1}},
		"done twice":                       {rows: ask(1, line, hash, allowed), done: line + "\n" + line, want: counts{invariants.Doubled: 1}},
		"another one was shown":            {rows: ask(1, line+"!", hash, allowed), done: line, want: counts{invariants.Doubled: 1}},
		"another turn was allowed":         {rows: second + ask(2, line, hash, allowed), done: line, want: counts{invariants.Doubled: 1}},
		"another one was allowed":          {rows: ask(1, line, "sha256:x", allowed), done: line, want: counts{invariants.Doubled: 1, invariants.Lost: 1}},
		"what is done is no line of JSON":  {done: "x", want: counts{invariants.Doubled: 1}},
		"no permission, and nothing done ": {},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			if tc.done != "" {
				folder := filepath.Join(data, "groups", "main")
				if err := os.MkdirAll(folder, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(folder, "permitted.jsonl"), []byte(tc.done+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := empty()
			if err := r.checkPermissions(database(t, oneAnswer+tc.rows), data); err != nil {
				t.Fatal(err)
			}
			expect(t, r, tc.want)
		})
	}
}
