package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"arizuko/pkg/msg"
)

// history is the messages, turns and deliveries in the rows.
type history struct {
	data       string                 // the data folder
	stored     map[key][]row          // inbound rows by content
	derived    map[int64]row          // by the row they derive from
	answers    map[key]map[int64]bool // the turns whose agent says that it received a prompt
	replies    map[key]int            // number of replies to a command, by chat and the command's platform id
	turns      map[int64]turn         // by id
	content    map[int64]string       // of outbound rows
	deliveries []delivery             // in the order of rows and parts
	windows    map[[2]string]window   // by chat and place
	pinned     map[string]bool        // chats pinned to a group at any time
	lastCall   map[[2]string]call     // the last call of an agent, by chat and place
}

// apologised reports whether a turn of a chat ended with an apology.
func (h *history) apologised(chat string) bool {
	for _, rows := range h.stored {
		for _, in := range rows {
			turns := []int64{in.turn, h.derived[in.id].turn}
			if in.chat == chat &&
				slices.ContainsFunc(turns, func(id int64) bool { return h.turns[id].reason == "agent_error" }) {
				return true
			}
		}
	}
	return false
}

type row struct {
	id, turn, derivedFrom int64
	chat, content         string
	disposition           string
	platformID            string
	files                 []file // attachments
}

// file is an attachment as it is stored: its content, or why it is missing.
type file struct{ Path, Error, content string }

type turn struct {
	reason string
	frames int
	with   int64  // the turn whose answer is for this one too, 0 for none
	last   string // content of its last message
}

// part is a part of an outbound row.
type part struct {
	row  int64
	part int
}

// lane is a thread of a chat. Parts arrive in order in it.
type lane struct{ chat, thread string }

func (p part) less(q part) bool { return p.row < q.row || p.row == q.row && p.part < q.part }

type delivery struct {
	part
	lane
	kind                 msg.Kind
	target               string // the message that the row changes, "" for none
	id, state, sendError string
	at                   int64 // unix ms
	claims               bool  // an answer of a turn that claims engagement
	calledAt             int64 // when that turn's trigger was received
	folder, place        string
}

type window struct {
	folder       string
	until, ended int64 // unix ms
}

type call struct {
	folder string
	at     int64
}

// echoLine is a line in which the demo agent repeats a prompt.
var echoLine = regexp.MustCompile(`(?m)^(?:\d+/\d+ )?You said: (.*)$`)

func readHistory(db *sql.DB, data string) (*history, error) {
	h := &history{
		data: data, stored: map[key][]row{}, derived: map[int64]row{}, answers: map[key]map[int64]bool{},
		replies: map[key]int{},
		turns:   map[int64]turn{}, content: map[int64]string{}, windows: map[[2]string]window{},
		pinned:   map[string]bool{},
		lastCall: map[[2]string]call{},
	}
	for _, read := range []func(*sql.DB) error{h.readTurns, h.readMessages, h.readDeliveries, h.readWindows} {
		if err := read(db); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// each calls fn for every row of a query.
func each(db *sql.DB, query string, fn func(scan func(...any) error) error) error {
	rows, err := db.Query(query)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows.Scan); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return rows.Err()
}

func (h *history) readTurns(db *sql.DB) error {
	return each(db, `SELECT t.id, t.reason, t.frames, ifnull(t.answered_with, 0), t.claims_engagement, t.folder, t.chat_jid, t.place, m.received_at
		FROM turns t JOIN messages m ON m.id = t.trigger_message_id ORDER BY t.id`, func(scan func(...any) error) error {
		var id, at int64
		var t turn
		var claims bool
		var folder, chat, place string
		if err := scan(&id, &t.reason, &t.frames, &t.with, &claims, &folder, &chat, &place, &at); err != nil {
			return err
		}
		h.turns[id] = t
		if in := [2]string{chat, place}; claims && at >= h.lastCall[in].at {
			h.lastCall[in] = call{folder, at}
		}
		return nil
	})
}

func (h *history) readMessages(db *sql.DB) error {
	return each(db, `SELECT id, ifnull(turn_id, 0), chat_jid, direction, source, content, ifnull(disposition, ''),
		ifnull(platform_id, ''), ifnull(derived_from, 0), ifnull(reply_to_id, ''), ifnull(attachments, '') FROM messages ORDER BY ifnull(derived_from, id), id`, func(scan func(...any) error) error {
		var r row
		var direction, source, replyTo, attachments string
		err := scan(&r.id, &r.turn, &r.chat, &direction, &source, &r.content, &r.disposition, &r.platformID,
			&r.derivedFrom, &replyTo, &attachments)
		if err == nil {
			r.files, err = h.readFiles(attachments)
		}
		if err != nil {
			return err
		}
		if direction == "in" {
			h.addInbound(r)
		} else {
			h.addOutbound(r, source, replyTo)
		}
		return nil
	})
}

// readFiles reads the files of attachments.
func (h *history) readFiles(attachments string) (files []file, err error) {
	if attachments == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(attachments), &files); err != nil {
		return nil, fmt.Errorf("attachments %s: %w", attachments, err)
	}
	for i, f := range files {
		if f.Path == "" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(h.data, f.Path))
		if err != nil {
			return nil, err
		}
		files[i].content = string(content)
	}
	return files, nil
}

func (h *history) addInbound(r row) {
	if t, ok := h.turns[r.turn]; ok {
		t.last = r.content
		h.turns[r.turn] = t
	}
	if r.derivedFrom != 0 {
		h.derived[r.derivedFrom] = r
		return
	}
	k := key{r.chat, r.content}
	h.stored[k] = append(h.stored[k], r)
	if r.disposition == "sticky" {
		h.pinned[r.chat] = true
	}
}

func (h *history) addOutbound(r row, source, replyTo string) {
	h.content[r.id] = r.content
	if source == "command" {
		h.replies[key{r.chat, replyTo}]++
		return
	}
	for _, m := range echoLine.FindAllStringSubmatch(r.content, -1) {
		k := key{r.chat, m[1]}
		if h.answers[k] == nil {
			h.answers[k] = map[int64]bool{}
		}
		h.answers[k][r.turn] = true
	}
}

func (h *history) readDeliveries(db *sql.DB) error {
	return each(db, `SELECT d.message_id, d.part, m.chat_jid, m.thread_id, m.kind, ifnull(m.target_id, ''), ifnull(d.platform_id, ''), d.state, ifnull(d.error, ''), d.updated_at,
		CASE WHEN t.claims_engagement = 1 AND m.source = 'agent' AND m.received_at <= t.ended_at THEN 1 ELSE 0 END, ifnull(t.folder, ''), ifnull(t.place, ''),
		ifnull(q.received_at, 0)
		FROM deliveries d JOIN messages m ON m.id = d.message_id LEFT JOIN turns t ON t.id = m.turn_id
		LEFT JOIN messages q ON q.id = t.trigger_message_id
		WHERE NOT (m.source = 'waiting' AND d.state = 'failed') -- marks of messages that users have deleted
		ORDER BY d.message_id, d.part`, func(scan func(...any) error) error {
		var d delivery
		err := scan(&d.row, &d.part.part, &d.chat, &d.thread, &d.kind, &d.target, &d.id, &d.state, &d.sendError, &d.at,
			&d.claims, &d.folder, &d.place, &d.calledAt)
		h.deliveries = append(h.deliveries, d)
		return err
	})
}

func (h *history) readWindows(db *sql.DB) error {
	return each(db, `SELECT jid, topic, ifnull(engaged_folder, ''), ifnull(engaged_until, 0), ifnull(ended_at, 0) FROM chat_reply_state`,
		func(scan func(...any) error) error {
			var in [2]string
			var w window
			err := scan(&in[0], &in[1], &w.folder, &w.until, &w.ended)
			h.windows[in] = w
			return err
		})
}

// opensWindow reports whether a delivered answer must have opened a window: no other agent was called
// there later, and no pin ended the window.
func (h *history) opensWindow(d delivery) bool {
	last := h.lastCall[[2]string{d.chat, d.place}]
	return !h.pinned[d.chat] && last.folder == d.folder && last.at == d.calledAt
}
