package gateway

import (
	"context"
	"log/slog"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/msg"
)

// rowLog is a log that also has the steps of a message's life.
type rowLog struct{ *slog.Logger }

// steps reports whether the steps are logged. Everything below asks it first, so that a message costs nothing where
// they are not.
func (log rowLog) steps() bool { return log.Enabled(context.Background(), slog.LevelDebug) }

func (log rowLog) woken(cursor int64, chats ...string) {
	if !log.steps() {
		return
	}
	for _, jid := range chats {
		log.Debug("chat has new rows", "chat", jid, "cursor", cursor)
	}
}

func (log rowLog) loaded(b *batch) {
	if !log.steps() {
		return
	}
	for _, r := range b.Rows {
		log.Debug("row loaded", "row", r.ID, "chat", r.ChatJID)
	}
}

func (log rowLog) resolved(l *lookup) {
	if !log.steps() || l.refresh {
		return
	}
	state := "up"
	if l.outcome != askedDone {
		state = "down"
	}
	log.Debug("rows resolved", "count", len(l.items), "took", time.Since(l.asked), "state", state)
}

// held names a row that stays in the gate.
func (log rowLog) held(chat string, e *decide.Hold) {
	if log.steps() {
		log.Debug("row held", "row", e.Row, "chat", chat, "until", time.UnixMilli(e.Until))
	}
}

func (log rowLog) waiting(chat string, e *decide.Wait) {
	if log.steps() {
		log.Debug("row waits", "row", e.Row, "chat", chat, "reason", e.For)
	}
}

func (log rowLog) decided(row int64, chat string, disposition msg.Disposition, reason msg.Reason, folder string,
	turn int64) {
	if log.steps() {
		log.Debug("row decided", "row", row, "chat", chat, "disposition", disposition, "reason", reason, "folder",
			folder, "turn", turn)
	}
}

func (log rowLog) turnStored(t storedTurn, chat string) {
	if !log.steps() {
		return
	}
	turn := t.turn
	log.Debug("turn stored", "turn", turn.ID, "folder", turn.Folder, "chat", turn.ChatJID, "topic", turn.Topic,
		"count", len(t.rows), "state", turn.State, "run", turn.RunID)
	for i, row := range t.rows {
		log.decided(row, chat, msg.Routed, t.reasons[i], turn.Folder, turn.ID)
	}
}
