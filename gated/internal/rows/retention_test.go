package rows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// cutoff is the time before which rows of these tests are old.
const cutoff = 1000

// history is a random history in the database, with the reasons for which rows must
// stay: a row that is kept, such as "turns 3", and those that it needs.
type history struct {
	t     *rapid.T
	s     *store.Store
	rows  []string
	parts int
	keep  map[string]bool
	needs map[string][]string

	ids    map[string]int64 // the last id of each table
	writes []func(*store.Tx) error
}

func node(table string, id int64) string { return fmt.Sprintf("%s %d", table, id) }

// insert stores a row and notes it. All rows are written at once, see write.
func (h *history) insert(table, columns string, args ...any) int64 {
	h.ids[table]++
	id := h.ids[table]
	if storetest.Server() != "" { // a row's own id does not move a server's counter
		h.exec(`SELECT setval(pg_get_serial_sequence('`+table+`', 'id'), ?)`, id)
	}
	h.exec(`INSERT INTO `+table+` (id, `+columns+`) VALUES (?`+strings.Repeat(`,?`, len(args))+`)`, append([]any{id}, args...)...)
	h.rows = append(h.rows, node(table, id))
	return id
}

func (h *history) exec(query string, args ...any) {
	h.writes = append(h.writes, func(tx *store.Tx) error { return tx.Exec(query, args...) })
}

// write stores the inserted rows, in one commit.
func (h *history) write() {
	h.t.Helper()
	err := h.s.Write(context.Background(), func(tx *store.Tx) error {
		for _, write := range h.writes {
			if err := write(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.writes = nil
}

// at draws a time, and reports whether it is young.
func (h *history) at(what string) (int64, bool) {
	at := rapid.SampledFrom([]int64{1, cutoff - 1, cutoff, 2000}).Draw(h.t, what)
	return at, at >= cutoff
}

func (h *history) oneOf(what string, table string) any {
	var ids []any
	for _, row := range h.rows {
		var id int64
		if n, _ := fmt.Sscanf(row, table+" %d", &id); n == 1 {
			ids = append(ids, id)
		}
	}
	return rapid.SampledFrom(append(ids, nil, nil)).Draw(h.t, what)
}

// need notes that a row needs another one, if there is one.
func (h *history) need(row, table string, id any) {
	if id != nil {
		h.needs[row] = append(h.needs[row], node(table, id.(int64)))
	}
}

func (h *history) addRun() {
	started, youngStart := h.at("started")
	var ended any
	at, young := h.at("ended")
	if rapid.Bool().Draw(h.t, "has ended") {
		ended = at
	}
	id := h.insert("runs", `folder, topic, chat_jid, runtime, started_at, closed_at, ended_at`,
		fmt.Sprint(len(h.rows)), "", storetest.Chat, "process", started, at, ended)
	h.keep[node("runs", id)] = ended == nil || young || youngStart
}

func (h *history) addTurn() {
	trigger := h.oneOf("trigger", "messages")
	if trigger == nil {
		return
	}
	created, youngCreated := h.at("created")
	ended, youngEnded := h.at("ended")
	state := rapid.SampledFrom([]string{"queued", "running", "done", "failed", "cancelled"}).Draw(h.t, "state")
	root, run := h.oneOf("root", "turns"), h.oneOf("run", "runs")
	if run == nil && state == "running" {
		state = "queued"
	}
	open := state == "queued" || state == "running"
	var endedAt any = ended
	if open {
		endedAt = nil
	}
	id := h.insert("turns", `kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, run_id, root_turn_id, created_at, ended_at`,
		"delegated", "f", storetest.Chat, "", trigger, "", 0, state, run, root, created, endedAt)
	row := node("turns", id)
	h.keep[row] = open || youngCreated || youngEnded
	h.need(row, "messages", trigger)
	h.need(row, "turns", root)
	h.need(row, "runs", run)
}

func (h *history) addMessage() {
	received, young := h.at("received")
	derived, turn := h.oneOf("derived from", "messages"), h.oneOf("turn", "turns")
	target := h.oneOf("target", "messages")
	var disposition, reason, decided, seq, outState, forwarded, targetID any
	if target != nil {
		targetID = fmt.Sprint("p", target)
	}
	waits := false
	direction := rapid.SampledFrom([]string{"in", "out"}).Draw(h.t, "direction")
	if direction == "out" {
		outState = rapid.SampledFrom([]string{"queued", "sending", "sent", "failed", "ambiguous", "cancelled"}).Draw(h.t, "out state")
		waits = outState == "queued" || outState == "sending"
	} else if disposition = rapid.SampledFrom([]any{nil, "observed", "dropped", "onboarding"}).Draw(h.t, "disposition"); disposition != nil {
		at, youngDecision := h.at("decided")
		decided, reason, seq, young = at, "route", len(h.rows), young || youngDecision
		waits = disposition == "onboarding"
	} else {
		waits = true
	}
	returns := h.oneOf("returns to", "turns")
	if returns != nil {
		forwarded = fmt.Sprintf(`{"kind":"delegate","root_turn_id":%d}`, returns)
	}
	id := h.insert("messages", `chat_jid, platform_id, target_id, direction, timestamp, received_at, derived_from, turn_id, disposition, reason,
		decided_at, decision_seq, out_state, forwarded_from`,
		storetest.Chat, fmt.Sprint("p", h.ids["messages"]+1), targetID, direction, 1, received, derived, turn, disposition, reason, decided, seq, outState, forwarded)
	row := node("messages", id)
	h.keep[row] = waits || young
	h.need(row, "messages", derived)
	if waits || young {
		h.need(row, "turns", turn)
	}
	if direction == "in" && disposition == nil {
		h.need(row, "turns", returns)
		h.need(row, "messages", target)
	}
	if turn != nil { // the rows of a turn stay with it
		h.needs[node("turns", turn.(int64))] = append(h.needs[node("turns", turn.(int64))], row)
	}
	if direction == "out" && rapid.Bool().Draw(h.t, "has a delivery") {
		updated, youngDelivery := h.at("updated")
		h.exec(`INSERT INTO deliveries (message_id, part, state, updated_at) VALUES (?, 0, 'sent', ?)`, id, updated)
		h.keep[row] = h.keep[row] || youngDelivery
	}
}

// addPart stores a row that hangs on another one.
func (h *history) addPart() {
	turn, message := h.oneOf("turn", "turns"), h.oneOf("message", "messages")
	if turn == nil || message == nil {
		return
	}
	at, young := h.at("ended")
	open := rapid.Bool().Draw(h.t, "open")
	n := len(h.rows)
	h.parts++
	switch rapid.IntRange(0, 4).Draw(h.t, "part") {
	case 0:
		state, ended := "open", any(nil)
		if !open {
			state, ended = "expired", at
		}
		h.insert("asks", `turn_id, ask_id, message_id, question, options, state, created_at, expires_at, ended_at`,
			turn, fmt.Sprint(h.parts), message, "?", "[]", state, 1, 1, ended)
		h.keep[node("turns", turn.(int64))] = h.keep[node("turns", turn.(int64))] || open || young
		h.need(node("turns", turn.(int64)), "messages", message)
		h.rows = h.rows[:n]
	case 1:
		state, closed := "open", any(nil)
		if !open {
			state, closed = "closed", at
		}
		h.insert("polls", `message_id, folder, chat_jid, question, options, state, created_at, closed_at`, message, "f", storetest.Chat, "?", "[]", state, 1, closed)
		h.exec(`INSERT INTO poll_votes (poll_id, voter, options, at) SELECT max(id), 'v', '[1]', 1 FROM polls`)
		h.exec(`INSERT INTO poll_refs (daemon, ref, message_id) VALUES ('teled', ?, ?)`, fmt.Sprint(h.parts), message)
		h.keep[node("messages", message.(int64))] = h.keep[node("messages", message.(int64))] || open || young
		h.rows = h.rows[:n]
	case 2:
		h.exec(`INSERT INTO chat_reply_state (jid, topic, last_reply_id) VALUES (?, ?, ?)`, storetest.Chat, fmt.Sprint(h.parts), message)
		h.keep[node("messages", message.(int64))] = true
	case 3:
		h.exec(`INSERT INTO system_messages (folder, origin, event, turn_id, created_at) VALUES ('f', '', '', ?, 1)`, turn)
		h.keep[node("turns", turn.(int64))] = true
	case 4:
		h.exec(`INSERT INTO tool_calls (turn_id, call, tool, result, created_at) VALUES (?, 'c', 'react', '{}', 1) ON CONFLICT DO NOTHING`, turn)
		h.exec(`INSERT INTO turn_progress (turn_id, state, updated_at) VALUES (?, 'idle', 1) ON CONFLICT DO NOTHING`, turn)
		h.exec(`INSERT INTO previews (turn_id, chat_jid, state, created_at, updated_at) VALUES (?, '', 'final', 1, 1)`, turn)
	}
}

// kept are the rows that must stay: those to keep, and those that they need.
func (h *history) kept() map[string]bool {
	kept := map[string]bool{}
	var add func(row string)
	add = func(row string) {
		if !kept[row] {
			kept[row] = true
			for _, needed := range h.needs[row] {
				add(needed)
			}
		}
	}
	for row, keep := range h.keep {
		if keep {
			add(row)
		}
	}
	return kept
}

func (h *history) stored(row string) (stored bool) {
	table, id, _ := strings.Cut(row, " ")
	if _, err := h.s.Get(context.Background(), []any{&stored}, `SELECT EXISTS (SELECT 1 FROM `+table+` WHERE id = ?)`, id); err != nil {
		h.t.Fatal(err)
	}
	return stored
}

// purge runs at most a number of pages of two rows, as a purge that is killed does.
func (h *history) purge(pages int) {
	for _, kind := range []rows.History{rows.HistoryTurns, rows.HistoryMessages, rows.HistoryRuns} {
		for again := true; again; {
			again = false
			for after := int64(0); ; pages-- {
				ids, next, err := rows.OldRows(context.Background(), h.s.Reader, kind, after, cutoff, 2)
				if err != nil {
					h.t.Fatal(err)
				}
				if next == after {
					break // rows after a page of young ones are not looked at: here all pages are read
				}
				if pages == 0 {
					return
				}
				after = next
				err = h.s.Write(context.Background(), func(tx *store.Tx) error {
					n, err := rows.Purge(tx, kind, ids, cutoff)
					again = again || n > 0
					return err
				})
				if err != nil {
					h.t.Fatal(err)
				}
			}
		}
	}
}

// checkKept checks that all that must stay is there.
func (h *history) checkKept() {
	h.t.Helper()
	var broken int
	if storetest.Server() != "" {
		// A server refuses a row that refers to none.
	} else if must1(h.t, h.s, `SELECT count(*) FROM pragma_foreign_key_check`, &broken); broken > 0 {
		h.t.Fatalf("%d broken references", broken)
	}
	for row := range h.kept() {
		if !h.stored(row) {
			h.t.Fatalf("%s was deleted", row)
		}
	}
}

// TestPurge_RandomHistory_KeepsWhatIsNeeded kills purges between pages.
func TestPurge_RandomHistory_KeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	tables := []string{"asks", "poll_votes", "poll_refs", "polls", "chat_reply_state", "system_messages", "tool_calls", "turn_progress", "previews", "deliveries", "turns", "messages", "runs"}
	ids := map[string]int64{} // of all runs: no id is handed out twice
	rapid.Check(t, func(t *rapid.T) {
		h := &history{t: t, s: s, keep: map[string]bool{}, needs: map[string][]string{}, ids: ids}
		for _, table := range tables {
			h.exec(`DELETE FROM ` + table)
		}
		t.Repeat(map[string]func(*rapid.T){
			"run":     func(t *rapid.T) { h.t = t; h.addRun() },
			"turn":    func(t *rapid.T) { h.t = t; h.addTurn() },
			"turn 2":  func(t *rapid.T) { h.t = t; h.addTurn() },
			"message": func(t *rapid.T) { h.t = t; h.addMessage() },
			"row":     func(t *rapid.T) { h.t = t; h.addMessage() },
			"part":    func(t *rapid.T) { h.t = t; h.addPart() },
		})
		h.t = t
		h.write()
		var seq, newest int64
		must1(t, s, storetest.LastDelivery(), &seq)
		newest = h.ids["messages"]
		for range rapid.IntRange(0, 4).Draw(t, "kills") {
			h.purge(rapid.IntRange(1, 20).Draw(t, "pages until it is killed"))
			h.checkKept()
		}
		h.purge(1 << 20)
		h.checkKept()
		kept := h.kept()
		for _, row := range h.rows {
			if !kept[row] && h.stored(row) {
				t.Errorf("%s is left, but nothing needs it", row)
			}
		}
		var after int64
		if must1(t, s, storetest.LastDelivery(), &after); after != seq {
			t.Errorf("the counter of deliveries went from %d to %d", seq, after)
		}
		row := &msg.Message{ChatJID: storetest.Chat, Direction: msg.In}
		if id, _, err := storetest.Put(context.Background(), s, row); err != nil || id <= newest {
			t.Errorf("row id %d was used before (%v)", id, err)
		}
	})
}

// must1 reads one value.
func must1(t *rapid.T, s *store.Store, query string, dest any) {
	t.Helper()
	if _, err := s.Get(context.Background(), []any{dest}, query); err != nil {
		t.Fatal(err)
	}
}

func TestPurge_ReminderSlots_KeepsTheLast(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	var ids []int64
	for range 2 {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, ReceivedAt: 1, OutState: msg.OutSent})
		ids = append(ids, m.ID)
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return errors.Join(tx.Exec(`INSERT INTO reminders (folder, chat_jid, kind, body, due_at, state, created_at, updated_at)
			VALUES ('f', 'a:1', 'text', '', 1, 'active', 1, 1)`),
			tx.Exec(`INSERT INTO reminder_slots (reminder_id, slot, message_id) VALUES (1, 10, ?), (1, 20, ?)`, ids[0], ids[1]))
	})
	storetest.Write(t, s, func(tx *store.Tx) error {
		n, err := rows.Purge(tx, rows.HistoryMessages, ids, cutoff)
		if n != 2 {
			t.Errorf("%d deleted", n)
		}
		return err
	})
	if got := storetest.Value[string](t, s, `SELECT group_concat(slot || ' ' || CASE WHEN message_id IS NULL THEN 'none' ELSE 'one' END, ',') FROM reminder_slots`); got != "20 none" {
		t.Errorf("slots %s", got)
	}
}

func TestPurge_DeliveriesOfAllRows_NewOnesReachRoutd(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	deliver := func(at int64) int64 {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, ReceivedAt: at, OutState: msg.OutQueued})
		storetest.Write(t, s, func(tx *store.Tx) error {
			return errors.Join(tx.ClaimOutbound(m.ID, 1, at), tx.PutDelivery(store.Delivery{MessageID: m.ID, State: msg.OutSent}, at),
				tx.SettleOutbound(m.ID, msg.OutSent, ""))
		})
		return m.ID
	}
	id := deliver(1)
	changes := storetest.Must(factrows.DeliveryChanges(t.Context(), s.Reader, 0, 10))(t)
	read := changes[len(changes)-1].Seq
	storetest.Write(t, s, func(tx *store.Tx) error {
		_, err := rows.Purge(tx, rows.HistoryMessages, []int64{id}, cutoff)
		return err
	})
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM deliveries`); n != 0 {
		t.Fatalf("%d deliveries are left", n)
	}
	next := deliver(2000)
	if got := storetest.Must(factrows.DeliveryChanges(t.Context(), s.Reader, read, 10))(t); len(got) != 1 || got[0].MessageID != next {
		t.Errorf("after the purge routd reads %+v", got)
	}
}
