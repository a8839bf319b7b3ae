package gateway

import (
	"context"
	"log/slog"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// What a row waits for, as the debug log names it.
const (
	waitsFiles   = "files"
	waitsRoutd   = "routd"
	waitsRoute   = "route"
	waitsService = "service"
)

// debug reports whether the steps of a message's life are logged. Everything
// below asks it first, so that a message costs nothing where they are not.
func (g *Gateway) debug() bool { return g.log.Enabled(context.Background(), slog.LevelDebug) }

func (g *Gateway) logWoken(chats []string, cursor int64) {
	if !g.debug() {
		return
	}
	for _, jid := range chats {
		g.log.Debug("chat has new rows", "chat", jid, "cursor", cursor)
	}
}

func (g *Gateway) logLoaded(b *batch) {
	if !g.debug() {
		return
	}
	for _, r := range b.rows {
		g.log.Debug("row loaded", "row", r.ID, "chat", r.ChatJID)
	}
}

// logResolved begins before the question to routd; the function it returns
// ends after it.
func (g *Gateway) logResolved(count int) func(up bool) {
	if !g.debug() {
		return func(bool) {}
	}
	asked := time.Now()
	return func(up bool) {
		state := "up"
		if !up {
			state = "down"
		}
		g.log.Debug("rows resolved", "count", count, "took", time.Since(asked), "state", state)
	}
}

// logHeld names the rows that stay in the gate at the end of a chat's part of
// a pass.
func (g *Gateway) logHeld(d *decider) {
	if len(d.held) == 0 || d.requeue || !g.debug() {
		return
	}
	until := time.UnixMilli(d.gate.dueAt())
	for _, r := range d.held {
		g.log.Debug("row held", "row", r.ID, "chat", r.ChatJID, "until", until)
	}
}

func (g *Gateway) logWaits(r *row, what string) {
	if g.debug() {
		g.log.Debug("row waits", "row", r.ID, "chat", r.ChatJID, "reason", what)
	}
}

// decision is a row and what became of it.
type decision struct {
	row   int64
	entry *entry    // of a row in a turn: a derived row gets its id when it is stored
	turn  *msg.Turn // nil for none
	store.Decision
}

func (g *Gateway) logDecided(chat string, d *decision) {
	if !g.debug() {
		return
	}
	row, turn := d.row, int64(0)
	if d.entry != nil {
		row, turn = d.entry.id(), d.turn.ID
	}
	g.log.Debug("row decided", "row", row, "chat", chat, "disposition", d.Disposition, "reason", d.Reason,
		"folder", d.RoutedTo, "turn", turn)
}

func (g *Gateway) logTurn(t *msg.Turn, rows int) {
	if g.debug() {
		g.log.Debug("turn stored", "turn", t.ID, "folder", t.Folder, "chat", t.ChatJID, "topic", t.Topic,
			"count", rows, "state", t.State, "run", t.RunID)
	}
}
