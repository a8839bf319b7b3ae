package store

import (
	"context"
	"strings"

	"arizuko/pkg/msg"
)

const (
	QueryMark = `SELECT ` + MessageColumns + ` FROM messages m INDEXED BY messages_turn
		WHERE m.turn_id = ? AND m.direction = 'out' AND m.source = 'waiting' ORDER BY m.id DESC`
	// Of a row made from another, such as one whose #name was cut off, that one is marked.
	markableRow = `SELECT m.chat_jid, m.thread_id, m.topic, ifnull(m.platform_id, ifnull(o.platform_id, '')), m.sender, m.verb, m.addressed, ifnull(c.kind, '')
		FROM messages m LEFT JOIN messages o ON o.id = m.derived_from AND o.chat_jid = m.chat_jid LEFT JOIN chats c ON c.jid = m.chat_jid
		WHERE m.direction = 'in' AND m.verb IN ('', 'message', 'mention', 'reply') AND `
	queryMarkable = markableRow + `m.id = ?`
)

// MarkTurn returns false where the platform has no reactions.
func (tx *Tx) MarkTurn(t *msg.Turn, mark msg.Mark, now int64) (marked bool, err error) {
	rows, err := All(Uncancelled(), tx.Reader, scanMarkable, queryMarkable, t.TriggerMessageID)
	if err != nil || len(rows) == 0 || rows[0].chat != t.ChatJID || !rows[0].hasReactions() ||
		rows[0].platformID == "" {
		return false, err
	}
	return true, tx.putMark(&rows[0], t.ID, string(mark), now)
}

// MarkCancelled lets the senders of a cancelled turn's messages see that they get no answer, but for the one who has
// stopped it. The mark goes when the turn is retried.
func (tx *Tx) MarkCancelled(t *msg.Turn, by string, now int64) error {
	if t.Kind != msg.Conversation || t.WorksForGroup() {
		return nil
	}
	rows, err := All(Uncancelled(), tx.Reader, scanMarkable, markableRow+`m.turn_id = ? ORDER BY m.id`, t.ID)
	for i := range rows {
		if m := &rows[i]; err == nil && m.sender != by && m.hasReactions() {
			err = tx.putMark(m, t.ID, string(msg.MarkUnanswered), now)
		}
	}
	return err
}

// MarkDecided lets the sender of a message that addresses the bot see the decision about it.
func (tx *Tx) MarkDecided(id int64, mark msg.Mark, now int64) error {
	rows, err := All(Uncancelled(), tx.Reader, scanMarkable, queryMarkable, id)
	if err != nil || len(rows) == 0 || !rows[0].addressed {
		return err
	}
	last, err := tx.markOf(&rows[0])
	if err != nil || last != nil && last.Content == string(mark) {
		return err
	}
	return tx.putMark(&rows[0], 0, string(mark), now)
}

// MarkAsleep marks messages of a platform that address the bot, were received before a time, and are undecided, twenty
// at once. Decide takes the mark away.
func (tx *Tx) MarkAsleep(platform string, before, now int64) error {
	rows, err := tx.Asleep(Uncancelled(), platform, before)
	for i := range rows {
		if err == nil {
			err = tx.putMark(&rows[i], 0, string(msg.MarkAsleep), now)
		}
	}
	return err
}

// Asleep returns the messages that MarkAsleep marks.
func (r Reader) Asleep(ctx context.Context, platform string, before int64) ([]markable, error) {
	return All(ctx, r, scanMarkable, `SELECT m.chat_jid, m.thread_id, m.topic, m.platform_id, m.sender, m.verb, m.addressed, ifnull(c.kind, '')
		FROM messages m INDEXED BY messages_undecided LEFT JOIN chats c ON c.jid = m.chat_jid
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid >= ?1 AND m.chat_jid < ?2 AND m.received_at <= ?3 AND m.received_at > ?4
		AND m.verb IN ('', 'message', 'mention', 'reply') AND m.platform_id IS NOT NULL
		AND (m.addressed = 1 OR m.verb IN ('mention', 'reply') OR c.kind = 'dm')
		AND NOT EXISTS (SELECT 1 FROM messages k INDEXED BY messages_target
			WHERE k.chat_jid = m.chat_jid AND k.target_id = m.platform_id AND k.source = 'waiting' AND k.content = ?5)
		ORDER BY m.id LIMIT 20`,
		platform+":", platform+";", before, before-maxAsleep,
		string(msg.MarkAsleep))
}

// maxAsleep is how much older a message may be, in ms: after a long outage the newest ones tell enough.
const maxAsleep = 60 * 60_000

// UnmarkMessage takes away the mark that a message has, whatever for.
func (tx *Tx) UnmarkMessage(id, now int64) error {
	rows, err := All(Uncancelled(), tx.Reader, scanMarkable, queryMarkable, id)
	if err != nil || len(rows) == 0 {
		return err
	}
	last, err := tx.markOf(&rows[0])
	if err != nil || last == nil {
		return err
	}
	return tx.removeMark(last, now)
}

// markable is an inbound message that may get a mark.
type markable struct {
	chat, thread, topic, platformID, sender string
	addressed                               bool // to the bot
}

func scanMarkable(scan Scan) (m markable, err error) {
	var verb string
	var kind msg.ChatKind
	err = scan(&m.chat, &m.thread, &m.topic, &m.platformID, &m.sender, &verb, &m.addressed, &kind)
	if kind == "" {
		kind = msg.KindOfJID(m.chat)
	}
	m.addressed = m.addressed || verb == msg.VerbMention || verb == msg.VerbReply || kind == msg.ChatDM ||
		kind == msg.ChatWeb
	return m, err
}

// hasReactions reports whether the message can get a mark that is taken away again, as adapters of arizuko do.
func (m *markable) hasReactions() bool {
	switch msg.FamilyOf(m.chat) {
	case "telegram", "discord", "slack", msg.PlatformWeb:
		return true
	}
	return false
}

// markOf returns the newest row about a message's mark if that has one, else nil.
func (tx *Tx) markOf(m *markable) (*msg.Message, error) {
	last, err := First(tx.Messages(Uncancelled(), `SELECT `+MessageColumns+` FROM messages m INDEXED BY messages_target
		WHERE m.chat_jid = ? AND m.target_id = ? AND m.direction = 'out' AND m.source = 'waiting' ORDER BY m.id DESC LIMIT 1`,
		m.chat, m.platformID))
	if last != nil && (strings.HasPrefix(last.Content, "-") || last.OutState == msg.OutCancelled) {
		last = nil
	}
	return last, err
}

// Unmark takes away the marks of a turn's messages.
func (tx *Tx) Unmark(turnID, now int64) error {
	rows, err := tx.Messages(Uncancelled(), QueryMark, turnID)
	seen := map[string]bool{}
	for _, mark := range rows { // the newest of each message first
		if err == nil && !seen[mark.TargetID] && !strings.HasPrefix(mark.Content, "-") {
			err = tx.removeMark(mark, now)
		}
		seen[mark.TargetID] = true
	}
	return err
}

// removeMark takes a mark away. One that was not sent yet is cancelled. Where the bot has set another reaction
// meanwhile, and the platform shows one of the bot, that one stays.
func (tx *Tx) removeMark(mark *msg.Message, now int64) error {
	switch mark.OutState {
	case msg.OutQueued:
		return tx.Exec(`UPDATE messages SET out_state = 'cancelled' WHERE id = ? AND out_state = 'queued'`, mark.ID)
	case msg.OutCancelled, msg.OutFailed:
		return nil
	}
	if msg.FamilyOf(mark.ChatJID) == "telegram" {
		replaced := false
		_, err := tx.Find([]any{&replaced}, `SELECT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_target WHERE m.chat_jid = ? AND m.target_id = ?
			AND m.direction = 'out' AND m.kind = 'reaction' AND m.source IN ('tool', 'waiting') AND m.content NOT LIKE '-%' AND m.id > ?)`,
			mark.ChatJID, mark.TargetID, mark.ID)
		if err != nil || replaced {
			return err
		}
	}
	m := &markable{chat: mark.ChatJID, thread: mark.ThreadID, topic: mark.Topic, platformID: mark.TargetID}
	return tx.putMark(m, mark.TurnID, "-"+mark.Content, now)
}

// putMark does nothing on a message that has no id of a platform, or that the platform no longer knows.
func (tx *Tx) putMark(m *markable, turnID int64, content string, now int64) error {
	if m.platformID == "" || msg.NoUsers(m.chat) {
		return nil
	}
	lost, err := tx.Unreachable(Uncancelled(), &msg.Message{ChatJID: m.chat, PlatformID: m.platformID})
	if err != nil || lost != "" {
		return err
	}
	_, _, err = tx.PutMessage(&msg.Message{
		ChatJID: m.chat, Direction: msg.Out, Kind: msg.KindReaction, IsBot: true, Content: content,
		TargetID: m.platformID, ThreadID: m.thread, Topic: m.topic,
		TurnID: turnID, Source: msg.SourceWaiting, Timestamp: now, ReceivedAt: now, OutState: msg.OutStateOf(m.chat),
	})
	return err
}
