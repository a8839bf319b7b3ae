package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
)

// sessionCost is the cost of the session so far as the agent states it, in US dollars. Most of it may be the cost of
// earlier runs: OpenCode sums up all of a session that it resumes, and says so only at the end of the next turn. So the
// last figure is kept in a file beside the agent's own ones, below HOME. Claude Code counts from its start.
type sessionCost struct {
	now     float64
	said    bool // in this process of the agent
	unknown bool // the cost before the session was resumed
	own     bool // the agent counts from its own start
	file    string
}

// ownCost is kept in place of the cost of a session whose agent counts from its own start.
const ownCost = "own"

// openCost is the cost of a session that was just opened.
func (r *run) openCost(resumed bool) {
	c := &r.cost
	c.file, c.own = costFile(r.session), has(r.can.Agent.Meta.ClaudeCode)
	if c.said || !resumed || c.own {
		return
	}
	kept, err := os.ReadFile(c.file)
	if c.own = string(kept) == ownCost; c.own {
		return
	}
	if err == nil {
		c.now, err = strconv.ParseFloat(string(kept), 64)
	}
	c.unknown = err != nil
}

// costFile is the file for a session, "" if there is no place for one.
func costFile(session string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(session))
	return filepath.Join(dir, "arizuko-acp", hex.EncodeToString(sum[:16]))
}

// sayCost takes in a figure of the session's cost.
func (r *run) sayCost(amount float64) {
	var before float64
	if r.running != nil {
		before = r.running.shown.costBefore
	}
	if before = r.cost.say(amount, before); r.running != nil {
		r.running.shown.costBefore = before
	}
}

// say takes in a figure and returns the session's cost before the running turn: before, unless this is the first
// figure.
func (c *sessionCost) say(amount, before float64) float64 {
	switch {
	case c.said:
	case c.unknown: // nothing tells how much of it is the turn's
		before = amount
	case amount < c.now:
		c.own, before = true, 0
	}
	c.now, c.said, c.unknown = amount, true, false
	return before
}

// keep stores the cost at the end of a turn for the next run. Without it, that one counts no cost before its second
// figure. After a kill in a turn, its cost is counted with the next one, too: better twice than never.
func (c *sessionCost) keep() {
	if c.file == "" || !c.said || os.MkdirAll(filepath.Dir(c.file), 0o700) != nil {
		return
	}
	kept := ownCost
	if !c.own {
		kept = strconv.FormatFloat(c.now, 'g', -1, 64)
	}
	_ = os.WriteFile(c.file, []byte(kept), 0o600)
}
