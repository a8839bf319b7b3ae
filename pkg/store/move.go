package store

import (
	"context"
	"fmt"
	"strings"

	"arizuko/pkg/msg"
)

// moved are the columns that hold a chat's address, except those of tables that grow with
// messages.
var moved = []string{
	`topic_threads SET chat_jid`, `platform_threads SET chat_jid`, `chat_reply_state SET jid`,
	`onboarding_requests SET chat_jid`, `reminders SET chat_jid`, `polls SET chat_jid`,
}

// MoveChat changes a chat's address, as when a Telegram group becomes a
// supergroup. All rows that refer to the chat move, including those of tables
// owned by other daemons. Its platform ids so far get the prefix "old:", since
// the new chat counts from 1 again. A second move changes nothing. Where both
// addresses have a row that cannot be merged, the new address's row stays.
func (tx *Tx) MoveChat(from, to string, now int64) error {
	if from == to {
		return nil
	}
	if _, err := tx.exec(`INSERT INTO chat_aliases (old_jid, new_jid) VALUES (?,?)
		ON CONFLICT (old_jid) DO UPDATE SET new_jid = excluded.new_jid`, from, to); err != nil {
		return fmt.Errorf("move chat %s: %w", from, err)
	}
	steps := []func(from, to string) error{tx.moveChatRow, tx.moveMessages, tx.moveRoutes}
	for _, step := range steps {
		if err := step(from, to); err != nil {
			return fmt.Errorf("move chat %s: %w", from, err)
		}
	}
	for _, column := range moved {
		table, name, _ := strings.Cut(column, " SET ")
		if _, err := tx.exec(`UPDATE OR IGNORE `+column+` = ? WHERE `+name+` = ?`, to, from); err != nil {
			return fmt.Errorf("move chat %s: %s: %w", from, table, err)
		}
	}
	for _, daemon := range []string{"gated", "routd", msg.DaemonOf(to)} {
		tx.Poke(daemon)
	}
	return tx.EnsureChat(to, now)
}

// moveChatRow keeps the old chat's pins if the new chat has a row already.
func (tx *Tx) moveChatRow(from, to string) error {
	if _, err := tx.exec(`UPDATE OR IGNORE chats SET jid = ? WHERE jid = ?`, to, from); err != nil {
		return err
	}
	_, err := tx.exec(`UPDATE chats SET sticky_topic = ifnull(chats.sticky_topic, o.sticky_topic),
		sticky_group = ifnull(chats.sticky_group, o.sticky_group), sticky_at = ifnull(chats.sticky_at, o.sticky_at)
		FROM chats o WHERE chats.jid = ?1 AND o.jid = ?2`, to, from)
	if err != nil {
		return err
	}
	_, err = tx.exec(`DELETE FROM chats WHERE jid = ?`, from)
	return err
}

func (tx *Tx) moveMessages(from, to string) error {
	if _, err := tx.exec(updateMoveDeliveries, from); err != nil {
		return err
	}
	for _, query := range []string{updateMoveMessages, updateMoveTurns, updateMoveRuns} {
		if _, err := tx.exec(query, to, from); err != nil {
			return err
		}
	}
	return nil
}

// moveRoutes changes the routes that name the chat.
func (tx *Tx) moveRoutes(from, to string) error {
	routes, err := tx.Routes(uncancelled())
	if err != nil {
		return err
	}
	_, oldRoom := msg.SplitJID(from)
	_, newRoom := msg.SplitJID(to)
	for _, r := range routes {
		words := strings.Fields(r.Match)
		for i, word := range words {
			switch word {
			case "chat_jid=" + from:
				words[i] = "chat_jid=" + to
			case "room=" + oldRoom:
				words[i] = "room=" + newRoom
			}
		}
		match := strings.Join(words, " ")
		if match == strings.Join(strings.Fields(r.Match), " ") {
			continue
		}
		if _, err := tx.exec(`UPDATE routes SET match = ? WHERE id = ?`, match, r.ID); err != nil {
			return err
		}
	}
	return nil
}

// Alias is the current address of a chat, "" if it was never moved.
func (r Reader) Alias(ctx context.Context, jid string) (now string, err error) {
	_, err = r.q.get(ctx, []any{&now}, `SELECT new_jid FROM chat_aliases WHERE old_jid = ?`, jid)
	return now, err
}

// ChatMoves returns where each chat that was moved is now. moving has the old
// addresses of those whose rows are still being moved.
func (r Reader) ChatMoves(ctx context.Context) (moves map[string]string, moving map[string]bool, err error) {
	moves, moving = map[string]string{}, map[string]bool{}
	err = r.q.each(ctx, func(scan scanner) (bool, error) {
		var from, to string
		var open bool
		if err := scan(&from, &to, &open); err != nil {
			return false, err
		}
		moves[from] = to
		if open {
			moving[from] = true
		}
		return true, nil
	}, `SELECT old_jid, new_jid, moving FROM chat_aliases`)
	return moves, moving, err
}
