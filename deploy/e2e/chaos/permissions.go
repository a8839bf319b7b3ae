package main

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"arizuko/deploy/e2e/invariants"
)

// permittedFiles are where the demo agent writes after a permission.
const permittedFiles = "groups/*/permitted.jsonl"

// permission is a question whether something may run.
type permission struct {
	ask, turn int64
	shown     string // as users read it
	hash      string
	allowed   bool
}

// readPermissions reads the questions by the hash of what they allow, and those whose turn has answered.
func readPermissions(db *sql.DB) (all map[string][]permission, due []permission, err error) {
	all = map[string][]permission{}
	return all, due, each(db,
		`SELECT a.id, a.turn_id, a.question, a.payload_hash, a.state = 'answered' AND a.option = 'Allow once', t.reason = 'answered'
		FROM asks a JOIN turns t ON t.id = a.turn_id WHERE a.payload_hash <> ''`, func(scan func(...any) error) error {
			var p permission
			var answered sql.NullBool
			if err := scan(&p.ask, &p.turn, &p.shown, &p.hash, &p.allowed, &answered); err != nil {
				return err
			}
			_, p.shown, _ = strings.Cut(p.shown, "\n")
			all[p.hash] = append(all[p.hash], p)
			if p.allowed && answered.Bool {
				due = append(due, p)
			}
			return nil
		})
}

// checkPermissions checks that agents have done exactly the actions that users have allowed: the same, by its hash and
// as users have read it, for the turn that asked, and once. What was denied, has expired or was not asked was not done.
func (r *result) checkPermissions(db *sql.DB, data string) error {
	asked, due, err := readPermissions(db)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(data, permittedFiles))
	if err != nil {
		return err
	}
	done := map[string]int{} // times, by hash
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(content) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			sum := sha256.Sum256(line)
			hash := "sha256:" + hex.EncodeToString(sum[:])
			r.checkPermitted(asked[hash], string(line))
			if done[hash]++; done[hash] > 1 {
				r.add(invariants.Doubled, 1, "%s was allowed once, and done %d times", line, done[hash])
			}
		}
	}
	for _, p := range due {
		if done[p.hash] == 0 {
			r.add(invariants.Lost, 1, "question %d of turn %d was allowed, and nothing was done", p.ask, p.turn)
		}
	}
	return nil
}

// checkPermitted checks a line that an agent has written, of which asked are the questions with its hash.
func (r *result) checkPermitted(asked []permission, line string) {
	var of struct {
		Turn int64 `json:"turn,string"`
	}
	if err := json.Unmarshal([]byte(line), &of); err != nil {
		r.add(invariants.Doubled, 1, "%q was done: %v", line, err)
		return
	}
	i := slices.IndexFunc(asked, func(p permission) bool { return p.turn == of.Turn && p.allowed })
	switch {
	case i < 0:
		r.add(invariants.Doubled, 1, "%s was done, but not allowed: %s", line,
			fmt.Sprintf("%d questions have its hash", len(asked)))
	case asked[i].shown != line:
		r.add(invariants.Doubled, 1, "%s was done, but users have read %q", line, asked[i].shown)
	}
}
