package gateway

import (
	"context"
	"log/slog"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
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
	for _, r := range b.Rows {
		g.log.Debug("row loaded", "row", r.ID, "chat", r.ChatJID)
	}
}

func (g *Gateway) logResolved(q *question) {
	if !g.debug() || q.refresh {
		return
	}
	state := "up"
	if q.outcome != askedDone {
		state = "down"
	}
	g.log.Debug("rows resolved", "count", len(q.items), "took", time.Since(q.asked), "state", state)
}

// logHeld names a row that stays in the gate.
func (g *Gateway) logHeld(chat string, e *decide.Hold) {
	if g.debug() {
		g.log.Debug("row held", "row", e.Row, "chat", chat, "until", time.UnixMilli(e.Until))
	}
}

func (g *Gateway) logWaits(chat string, e *decide.Wait) {
	if g.debug() {
		g.log.Debug("row waits", "row", e.Row, "chat", chat, "reason", e.For)
	}
}

func (g *Gateway) logDecision(chat string, e *decide.Decide) {
	if g.debug() {
		g.logDecided(e.Row, chat, e.Disposition, e.Reason, e.RoutedTo, 0)
	}
}

func (g *Gateway) logAnswered(m *msg.Message, d *store.Decision) {
	if g.debug() {
		g.logDecided(m.ID, m.ChatJID, d.Disposition, d.Reason, d.RoutedTo, 0)
	}
}

func (g *Gateway) logDecided(row int64, chat string, disposition msg.Disposition, reason msg.Reason, folder string, turn int64) {
	g.log.Debug("row decided", "row", row, "chat", chat, "disposition", disposition, "reason", reason, "folder", folder, "turn", turn)
}

func (g *Gateway) logTurn(t storedTurn, chat string) {
	if !g.debug() {
		return
	}
	turn := t.turn
	g.log.Debug("turn stored", "turn", turn.ID, "folder", turn.Folder, "chat", turn.ChatJID, "topic", turn.Topic,
		"count", len(t.rows), "state", turn.State, "run", turn.RunID)
	for i, row := range t.rows {
		g.logDecided(row, chat, msg.Routed, t.reasons[i], turn.Folder, turn.ID)
	}
}
