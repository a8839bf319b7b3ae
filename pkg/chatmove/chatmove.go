// Package chatmove changes the address of a chat in all rows that refer to it, as when a Telegram group becomes a
// supergroup.
package chatmove

import (
	"cmp"
	"context"
	"fmt"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	deleteAlias  = `DELETE FROM chat_aliases WHERE old_jid = ?`
	queryAliases = `SELECT old_jid, new_jid, moving FROM chat_aliases`
	// All former addresses: there are few.
	queryUnmoved = `SELECT a.old_jid FROM chat_aliases a WHERE a.moving = 1
		OR EXISTS (SELECT 1 FROM messages INDEXED BY messages_chat WHERE chat_jid = a.old_jid)
		OR EXISTS (SELECT 1 FROM turns INDEXED BY turns_chat WHERE chat_jid = a.old_jid)
		OR EXISTS (SELECT 1 FROM chats WHERE jid = a.old_jid)
		OR EXISTS (SELECT 1 FROM chat_reply_state WHERE jid = a.old_jid)`
	queryUndecidedIDs = `SELECT id FROM messages INDEXED BY messages_undecided
		WHERE direction = 'in' AND disposition IS NULL AND chat_jid = ? ORDER BY id LIMIT ?+0`
	queryUnsettledIDs = `SELECT id FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = ?||'' AND chat_jid = ? ORDER BY thread_id, id LIMIT ?+0`
	queryMessageIDs  = `SELECT id FROM messages INDEXED BY messages_chat WHERE chat_jid = ? ORDER BY id LIMIT ?+0`
	queryOpenTurnIDs = `SELECT id FROM turns INDEXED BY turns_open
		WHERE state IN ('queued', 'running') AND chat_jid = ? ORDER BY id LIMIT ?+0`
	queryTurnIDs = `SELECT id FROM turns INDEXED BY turns_chat WHERE chat_jid = ? ORDER BY id LIMIT ?+0`
)

// movePage is how many rows of a moved chat one commit changes.
const movePage = 1000

// moved are the columns that hold a chat's address, except those of tables that grow with the messages, and a
// condition: a row o of the new address that meets it stays the only one, and the old row is not moved.
var moved = []struct{ table, column, single string }{
	{"topic_threads", "chat_jid", "o.thread_id = topic_threads.thread_id"},
	{"platform_threads", "chat_jid", "o.thread_id = platform_threads.thread_id"},
	{"chat_reply_state", "jid", "o.topic = chat_reply_state.topic"},
	{"context_objects", "chat_id", "o.object_id = context_objects.object_id"},
	{"onboarding_requests", "chat_jid", "o.state = 'pending' AND onboarding_requests.state = 'pending'"},
	{"chat_admins", "chat_jid", "o.sender = chat_admins.sender"},
	{"reminders", "chat_jid", "FALSE"},
	{"polls", "chat_jid", "FALSE"},
	{"stops", "chat_jid", "FALSE"},
	{"forks", "chat_jid", "o.topic = forks.topic"},
	{"permission_rules", "chat_jid", "o.folder = permission_rules.folder AND o.tool = permission_rules.tool AND " +
		"o.payload_hash = permission_rules.payload_hash AND o.text_hash = permission_rules.text_hash"},
}

// moveTable moves the rows of a table of moved.
const moveTable = `UPDATE %[1]s SET %[2]s = ?1 WHERE %[2]s = ?2 AND NOT EXISTS (SELECT 1 FROM %[1]s o WHERE o.%[2]s = ?1 AND %[3]s)`

// Move changes a chat's address. All rows that refer to the chat move, including those of tables
// owned by other daemons. Its platform ids so far get the prefix "old:", since
// the new chat counts from 1 again. A second move changes nothing. Where both
// addresses have a row that cannot be merged, the new address's row stays.
// A row of the audit says which routes were changed.
//
// Move itself moves at most movePage messages and turns, those that wait first. Finish moves the rest.
func Move(tx *store.Tx, from, to string, now int64) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("move chat %s: %w", from, err)
		}
	}()
	known, err := next(tx, from)
	if err != nil || from == to || known == to {
		return err
	}
	present, err := tx.Address(store.Uncancelled(), to)
	if err != nil {
		return err
	}
	if present == from { // a chat that moves back
		if err := tx.Exec(deleteAlias, to); err != nil {
			return err
		}
	}
	if err := tx.PutAlias(from, to); err != nil {
		return err
	}
	routes, err := moveRoutes(tx, from, to)
	if err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	platform, _ := msg.SplitJID(to)
	by := cmp.Or(msg.DaemonOf(to), platform)
	if err := tx.PutAudit(by, factrows.AuditMove, from+" to "+to+": "+routes, now); err != nil {
		return err
	}
	tx.Poke("routd")
	if _, err := moveSome(tx, from, now); err != nil {
		return err
	}
	return tx.EnsureChat(to, now)
}

// Finish moves the remaining rows of the chats that were moved, page by page, and
// rows that other programs stored under a former address. pages is the number of
// commits. It may be called at any time and by several daemons.
func Finish(ctx context.Context, s *store.Store, now int64) (pages int, err error) {
	if err := cutLoops(ctx, s); err != nil {
		return 0, err
	}
	// A chat that was moved twice gets rows while its former one is moved.
	for range store.MaxAliases {
		former, err := store.All(ctx, s.Reader, store.One[string], queryUnmoved)
		if err != nil || len(former) == 0 {
			return pages, err
		}
		for _, jid := range former {
			for more := true; more; pages++ {
				err := s.Write(ctx, func(tx *store.Tx) (err error) {
					more, err = moveSome(tx, jid, now)
					return err
				})
				if err != nil {
					return pages, fmt.Errorf("move chat %s: %w", jid, err)
				}
			}
		}
	}
	return pages, nil
}

// cutLoops deletes addresses that lead in a circle, which only foreign writes can
// make.
func cutLoops(ctx context.Context, s *store.Store) error {
	moves, _, err := Moves(ctx, s.Reader)
	if err != nil {
		return err
	}
	var loops []string
	for from := range moves {
		at := moves[from]
		for range len(moves) {
			if at == from || at == "" {
				break
			}
			at = moves[at]
		}
		if at == from {
			loops = append(loops, from)
		}
	}
	if len(loops) == 0 {
		return nil
	}
	return s.Write(ctx, func(tx *store.Tx) error {
		for _, jid := range loops {
			if err := tx.Exec(deleteAlias, jid); err != nil {
				return err
			}
		}
		return nil
	})
}

// moveSome moves a page of a former address to the next one, rows that wait first,
// and reports whether there is more.
func moveSome(tx *store.Tx, from string, now int64) (more bool, err error) {
	to, err := next(tx, from)
	if err != nil || to == "" || to == from {
		return false, err
	}
	if err := moveSmallTables(tx, from, to, now); err != nil {
		return false, err
	}
	platform, _ := msg.SplitJID(from)
	left := movePage
	for _, step := range []struct {
		ids   string
		args  []any
		move  func(tx *store.Tx, id int64, to string, now int64) error
		pokes []string
	}{
		{store.QueryParkedIDs, []any{from}, moveMessage, []string{"gated"}}, // few: all of them move with the chat
		{queryUndecidedIDs, []any{from}, moveUndecided, []string{"gated"}},
		{queryUnsettledIDs, []any{platform, from}, moveMessage, []string{msg.DaemonOf(to)}},
		{queryOpenTurnIDs, []any{from}, moveTurn, []string{"gated", msg.DaemonOf(to)}},
		{queryTurnIDs, []any{from}, moveTurn, nil},
		{queryMessageIDs, []any{from}, moveMessage, nil},
	} {
		ids, err := store.All(store.Uncancelled(), tx.Reader, store.One[int64], step.ids, append(step.args, left)...)
		if err != nil {
			return false, err
		}
		for _, id := range ids {
			if err := step.move(tx, id, to, now); err != nil {
				return false, err
			}
		}
		for _, daemon := range step.pokes {
			if len(ids) > 0 {
				tx.Poke(daemon)
			}
		}
		left -= len(ids)
	}
	more = left == 0
	if err := tx.Exec(`UPDATE chat_aliases SET moving = ?1 WHERE old_jid = ?2 AND moving <> ?1`,
		more, from); err != nil {
		return false, err
	}
	if !more {
		for _, daemon := range []string{"gated", "routd", msg.DaemonOf(to)} {
			tx.Poke(daemon)
		}
	}
	return more, nil
}

// next is the next address of a chat that was moved, "" for one that was not.
func next(tx *store.Tx, jid string) (string, error) {
	return store.Value[string](store.Uncancelled(), tx.Reader, `SELECT new_jid FROM chat_aliases WHERE old_jid = ?`, jid)
}

// moveUndecided moves a row that waits to be decided. One that is stored at the
// new address already has come twice.
func moveUndecided(tx *store.Tx, id int64, to string, now int64) error {
	var again bool
	// Whether the new address has the message already: an undecided row of the former
	// address is a duplicate then.
	if _, err := tx.Find([]any{&again}, `SELECT EXISTS (SELECT 1 FROM messages o WHERE o.chat_jid = ? AND o.platform_id = 'old:' || m.platform_id)
		FROM messages m WHERE m.id = ? AND m.direction = 'in' AND m.disposition IS NULL AND m.platform_id IS NOT NULL`,
		to, id); err != nil {
		return err
	}
	if again {
		m, err := tx.Message(store.Uncancelled(), id)
		if err != nil {
			return err
		}
		d := store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonDuplicate, Topic: m.Topic, ThreadID: m.ThreadID}
		if err := tx.Decide(id, d, now); err != nil {
			return err
		}
	}
	return moveMessage(tx, id, to, now)
}

func moveMessage(tx *store.Tx, id int64, to string, _ int64) error {
	if err := tx.Exec(`UPDATE deliveries SET platform_id = 'old:' || platform_id WHERE message_id = ? AND platform_id IS NOT NULL`,
		id); err != nil {
		return err
	}
	return tx.Exec(`UPDATE messages SET chat_jid = ?1, reply_to_id = 'old:' || reply_to_id, target_id = 'old:' || target_id,
		platform_id = CASE WHEN EXISTS (SELECT 1 FROM messages o WHERE o.chat_jid = ?1 AND o.platform_id = 'old:' || messages.platform_id)
		THEN 'old:' || platform_id || ':' || id ELSE 'old:' || platform_id END WHERE id = ?2`,
		to, id)
}

func moveTurn(tx *store.Tx, id int64, to string, _ int64) error {
	if err := tx.Exec(`UPDATE previews SET chat_jid = ?, platform_id = 'old:' || platform_id WHERE state = 'open' AND turn_id = ?`,
		to, id); err != nil {
		return err
	}
	return tx.Exec(`UPDATE turns SET chat_jid = ?, reply_to = 'old:' || reply_to WHERE id = ?`, to, id)
}

func moveSmallTables(tx *store.Tx, from, to string, now int64) error {
	if err := moveChatRow(tx, from, to); err != nil {
		return err
	}
	if err := tx.Exec(`UPDATE runs SET chat_jid = ? WHERE chat_jid = ? AND ended_at IS NULL`, to, from); err != nil {
		return err
	}
	if err := noteMerged(tx, from, to, now); err != nil {
		return err
	}
	// A chat that moves: if both addresses have a pending request, one ends; that which is being
	// approved stays, else that of the new address.
	if err := tx.Exec(`UPDATE onboarding_requests SET state = 'expired', decided_by = 'move', decided_at = ?3
		WHERE state = 'pending' AND chat_jid = (SELECT CASE WHEN o.folder IS NOT NULL AND n.folder IS NULL THEN ?2 ELSE ?1 END
			FROM onboarding_requests o, onboarding_requests n
			WHERE o.state = 'pending' AND o.chat_jid = ?1 AND n.state = 'pending' AND n.chat_jid = ?2)`,
		from, to, now); err != nil {
		return fmt.Errorf("onboarding_requests: %w", err)
	}
	if err := moveSpend(tx, from, to); err != nil {
		return fmt.Errorf("spend: %w", err)
	}
	// An ended object at the new address does not stand in the way of an active one.
	if err := tx.Exec(`DELETE FROM context_objects WHERE chat_id = ? AND active_until <= ?`, to, now); err != nil {
		return fmt.Errorf("context_objects: %w", err)
	}
	for _, m := range moved {
		err := tx.Exec(fmt.Sprintf(moveTable, m.table, m.column, m.single), to, from)
		if err != nil {
			return fmt.Errorf("%s: %w", m.table, err)
		}
	}
	// rows that could not be merged
	for _, query := range []string{`DELETE FROM chat_reply_state WHERE jid = ?`, `DELETE FROM context_objects WHERE chat_id = ?`,
		`DELETE FROM permission_rules WHERE chat_jid = ?`} {
		if err := tx.Exec(query, from); err != nil {
			return err
		}
	}
	return nil
}

// moveChatRow keeps the old chat's pins if the new chat has a row already.
func moveChatRow(tx *store.Tx, from, to string) error {
	if err := tx.Exec(`UPDATE chats SET jid = ?1 WHERE jid = ?2 AND NOT EXISTS (SELECT 1 FROM chats o WHERE o.jid = ?1)`,
		to, from); err != nil {
		return err
	}
	err := tx.Exec(`UPDATE chats SET sticky_topic = ifnull(nullif(chats.sticky_topic, ''), o.sticky_topic),
		sticky_group = ifnull(nullif(chats.sticky_group, ''), o.sticky_group), sticky_at = ifnull(chats.sticky_at, o.sticky_at)
		FROM chats o WHERE chats.jid = ?1 AND o.jid = ?2`,
		to, from)
	if err != nil {
		return err
	}
	return tx.Exec(`DELETE FROM chats WHERE jid = ?`, from)
}

// Moves returns where each chat that was moved is now. moving has the old
// addresses of those whose rows are still being moved.
func Moves(ctx context.Context, r store.Reader) (moves map[string]string, moving map[string]bool, err error) {
	moves, moving = map[string]string{}, map[string]bool{}
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
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
	}, queryAliases)
	return moves, moving, err
}

// moveSpend adds the spend of a chat to that of its next address.
func moveSpend(tx *store.Tx, from, to string) error {
	if err := tx.Exec(`INSERT INTO spend (day, folder, chat_jid, turns, input_tokens, output_tokens, cost_usd)
		SELECT day, folder, ?2, turns, input_tokens, output_tokens, cost_usd FROM spend INDEXED BY spend_chat WHERE chat_jid = ?1
		ON CONFLICT (day, folder, chat_jid) DO UPDATE SET turns = spend.turns + excluded.turns, input_tokens = spend.input_tokens + excluded.input_tokens,
		output_tokens = spend.output_tokens + excluded.output_tokens, cost_usd = spend.cost_usd + excluded.cost_usd`,
		from, to); err != nil {
		return err
	}
	return tx.Exec(`DELETE FROM spend WHERE chat_jid = ?`, from)
}

// noteMerged tells the operator of an approval that ends since its chat moves to an address that is being
// approved, too: the other approval connects the chat.
func noteMerged(tx *store.Tx, from, to string, now int64) error {
	ends, err := store.First(factrows.ReadRequests(store.Uncancelled(), tx.Reader, factrows.PendingOfChat, from))
	if err != nil || ends == nil || !ends.Noted() {
		return err
	}
	stays, err := store.First(factrows.ReadRequests(store.Uncancelled(), tx.Reader, factrows.PendingOfChat, to))
	if err != nil || stays == nil || !stays.Noted() {
		return err
	}
	jid, err := factrows.DirectChat(store.Uncancelled(), tx.Reader, ends.DecidedBy)
	if err != nil || jid == "" || msg.AddressedFolder(jid) != "" {
		return err
	}
	_, err = tx.PutNotice(jid, "", fmt.Sprintf("Request %s, which you approved, ended: its chat moved, and request %s of "+
		"its present address is being approved into the group %s.", ends.Code, stays.Code, stays.Folder), now)
	return err
}
